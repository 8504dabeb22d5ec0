-- OpenCode: opencode.db in ~/.local/share/opencode. Kilo's command line has the same tables.
-- Seen: 1.18. Source: anomalyco/opencode, packages/opencode/src/session/message-v2.ts and
-- session.sql.ts.
--
-- An answer is a message for each request; its parts are texts, and tools with call and result.
-- A reverted turn stays until it is taken up again or the next prompt deletes it: it is left out. A
-- fork copies its messages with new ids, and does not name the session that it comes from.

-- Order within a session: that of the ids, which grow.
local function give(row)
  local m = json(row.data)
  local role, tokens = m.role, m.tokens
  local texts, calls, results, images = {}, {}, {}, 0

  if row.id >= (json(row.revert).messageID or "~") then return ignored() end
  if role ~= "user" and role ~= "assistant" then return bad("no known 'role'") end
  session { id = row.session_id, cwd = row.directory, agent = row.parent_id and "subagent" or "" }
  for p in rows("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id", row.id) do
    local part = json(p.data)
    local state = part.state

    if part.type == "text" and not part.synthetic and not part.ignored then
      table.insert(texts, part.text)
    elseif part.type == "tool" then
      table.insert(calls, { id = part.callID, name = part.tool, args = raw(state.input) })
      if state.output or state.error then
        table.insert(results, { role = "tool", id = p.id, result_of = part.callID,
          time = state.time["end"], content = state.output or state.error,
          failed = state.status == "error" })
      end
    elseif part.type == "file" then
      images = images + (starts(part.mime, "image/") and 1 or 0)
    elseif part.type ~= "text" then
      ignored(part.type)
    end
  end
  -- The summary that a long conversation is replaced with is no answer.
  if m.summary == true then role = "system" end
  if role == "user" and #texts == 0 and images == 0 then return ignored() end
  message { role = role, id = row.id, time = m.time.created, content = texts,
    images = images, calls = calls, model = m.modelID, provider = m.providerID,
    finish = m.finish or m.error and "error",
    usage = role == "assistant" and tokens and { input = tokens.input, apart = true,
      output = (tokens.output or 0) + (tokens.reasoning or 0), reasoning = tokens.reasoning,
      cache_read = tokens.cache.read, cache_write = tokens.cache.write, cost = m.cost } or nil }
  for _, result in ipairs(results) do message(result) end
end

importer {
  name = "opencode",
  form = "sqlite",
  copies = true,
  resume = "opencode --session {session}",
  places = { "${XDG_DATA_HOME:-~/.local/share}/opencode/opencode.db",
    "${XDG_DATA_HOME:-~/.local/share}/kilo/kilo.db" },
  ignores = { "reasoning", "step-start", "step-finish", "snapshot", "patch", "compaction",
    "subtask", "agent", "retry" },
  tables = { "session", "message", "part" },

  is = function(tables)
    return tables.session and tables.message and tables.part
  end,

  queries = {
    { "SELECT m.id, m.session_id, m.data, s.revert, s.directory, s.parent_id" ..
      " FROM message m" ..
      " JOIN session s ON s.id = m.session_id" ..
      " ORDER BY s.time_created, s.id, m.time_created, m.id", give },
    { "SELECT id, title FROM session ORDER BY time_created, id", function(row)
      if not starts(row.title, "New session - ") then
        title { session = row.id, text = row.title }
      end
    end },
  },
}
