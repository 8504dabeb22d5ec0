-- Continue: ~/.continue/sessions/ID.json, and sessions.json beside them.
-- Seen: 1.5 of its command line. Source: continuedev/continue, core/index.d.ts (Session,
-- ChatHistoryItem) and core/util/history.ts.
--
-- The messages have neither ids nor times: a message is its number and a hash, and all have the
-- time at which the session began, which only sessions.json says. A fork is a copy with a new id.

importer {
  name = "continue",
  form = "document",
  copies = true,
  whole = true,
  places = { "${CONTINUE_GLOBAL_DIR:-~/.continue}/sessions" },
  beside = "sessions.json",

  is = function(r)
    return type(r.sessionId) == "string" and type(r.history) == "array"
  end,

  record = function(r)
    local began, n = nil, 0

    if type(r.history) ~= "array" then return bad("no 'history'") end
    for entry in beside("sessions.json") do
      if entry.sessionId == r.sessionId then began = math.tointeger(entry.dateCreated) end
    end
    session { id = r.sessionId, cwd = r.workspaceDirectory }
    for item in each(r.history) do
      local m, calls = item.message, {}
      local u, id = m.usage, nil

      n = n + 1
      id = n .. "-" .. fingerprint(m)
      for call in each(m.toolCalls) do
        local f = call["function"]

        table.insert(calls, { id = call.id, name = f.name, args = f.arguments })
      end
      message { role = m.role == "thinking" and "system" or m.role, id = id,
        time = began, content = m.content, calls = calls, model = u.model,
        result_of = m.toolCallId,
        usage = u and { input = u.prompt_tokens, output = u.completion_tokens,
          cache_read = u.prompt_tokens_details.cached_tokens,
          reasoning = u.completion_tokens_details.reasoning_tokens,
          cost = u.cost_cents and u.cost_cents / 100 } }
      for state in each(item.toolCallStates) do
        local texts = {}

        for part in each(state.output) do table.insert(texts, part.content) end
        if #texts > 0 then
          message { role = "tool", id = id .. "-" .. state.toolCallId, content = texts,
            result_of = state.toolCallId, failed = state.status == "errored" }
        end
      end
    end
    if r.title ~= "Untitled Session" then title { text = r.title } end
  end,
}
