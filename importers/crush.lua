-- Crush: .crush/crush.db in the folder of a project.
-- Seen: none, since no package has the program; the file in tests/fixtures/import/crush was written
-- by hand in the form that kenn-io/agentsview, internal/parser/crush.go, reads.
-- Source: charmbracelet/crush, internal/db/migrations and internal/message/content.go.
--
-- The times are seconds, although the schema says milliseconds. Tokens are counted only for a
-- whole session, and therefore missing.

local function give(row)
  local texts, calls, images = {}, {}, 0
  local time = row.created_at or 0

  session { id = row.session_id, agent = row.parent_session_id and "subagent" or "" }
  for part in each(json(row.parts)) do
    local d = part.data

    if part.type == "text" then
      table.insert(texts, d.text)
    elseif part.type == "tool_call" then
      table.insert(calls, { id = d.id, name = d.name, args = d.input })
    elseif part.type == "image_url" or part.type == "binary" then
      images = images + 1
    elseif part.type == "tool_result" then
      message { role = "tool", id = row.id .. "-" .. d.tool_call_id, time = time,
        content = d.content, result_of = d.tool_call_id, failed = d.is_error }
    else
      ignored(part.type)
    end
  end
  if row.role ~= "tool" then
    message { role = row.is_summary_message == 1 and "system" or row.role, id = row.id, time = time,
      content = texts, images = images, calls = calls,
      model = row.role == "assistant" and row.model or nil,
      provider = row.role == "assistant" and row.provider or nil }
  end
end

importer {
  name = "crush",
  form = "sqlite",
  places = { ".crush/crush.db" },
  ignores = { "reasoning", "finish" },
  tables = { "sessions", "messages", "goose_db_version" },

  is = function(tables)
    return tables.sessions and tables.messages and tables.goose_db_version
  end,

  queries = {
    { "SELECT m.*, s.parent_session_id FROM messages m JOIN sessions s ON s.id = m.session_id" ..
      " ORDER BY s.created_at, s.id, m.created_at, m.rowid", give },
    { "SELECT id, title FROM sessions ORDER BY created_at, id", function(row)
      title { session = row.id, text = row.title }
    end },
  },
}
