-- Qwen Code: ~/.qwen/projects/PROJECT/chats/SESSION.jsonl.
-- Seen: 0.24. Source: QwenLM/qwen-code, packages/core/src/services/chatRecordingService.ts.
--
-- Each line is a record of a tree by uuid and parentUuid. Messages have the parts of Gemini's
-- interface. A system record of the subtype ui_telemetry repeats texts and tokens.

local function content_of(parts)
  local texts, calls, images = {}, {}, 0

  for part in each(parts) do
    local call = part.functionCall

    if call then table.insert(calls, { id = call.id, name = call.name, args = call.args }) end
    if part.text and not part.thought then table.insert(texts, part.text) end
    if part.inlineData or part.fileData then images = images + 1 end
  end
  return texts, calls, images
end

-- What the program says in the user's name.
local own = { notification = true, background_task_completed = true }

importer {
  name = "qwen",
  form = "lines",
  resume = "qwen --resume {session}",
  places = { "${QWEN_HOME:-~/.qwen}/projects", "${QWEN_HOME:-~/.qwen}/tmp" },
  tree = true,
  grows = true,
  harness = [[^\s*<system-reminder>]],
  ignores = { "system" },

  is = function(r)
    return type(r.uuid) == "string" and type(r.sessionId) == "string"
      and (type(r.message.parts) == "array" or r.type == "system" and has(r, "systemPayload"))
  end,

  record = function(r)
    local kind, about = r.type, r.systemPayload
    local texts, calls, images = content_of(r.message.parts)

    session { id = r.sessionId, cwd = r.cwd, branch = r.gitBranch }
    link(r.uuid, r.parentUuid)
    if r.subtype == "custom_title" then
      title { text = about.customTitle,
        given = about.titleSource ~= "auto" or nil }
    elseif r.subtype == "chat_compression" then
      -- The summary that replaces the conversation in requests.
      message { role = "system", id = r.uuid, time = r.timestamp,
        content = content_of(about.compressedHistory[1].parts) }
    elseif kind == "user" and not own[r.subtype] then
      message { role = "user", id = r.uuid, parent = r.parentUuid,
        time = r.timestamp, content = texts, images = images }
    elseif kind == "assistant" then
      local u = r.usageMetadata

      message { role = "assistant", id = r.uuid, time = r.timestamp,
        content = texts, calls = calls, model = r.model,
        usage = u and { input = u.promptTokenCount, cache_read = u.cachedContentTokenCount,
          output = u.totalTokenCount and u.totalTokenCount - (u.promptTokenCount or 0)
            or u.candidatesTokenCount, reasoning = u.thoughtsTokenCount } }
    elseif kind == "tool_result" then
      for part in each(r.message.parts) do
        local f = part.functionResponse
        local said = f.response.output or f.response.error or f.response

        message { role = "tool", id = r.uuid .. "-" .. f.id,
          time = r.timestamp, content = type(said) == "string" and said or raw(said),
          result_of = f.id, failed = r.toolCallResult.status == "error" }
      end
    elseif kind then
      ignored(kind == "user" and "system" or kind)
    else
      bad("no 'type'")
    end
  end,
}
