-- Cline: ~/.cline/data/sessions/ID/ID.messages.json, and ID.json beside it, which has the
-- title and the directory.
-- Seen: 3.0 of its command line. Source: cline/cline, sdk/packages/core/src/session.
--
-- The messages have the blocks of Anthropic's Messages API. The files of its extension for editors,
-- tasks/ID/api_conversation_history.json, are read by roo.lua if they have times.

-- The prompt stands between marks.
local function plain(text)
  return match(text, [[(?s)^\s*<user_input[^>]*>\K.*(?=</user_input>\s*$)]]) or text
end

local function content_of(content)
  local blocks = {}

  if type(content) == "string" then return plain(content) end
  for block in each(content) do
    if block.type ~= "tool_result" then
      table.insert(blocks, block.type == "text" and plain(block.text) or block)
    end
  end
  return blocks
end

-- Results are lists of {query, result, success}, or content blocks.
local function give_results(m)
  for block in each(m.content) do
    if block.type == "tool_result" then
      local texts = {}

      for part in each(type(block.content) == "array" and block.content) do
        table.insert(texts, part.result or part.error or part.text or raw(part))
      end
      message { role = "tool", id = m.id .. "-" .. block.tool_use_id, time = m.ts,
        content = #texts > 0 and texts or block.content, result_of = block.tool_use_id,
        failed = block.is_error }
    end
  end
end

importer {
  name = "cline",
  form = "document",
  whole = true,
  beside = { "*.json" },
  resume = "cline --id {session}",
  places = { "${CLINE_SESSION_DATA_DIR:-${CLINE_DATA_DIR:-${CLINE_DIR:-~/.cline}/data}/sessions}" },
  ignores = { "thinking", "redacted_thinking" },

  is = function(r)
    return type(r.sessionId) == "string" and type(r.messages) == "array" and has(r, "updated_at")
      or type(r.session_id) == "string" and type(r.messages_path) == "string"
  end,

  record = function(r)
    if r.session_id then return ignored() end
    if not r.sessionId then return bad("no 'sessionId'") end
    session { id = r.sessionId, agent = r.agent ~= "lead" and r.agent or nil }
    for about in beside(r.sessionId .. ".json") do
      session { cwd = about.cwd, branch = about.metadata.git.branch }
      title { text = about.metadata.title or about.prompt }
    end
    for m in each(r.messages) do
      local u, content = m.metrics, content_of(m.content)

      if type(m.content) == "array" then give_results(m) end
      if m.role ~= "user" and m.role ~= "assistant" then
        bad("no known 'role'")
      elseif #content > 0 then
        message { role = m.role, id = m.id, time = m.ts, content = content,
          model = m.modelInfo.id, provider = m.modelInfo.provider,
          usage = u and { input = u.inputTokens, output = u.outputTokens,
            cache_read = u.cacheReadTokens, cache_write = u.cacheWriteTokens } }
      end
    end
  end,
}
