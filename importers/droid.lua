-- Factory Droid: ~/.factory/sessions/PATH/ID.jsonl.
-- Seen: none, since it wants an account; the file in tests/fixtures/import/droid was written by
-- hand in the form that getspecstory/getspecstory, specstory-cli/pkg/providers/droidcli, reads.
--
-- Messages have the content blocks of Anthropic's Messages API. Tokens are counted only for a
-- whole session, in ID.settings.json, and therefore missing.

importer {
  name = "droid",
  form = "lines",
  places = { "~/.factory/sessions" },
  harness = [[^\s*<system-(?:reminder|notification)>]],
  ignores = { "thinking", "redacted_thinking", "todo_state", "compaction_state", "session_end" },

  is = function(r)
    return r.type == "session_start" and type(r.id) == "string"
  end,

  record = function(r)
    if r.type == "session_start" then
      session { id = r.id, cwd = r.cwd }
      title { text = r.sessionTitle or r.title }
    elseif r.type == "message" then
      message { role = r.message.role, id = r.id, time = r.timestamp, content = r.message.content,
        model = r.message.modelId }
    elseif r.type then
      ignored(r.type)
    else
      bad("no 'type'")
    end
  end,
}
