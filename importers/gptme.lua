-- gptme: ~/.local/share/gptme/logs/NAME/conversation.jsonl.
-- Seen: 0.35. Source: gptme/gptme, gptme/message.py and gptme/logmanager/.
--
-- There are no ids, not even of the conversation. Times are local ones, without a zone, and read
-- as UTC. With its tool format "tool" a call is text, @NAME(ID): {…}, and its result a system
-- message with the call_id; with the others calls stay part of the text.

local call = [[(?m)^@\w+\(\S+?\): \{.*\}\s*\z]]

importer {
  name = "gptme",
  form = "lines",
  places = { "${GPTME_LOGS_HOME:-${XDG_DATA_HOME:-~/.local/share}/gptme/logs}" },
  exchange = { "messages" },
  ignores = { "hidden" },
  harness = "^<system>",

  is = function(r)
    return type(r.role) == "string" and type(r.content) == "string" and match(r.timestamp or "",
      [[^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$]]) and not r.session_id
  end,

  record = function(r)
    local text, calls, u = r.content, {}, r.metadata.usage
    local said = match(text, call)

    if not r.role then return bad("no 'role'") end
    if r.hide then return ignored("hidden") end
    if r.role == "assistant" then
      text = replace(text, [[(?s)^<think(?:ing)?>.*?</think(?:ing)?>\s*]], "")
      if said then
        text = replace(text, [[\s*]] .. call, "")
        calls = { { name = match(said, [[^@\K\w+]]), id = match(said, [[^@\w+\(\K[^)]+]]),
          args = match(said, [[(?s): \K\{.*\}]]) } }
      end
    end
    message { role = r.call_id and r.role == "system" and "tool" or r.role,
      id = number() .. "-" .. fingerprint(r), time = r.timestamp .. "Z", content = text,
      calls = calls, result_of = r.call_id, images = #(r.files or {}),
      model = r.metadata.served_model or r.metadata.model,
      usage = u and { input = u.input_tokens, output = u.output_tokens, apart = true,
        cache_read = u.cache_read_tokens, cache_write = u.cache_creation_tokens,
        reasoning = u.reasoning_tokens, cost = r.metadata.cost } }
  end,
}
