-- GitHub Copilot CLI: ~/.copilot/session-state/ID/events.jsonl.
-- Seen: none, since it wants an account; the file in tests/fixtures/import/copilot was written by
-- hand in the form that kenn-io/agentsview, internal/parser/copilot.go, reads.
--
-- Each line is an event {type, id, parentId, timestamp, data}. Tokens of the input are counted only
-- for a whole session, in session.shutdown, and therefore missing; those of the output are kept.

local function result_of(result)
  return type(result) == "string" and result or result.content or result.detailedContent
end

importer {
  name = "copilot",
  form = "lines",
  places = { "${COPILOT_HOME:-~/.copilot}/session-state" },
  harness = "^<skill-context",
  ignores = { "session.info", "session.resume", "session.shutdown", "session.truncation",
    "session.compaction_start", "session.handoff", "tool.execution_start",
    "tool.execution_partial_result", "assistant.turn_start", "assistant.turn_end",
    "assistant.intent", "assistant.reasoning", "assistant.usage", "system.message", "abort",
    "skill.invoked", "subagent.started", "subagent.completed", "hook.start", "hook.end" },

  is = function(r)
    return type(r.data) == "object" and type(r.id) == "string" and (r.type == "session.start"
      or r.type == "user.message" or r.type == "assistant.message")
  end,

  record = function(r)
    local kind, d = r.type, r.data

    if kind == "session.start" then
      session { id = d.sessionId, model = d.selectedModel, cwd = d.context.cwd,
        branch = d.context.branch }
    elseif kind == "session.model_change" then
      session { model = d.newModel }
    elseif kind == "session.title_changed" then
      title { text = d.title }
    elseif kind == "session.error" then
      message { role = "system", id = r.id, time = r.timestamp, content = d.message }
    elseif kind == "session.compaction_complete" then
      message { role = "system", id = r.id, time = r.timestamp, content = d.summaryContent }
    elseif kind == "user.message" then
      if starts(d.source, "skill-") then return ignored() end
      message { role = "user", id = r.id, time = r.timestamp, content = d.content }
    elseif kind == "assistant.message" then
      local calls = {}

      for c in each(d.toolRequests) do
        table.insert(calls, { id = c.toolCallId, name = c.name, args = c.arguments })
      end
      message { role = "assistant", id = r.id, time = r.timestamp, content = d.content,
        calls = calls, usage = d.outputTokens and { output = d.outputTokens } or nil }
    elseif kind == "tool.execution_complete" then
      message { role = "tool", id = r.id, time = r.timestamp, result_of = d.toolCallId,
        content = result_of(d.result) or d.error.message, failed = d.success == false }
    elseif kind then
      ignored(kind)
    else
      bad("no 'type'")
    end
  end,
}
