-- Open WebUI: the file that "Export Chats" writes.
-- Seen: none, since its package brings gigabytes that take longer to install than the others
-- together; the file in tests/fixtures/import/open-webui was written by hand.
-- Source: open-webui/open-webui, src/lib/components/chat/Chat.svelte.
--
-- Each chat is a tree of messages with parentId; currentId is the tip of the branch that is shown.
-- Reasoning and tools stand in the text of an answer as <details>, escaped as HTML.

local reasoning = [[(?s)<details type="reasoning".*?</details>\s*]]
local tool = [[(?s)<details type="tool_calls".*?</details>\s*]]
local before_tool = [[(?s)^.*?(?=<details type="tool_calls")]]
local by_entity = { { "&quot;", '"' }, { "&#x27;", "'" }, { "&lt;", "<" }, { "&gt;", ">" },
  { "&amp;", "&" } }

local function attribute(text, name)
  local value = match(text, "\\s" .. name .. [[="\K[^"]*]]) or ""

  for _, e in ipairs(by_entity) do value = replace(value, e[1], e[2]) end
  return type(json(value)) == "string" and json(value) or value
end

-- Divides an answer into the texts before its tools, their blocks, and the text after them.
local function divide(content)
  local text = replace(type(content) == "string" and content or "", reasoning, "")
  local texts, tools = {}, {}
  local found = match(text, tool)

  while found do
    local before = match(text, before_tool) or ""

    texts[#texts + 1] = match(before, [[(?s)^.*\S]])
    table.insert(tools, found)
    text = text:sub(#before + #found + 1)
    found = match(text, tool)
  end
  return texts, tools, text
end

local function answer(id, m, chat)
  local texts, tools, text = divide(m.content)
  local calls, results, u = {}, {}, m.usage or m.info

  for _, found in ipairs(tools) do
    local call = attribute(found, "id")

    table.insert(calls, { id = call, name = attribute(found, "name"),
      args = attribute(found, "arguments") })
    table.insert(results, { role = "tool", id = id .. "-" .. call, time = m.timestamp,
      content = attribute(found, "result"), result_of = call })
  end
  if #calls > 0 then
    message { role = "assistant", id = id .. "-calls", time = m.timestamp, calls = calls,
      content = texts, model = m.model or chat.models[1], parent = m.parentId }
  end
  for _, result in ipairs(results) do message(result) end
  message { role = "assistant", id = id, time = m.timestamp, content = text,
    parent = #calls == 0 and m.parentId or nil, model = m.model or chat.models[1],
    finish = m.error and "error" or nil,
    usage = u and { input = u.prompt_tokens or u.prompt_eval_count,
      output = u.completion_tokens or u.eval_count,
      cache_read = u.prompt_tokens_details.cached_tokens } }
end

importer {
  name = "open-webui",
  form = "elements",
  tree = true,

  is = function(r)
    return type(r.chat.history.messages) == "object"
  end,

  record = function(r)
    local chat, path = r.chat, {}
    local messages, id = chat.history.messages, chat.history.currentId
    local shown = {}

    local function leave(id)
      local _, tools = divide(messages[id].content)

      left(id .. "-calls")
      for _, found in ipairs(tools) do left(id .. "-" .. attribute(found, "id")) end
      left(id)
    end
    if not (r.id or chat.id) then return bad("no 'id'") end
    session { id = r.id or chat.id }
    ignored()
    while id and messages[id] and not shown[id] do
      shown[id] = true
      table.insert(path, 1, id)
      id = messages[id].parentId
    end
    for n, name in ipairs(path) do
      local m, images = messages[name], 0

      -- The branches that are left begin after the first message.
      for _, other in each(n == 2 and messages) do
        if not shown[other] then leave(other) end
      end
      link(name, m.parentId)
      for file in each(m.files) do images = images + (file.type == "image" and 1 or 0) end
      if m.role == "assistant" then
        answer(name, m, chat)
      else
        message { role = m.role, id = name, time = m.timestamp, content = m.content,
          images = images, parent = m.parentId }
      end
    end
    if r.title ~= "New Chat" then title { text = r.title or chat.title } end
  end,
}
