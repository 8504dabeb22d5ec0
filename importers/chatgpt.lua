-- ChatGPT: conversations.json of its export.
-- Seen: exports of 2023 to 2026. Its maker does not document the format. Others describe it:
-- mitkury/chatgpt-export-parser, docs/chatgpt-data-export-format.md.
--
-- The file is an array of conversations, each with `mapping`, a tree of nodes, and `current_node`,
-- its tip. Edited prompts and regenerated answers are branches; the one that is shown is imported,
-- and replaces what an earlier import has of the others.

local images = { image_asset_pointer = true }
local sounds = { audio_asset_pointer = true, real_time_user_audio_video_asset_pointer = true }
local left_out = { thoughts = true, reasoning_recap = true, user_editable_context = true,
  model_editable_context = true }
local known = { text = true, code = true, execution_output = true, multimodal_text = true,
  tether_quote = true, system_error = true, tether_browsing_display = true }

-- Sources stand in the text between characters for private use, and other marks are such characters.
local function plain(text)
  return replace(replace(text, "\u{E200}.*?\u{E201}", ""), "\\xEE\\x88[\\x80-\\x8F]", "")
end

-- The pages that an answer names, in the newer form and in the older one.
local function sources_of(meta)
  local pages = {}

  local function add(page)
    if type(page.url) == "string" then table.insert(pages, raw(page)) end
  end
  for reference in each(meta.content_references) do
    add(reference)
    for page in each(reference.items) do add(page) end
  end
  for citation in each(meta.citations) do add(citation.metadata) end
  return json("[" .. table.concat(pages, ",") .. "]")
end

local function content_of(content)
  local texts, count, whole = {}, 0, true

  local function add(text)
    if type(text) == "string" then texts[#texts + 1] = plain(text) end
    return type(text) == "string"
  end
  if left_out[content.content_type] then return texts, 0 end
  for part in each(content.parts) do
    if images[part.content_type] then count = count + 1
    elseif not add(part) and not add(part.text) then
      whole = whole and (not part or sounds[part.content_type])
    end
  end
  add(content.text)
  add(content.result)
  if not whole then
    bad("a part of a message is of an unknown kind")
  elseif content and not known[content.content_type] and #texts == 0 and count == 0 then
    bad("a message is of an unknown kind")
  end
  return texts, count
end

local function give(id, parent, m, time, chat, call)
  local role, to = m.author.role, m.recipient
  local texts, count = content_of(m.content)
  local text = table.concat(texts, "\n\n")
  local calls, model

  if role == "assistant" then
    model = m.metadata.model_slug or chat.default_model_slug
    -- Text for another recipient than `all` is a call of the tool with that name.
    if type(to) == "string" and to ~= "all" and text ~= "" then
      calls, call, text = { { id = id, name = to, args = text } }, id, ""
    end
  elseif role == "user" then
    call = nil
  elseif role == "tool" and text == "" and count == 0 then
    return call -- the state of a search, for example
  end
  message {
    role = role, id = id, parent = parent, time = time, content = text, images = count,
    calls = calls, result_of = role == "tool" and call or nil, model = model,
    provider = role == "assistant" and "openai" or nil, citations = sources_of(m.metadata),
    finish = m.metadata.finish_details.type,
  }
  return call
end

importer {
  name = "chatgpt",
  form = "elements",
  tree = true,

  is = function(r)
    return type(r.mapping) == "object" and (has(r, "current_node") or has(r, "create_time"))
  end,

  record = function(chat)
    local nodes, children, tip, newest = {}, {}, nil, -1
    local path, shown, call, time = {}, {}, nil, chat.create_time
    local roles = { user = true, assistant = true, system = true, tool = true }

    if not (chat.conversation_id or chat.id) then return bad("no 'id'") end
    if type(chat.mapping) ~= "object" then return bad("no 'mapping'") end
    session { id = chat.conversation_id or chat.id }
    for node, id in each(chat.mapping) do
      local created = node.message.create_time or 0

      nodes[id] = node
      children[node.parent or ""] = children[node.parent or ""] or {}
      table.insert(children[node.parent or ""], id)
      if created >= newest then tip, newest = id, created end
    end
    if nodes[chat.current_node or ""] then tip = chat.current_node end
    while tip and nodes[tip] and not shown[tip] do
      shown[tip] = true
      table.insert(path, tip)
      tip = nodes[tip].parent
    end

    local function leave(id)
      if not shown[id] then
        shown[id] = true
        left(id)
        for _, child in ipairs(children[id] or {}) do leave(child) end
      end
    end
    for i = #path, 1, -1 do
      local id, before = path[i], nodes[path[i]].parent
      local m = nodes[id].message

      for _, other in ipairs(children[before or ""]) do leave(other) end
      link(id, before)
      if roles[m.author.role] and not m.metadata.is_visually_hidden_from_conversation then
        time = m.create_time or time
        call = give(id, before, m, time, chat, call)
      end
    end
    if chat.title ~= "New chat" then title { text = chat.title } end
  end,
}
