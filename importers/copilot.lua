-- GitHub Copilot CLI: ~/.copilot/session-state/ID/events.jsonl, and workspace.yaml with its name.
-- Seen: 1.0.102, run with a model server of its own. Source: schemas/session-events.schema.json of
-- its package; older files as kenn-io/agentsview, internal/parser/copilot.go, reads them.
--
-- Each line is an event {type, id, parentId, timestamp, data}. A rewind removes events from the
-- file; a fork copies them with their ids. The tokens of a request stand in an event before its
-- answer, which may have several messages with one apiCallId; older files have only those of the
-- output, and sums for a whole session.

local used = {} -- the tokens of requests

local function result_of(result)
  return type(result) == "string" and result or result.content or result.detailedContent
end

local function prompt(r, d, agent)
  local images = 0

  if match(d.source or "", "^(?:skill-|jit-)") or d.isAutopilotContinuation then
    return ignored()
  end
  for file in each(d.attachments) do
    local mime, name = file.mimeType or "", file.path or file.displayName or ""

    if starts(mime, "image/") or match(name, [[(?i)\.(?:png|jpe?g|gif|webp)$]]) then
      images = images + 1
    end
  end
  message { role = "user", id = r.id, parent = r.parentId, agent = agent, time = r.timestamp,
    content = d.content, images = images }
end

local function answer(r, d, agent)
  local calls = {}

  for c in each(d.toolRequests) do
    table.insert(calls, { id = c.toolCallId, name = c.name, args = c.arguments })
  end
  message { role = "assistant", id = r.id, response = d.apiCallId, agent = agent,
    time = r.timestamp, content = d.content, calls = calls, model = d.model,
    usage = used[d.apiCallId or ""] or d.outputTokens and { output = d.outputTokens } or nil }
end

importer {
  name = "copilot",
  form = "lines",
  resume = "copilot --resume={session}",
  places = { "${COPILOT_HOME:-~/.copilot}/session-state" },
  unique = true,
  tree = true,
  whole = true,
  beside = "workspace.yaml",
  harness = "^<skill-context",
  ignores = { "session", "assistant", "tool", "model", "subagent", "hook", "skill", "system",
    "abort", "permission", "tool_search", "human_response", "external_tool", "user_input" },

  is = function(r)
    return type(r.data) == "object" and type(r.id) == "string" and (r.type == "session.start"
      or r.type == "user.message" or r.type == "assistant.message")
  end,

  record = function(r)
    local kind, d = r.type, r.data
    local agent = r.agentId or d.parentToolCallId

    link(r.id, r.parentId)
    if kind == "session.start" or kind == "session.resume" or kind == "session.context_changed" then
      session { id = d.sessionId, model = d.selectedModel, cwd = d.context.cwd or d.cwd,
        branch = d.context.branch or d.branch }
      for w in beside("workspace.yaml") do
        title { text = w.name, given = w.user_named and w.name ~= nil }
      end
    elseif kind == "session.model_change" then
      session { model = d.newModel }
    elseif kind == "session.title_changed" then
      title { text = d.title }
    elseif kind == "session.usage_record" and d.usage.apiCallId then
      local u = d.usage

      used[u.apiCallId] = { input = u.inputTokens, output = u.outputTokens,
        cache_read = u.cacheReadTokens, cache_write = u.cacheWriteTokens,
        reasoning = u.reasoningTokens }
    elseif kind == "session.error" then
      message { role = "system", id = r.id, time = r.timestamp, content = d.message }
    elseif kind == "session.compaction_complete" then
      message { role = "system", id = r.id, time = r.timestamp, content = d.summaryContent }
    elseif kind == "user.message" then
      prompt(r, d, agent)
    elseif kind == "assistant.message" then
      answer(r, d, agent)
    elseif kind == "tool.execution_complete" then
      message { role = "tool", id = r.id, agent = agent, time = r.timestamp,
        result_of = d.toolCallId, content = result_of(d.result) or d.error.message,
        failed = d.success == false }
    elseif kind then
      -- Each version has new kinds of these: session.info, tool.execution_start, for example.
      ignored(match(kind, "^[^.]+"))
    else
      bad("no 'type'")
    end
  end,
}
