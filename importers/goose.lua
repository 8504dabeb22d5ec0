-- Goose: ~/.local/share/goose/sessions/sessions.db, since 1.10.
-- Seen: none, since no package has the program; the file in tests/fixtures/import/goose was written
-- by hand in the form that kenn-io/agentsview, internal/parser/goose.go, reads.
-- Source: block/goose, crates/goose/src/session/session_manager.rs and conversation/message.rs.
--
-- Results have the role user. Tokens are counted for each request in a table of their own, which
-- does not name the message: they are missing.

local hidden = { sub_agent = true, scheduled = true, hidden = true }

local function give(row)
  local texts, calls, results, images = {}, {}, {}, 0
  local id = row.message_id or "row-" .. row.id

  session { id = row.session_id, cwd = row.working_dir,
    agent = hidden[row.session_type or ""] and "subagent" or "" }
  if json(row.metadata_json).userVisible == false then return ignored() end
  for part in each(json(row.content_json)) do
    local call, result = part.toolCall.value, part.toolResult

    if part.type == "text" then
      table.insert(texts, part.text)
    elseif part.type == "image" then
      images = images + 1
    elseif part.type == "toolRequest" then
      table.insert(calls, { id = part.id, name = call.name, args = raw(call.arguments) })
    elseif part.type == "toolResponse" then
      local said = {}

      for block in each(type(result.value) == "array" and result.value or result.value.content) do
        table.insert(said, block.text)
      end
      table.insert(results, { role = "tool", id = id .. "-" .. part.id, result_of = part.id,
        time = row.created_timestamp, content = #said > 0 and said or result.error,
        failed = result.status == "error" })
    else
      ignored(part.type)
    end
  end
  for _, result in ipairs(results) do message(result) end
  if #texts > 0 or #calls > 0 or images > 0 then
    message { role = row.role, id = id, time = row.created_timestamp, content = texts,
      images = images, calls = calls,
      provider = row.role == "assistant" and row.provider_name or nil,
      model = row.role == "assistant" and json(row.model_config_json).model_name or nil }
  end
end

importer {
  name = "goose",
  form = "sqlite",
  resume = "goose session --resume --session-id {session}",
  places = { "${XDG_DATA_HOME:-~/.local/share}/goose/sessions/sessions.db" },
  ignores = { "thinking", "redactedThinking", "toolConfirmationRequest", "actionRequired",
    "systemNotification" },
  tables = { "sessions", "messages", "schema_version" },

  is = function(tables)
    return tables.sessions and tables.messages and tables.schema_version
  end,

  queries = {
    { "SELECT m.id, m.message_id, m.session_id, m.role, m.content_json, m.created_timestamp," ..
      " m.metadata_json, s.working_dir, s.session_type, s.provider_name, s.model_config_json" ..
      " FROM messages m JOIN sessions s ON s.id = m.session_id" ..
      " ORDER BY s.created_at, s.id, m.created_timestamp, m.id", give },
    { "SELECT id, name, description FROM sessions ORDER BY created_at, id", function(row)
      title { session = row.id, text = row.name ~= "" and row.name or row.description }
    end },
  },
}
