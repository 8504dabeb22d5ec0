-- LM Studio: ~/.lmstudio/conversations, NAME.conversation.json.
-- Seen: none, since it is a program with windows; the file in tests/fixtures/import/lm-studio was
-- written by hand. Its maker does not document the format.
--
-- A message has versions, of which one is selected. An answer of several steps has blocks of text,
-- of which those that the style calls thinking are no part of the answer.

local function give(m, v, id, began)
  local texts, model, stats = {}, nil, nil

  for part in each(v.content) do table.insert(texts, part.text) end
  for step in each(v.steps) do
    if step.type == "contentBlock" and step.style.type ~= "thinking" then
      for part in each(step.content) do table.insert(texts, part.text) end
    end
    model = step.genInfo.identifier or step.genInfo.indexedModelIdentifier or model
    stats = step.genInfo.stats or stats
  end
  message { role = v.role, id = id, time = began, content = texts, model = model,
    usage = stats and { input = stats.promptTokensCount, output = stats.predictedTokensCount } }
end

importer {
  name = "lm-studio",
  form = "document",
  places = { "~/.lmstudio/conversations" },

  is = function(r)
    return type(r.messages[1].versions) == "array" and has(r, "createdAt")
  end,

  record = function(r)
    local began, n = r.createdAt, 0

    if type(r.messages) ~= "array" then return bad("no 'messages'") end
    session { id = match(stem(), [[^[^.]+]]) }
    if (r.systemPrompt or "") ~= "" then
      message { role = "system", id = "system", time = began, content = r.systemPrompt }
    end
    for m in each(r.messages) do
      local at = (math.tointeger(m.currentlySelected) or 0) + 1
      local v = m.versions[at]

      n = n + 1
      if v.role then give(m, v, n .. "-" .. at, began) else bad("a message has no version") end
    end
    title { text = r.name }
  end,
}
