-- Messages as OpenAI's chat completions and Anthropic's Messages API take them.
-- Sources: OpenAI, "Create chat completion", messages; Anthropic, "Create a Message", messages.
--
-- A file is an array of messages, an object with `messages` (a whole request, of which model and
-- system are used, too), or has an object on each line. Calls of tools and their results may have
-- the form of either. There are no ids, and mostly no times: the session is named after the file,
-- its first prompt and the answer; a message by its number and a hash of its content.

local roles = { user = "user", assistant = "assistant", system = "system", tool = "tool",
  developer = "system", ["function"] = "tool" }

local function calls_of(m)
  local calls, old = {}, m.function_call

  for c in each(m.tool_calls) do
    local f = c["function"]

    table.insert(calls, { id = c.id, name = f.name, args = f.arguments })
  end
  if type(old) == "object" then
    table.insert(calls, { name = old.name, args = old.arguments })
  end
  return calls
end

local function give(m, n)
  local role, kind = roles[m.role], type(m.content)

  if not role then return bad("no known 'role'") end
  if kind ~= "nil" and kind ~= "string" and kind ~= "array" then
    return bad("'content' is neither a string nor an array")
  end
  local answer = role == "assistant"
  local refusal = answer and type(m.refusal) == "string" and m.refusal ~= "" and m.refusal

  message {
    role = role, id = n .. "-" .. fingerprint(m),
    time = m.timestamp or m.created_at or m.create_time,
    content = refusal and { refusal, m.content } or m.content,
    finish = refusal and "content_filter" or nil,
    model = answer and m.model or nil, calls = answer and calls_of(m) or nil,
    result_of = role == "tool" and (m.tool_call_id or m.name) or nil,
  }
end

importer {
  name = "messages",
  form = "elements",
  last = true,
  exchange = { "messages" },

  is = function(r)
    return r.role and (has(r, "content") or has(r, "tool_calls"))
      or type(r.messages) == "array" and (has(r, "system") or r.messages[1].role)
  end,

  record = function(r)
    local n = 0

    if type(r.messages) ~= "array" then return give(r, number()) end
    -- Each request is a session.
    session { suffix = number() > 1 and "-" .. number() or "", model = r.model or "" }
    if r.system then give(json('{"role":"system","content":' .. raw(r.system) .. "}"), 0) end
    for m in each(r.messages) do
      n = n + 1
      give(m, n)
    end
  end,
}
