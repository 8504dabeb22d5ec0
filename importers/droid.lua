-- Factory Droid: ~/.factory/sessions/PATH/ID.jsonl.
-- Seen: 0.225, run with a model server of its own; getspecstory/getspecstory,
-- specstory-cli/pkg/providers/droidcli, describes earlier ones. Its maker does not document the
-- format.
--
-- Messages have the content blocks of Anthropic's Messages API, and form a tree by parentId. A fork
-- has copies of them with their ids. Tokens are counted only for a whole session, in
-- ID.settings.json, and therefore missing.

importer {
  name = "droid",
  form = "lines",
  places = { "${FACTORY_HOME_OVERRIDE:-~/}/.factory/sessions" },
  unique = true,
  tree = true,
  grows = true,
  resume = "droid --resume {session}",
  harness = [[^\s*<system-(?:reminder|notification)>]],
  ignores = { "thinking", "redacted_thinking", "todo_state", "compaction_state", "session_end",
    "agent_turn_outcome" },

  is = function(r)
    return r.type == "session_start" and type(r.id) == "string"
  end,

  record = function(r)
    if r.type == "session_start" then
      session { id = r.id, cwd = r.cwd }
      title { text = r.sessionTitle or r.title, given = r.isSessionTitleManuallySet }
    elseif r.type == "message" then
      local m = r.message

      link(r.id, r.parentId)
      message { role = m.role, id = r.id, time = r.timestamp, content = m.content,
        parent = m.role == "user" and r.parentId or nil, model = r.modelId or m.modelId }
    elseif r.type then
      ignored(r.type)
    else
      bad("no 'type'")
    end
  end,
}
