-- Claude.ai: conversations.json of its export.
-- Seen: none, since it wants an account; the file in tests/fixtures/import/claude-ai was written by
-- hand in the form that kenn-io/agentsview, internal/parser/claude_ai.go, reads. Its maker does not
-- document the format.
--
-- The file is an array of conversations. Neither a model nor tokens are in it. An edited prompt is
-- a branch by parent_message_uuid, which older exports do not have.

local roles = { human = "user", assistant = "assistant" }

-- `text` repeats the content, but has a sentence instead of a tool.
local function content_of(m)
  local content, images = {}, 0

  for block in each(m.content) do
    table.insert(content, block.type == "voice_note" and block.text or block)
  end
  if #content == 0 then table.insert(content, m.text) end
  for file in each(m.attachments) do
    if (file.extracted_content or "") ~= "" then
      table.insert(content, "```" .. (file.file_name or "") .. "\n" .. file.extracted_content ..
        "\n```")
    end
  end
  for file in each(m.files) do
    if match(file.file_name or "", [[(?i)\.(?:png|jpe?g|gif|webp)$]]) then images = images + 1 end
  end
  return json(raw(content)), images
end

importer {
  name = "claude-ai",
  form = "elements",
  tree = true,
  ignores = { "thinking", "redacted_thinking", "token_budget", "flag" },

  is = function(r)
    return type(r.uuid) == "string" and type(r.chat_messages) == "array"
  end,

  record = function(chat)
    if not chat.uuid then return bad("no 'uuid'") end
    session { id = chat.uuid, provider = "anthropic" }
    for m in each(chat.chat_messages) do
      local content, images = content_of(m)

      link(m.uuid, m.parent_message_uuid)
      if not roles[m.sender] then
        bad("no known 'sender'")
      else
        message { role = roles[m.sender], id = m.uuid, time = m.created_at, content = content,
          images = images, parent = m.parent_message_uuid }
      end
    end
    title { text = chat.name }
    ignored()
  end,
}
