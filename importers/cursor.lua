-- Cursor's command line: ~/.cursor/projects/PATH/agent-transcripts/ID/ID.jsonl.
-- Seen: none, since it wants an account; the file in tests/fixtures/import/cursor was written by
-- hand in the form that kenn-io/agentsview, internal/parser/cursor.go, reads.
--
-- A line has a role and the content blocks of Anthropic's Messages API. There are no ids, times
-- and models: a message is the number of its line, since the file only grows, and has the time of
-- the file. The prompt stands in <user_query>; the program wrote the texts around it.

importer {
  name = "cursor",
  form = "lines",
  resume = "cursor-agent --resume {session}",
  places = { "${CURSOR_DATA_DIR:-~/.cursor}/projects" },
  harness = [[^\s*<(?!user_query>)[a-z_]+>]],
  ignores = { "thinking", "redacted-reasoning" },

  is = function(r)
    return (r.role == "user" or r.role == "assistant") and has(r.message, "content")
      and not r.type and not r.uuid
  end,

  record = function(r)
    local content = {}

    if r.role ~= "user" and r.role ~= "assistant" then return bad("no known 'role'") end
    session { id = stem() }
    if type(r.message.content) == "string" then content = { r.message.content } end
    for block in each(type(r.message.content) == "array" and r.message.content) do
      table.insert(content, r.role == "user" and block.text
        and match(block.text, [[(?s)<user_query>\s*\K.*?(?=\s*</user_query>)]]) or block)
    end
    message { role = r.role, content = content }
  end,
}
