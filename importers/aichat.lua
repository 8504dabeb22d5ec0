-- aichat: NAME.yaml in the folder `sessions` of its configuration.
-- Source: sigoden/aichat, src/config/session.rs (Session), src/client/message.rs (Message,
-- MessageContent, MessageContentToolCalls) and src/function.rs (ToolCall).
--
-- A file has model (CLIENT:MODEL) and messages; a session that was compressed also has
-- compressed_messages, which come first. A tool message has calls and results together. There are
-- no ids and no times: see messages.lua.

local n = 0
local roles = { user = true, assistant = true, system = true, tool = true }

local function give(role, id, content, fields)
  fields = fields or {}
  fields.role, fields.id, fields.content = role, n .. "-" .. id, content
  message(fields)
end

-- The objects of a chat completion that a tool message is; their hashes are the ids.
local function with_calls(content)
  local calls, texts, results = {}, {}, {}

  for r in each(content.tool_results) do
    local call = r.call
    local name, id = call.name, call.id

    if type(name) == "string" then
      id = type(id) == "string" and id or name
      local args = call.arguments ~= nil and raw(call.arguments) or "{}"
      local output = type(r.output) == "string" and r.output
        or r.output ~= nil and raw(r.output) or ""

      table.insert(calls, { id = id, name = name, args = call.arguments })
      table.insert(texts, '{"id":' .. raw(id) .. ',"function":{"name":' .. raw(name) ..
        ',"arguments":' .. args .. "}}")
      table.insert(results, { id = id, output = output,
        object = '{"role":"tool","tool_call_id":' .. raw(id) .. ',"content":' .. raw(output) ..
          "}" })
    end
  end
  local answer = '{"role":"assistant","content":' .. raw(content.text or "") ..
    ',"tool_calls":[' .. table.concat(texts, ",") .. "]}"

  give("assistant", fingerprint(answer), content.text, { calls = calls })
  for _, r in ipairs(results) do
    give("tool", fingerprint(r.object), r.output, { result_of = r.id })
  end
end

importer {
  name = "aichat",
  form = "yaml",
  places = {
    "${AICHAT_SESSIONS_DIR:-${AICHAT_CONFIG_DIR:-${XDG_CONFIG_HOME:-~/.config}/aichat}/sessions}",
    "${AICHAT_SESSIONS_DIR:-${AICHAT_CONFIG_DIR:-${XDG_CONFIG_HOME:-~/.config}/aichat}/agents}",
    "${AICHAT_SESSIONS_DIR:-${AICHAT_CONFIG_DIR:-~/Library/Application Support/aichat}/sessions}",
    "${AICHAT_SESSIONS_DIR:-${AICHAT_CONFIG_DIR:-~/Library/Application Support/aichat}/agents}" },
  exchange = { "compressed_messages", "messages" },

  is = function(text)
    return match(text, "(?m)^model:") and match(text, "(?m)^(compressed_)?messages:")
  end,

  record = function(chat)
    local client = match(chat.model, "^[^:]*(?=:)")

    if type(chat.messages) ~= "array" then return bad("no 'messages'") end
    session { provider = client, model = client and chat.model:sub(#client + 2) or chat.model }
    for _, list in ipairs { chat.compressed_messages or json("[]"), chat.messages } do
      for m in each(list) do
        local content = m.content

        n = number(n + 1)
        if type(content) == "object" then
          with_calls(content)
        elseif content ~= nil and type(content) ~= "string" and type(content) ~= "array" then
          bad("'content' is neither a string nor an array")
        elseif roles[m.role] then
          give(m.role, fingerprint(m), content)
        else
          bad("no known 'role'")
        end
      end
    end
    -- `temp` is the name of all sessions that have none.
    if stem() ~= "temp" then title { text = stem() } end
  end,
}
