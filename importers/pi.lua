-- Pi: ~/.pi/agent/sessions/--PATH--/TIME_ID.jsonl.
-- Seen: 1.6 (version 3 of the form). Source: earendil-works/pi, packages/coding-agent,
-- docs/session-format.md and docs/message-types.md.
--
-- After the head each line is an entry of a tree by id and parentId. A fork copies the entries
-- before it with their ids, which have only eight digits: with their times they are unique.

local names = {} -- the ids that entries have here

local function tokens(u)
  return u and { input = u.input, apart = true, output = u.output, reasoning = u.reasoning,
    cache_read = u.cacheRead, cache_write = u.cacheWrite, cost = u.cost.total }
end

local function content_of(content)
  local texts, calls, images = {}, {}, 0

  if type(content) == "string" then return { content }, calls, 0 end
  for part in each(content) do
    if part.type == "text" then
      table.insert(texts, part.text)
    elseif part.type == "toolCall" then
      table.insert(calls, { id = part.id, name = part.name, args = part.arguments })
    elseif part.type == "image" then
      images = images + 1
    end
  end
  return texts, calls, images
end

local function give(r, m, id, parent)
  local texts, calls, images = content_of(m.content)

  if m.role == "user" then
    message { role = "user", id = id, parent = parent, time = r.timestamp, content = texts,
      images = images }
  elseif m.role == "assistant" then
    message { role = "assistant", id = id, time = r.timestamp, content = texts, calls = calls,
      model = m.model, provider = m.provider, usage = tokens(m.usage), finish = m.stopReason,
      response = m.responseId }
  elseif m.role == "toolResult" then
    message { role = "tool", id = id, time = r.timestamp, content = texts, images = images,
      result_of = m.toolCallId, failed = m.isError }
  elseif m.role == "bashExecution" then
    message { role = "user", id = id, time = r.timestamp,
      content = { "! " .. m.command, m.output } }
  else
    ignored(m.role) -- the system prompt, and messages of extensions
  end
end

importer {
  name = "pi",
  form = "lines",
  resume = "pi --session {session}",
  places = { "${PI_CODING_AGENT_SESSION_DIR:-${PI_CODING_AGENT_DIR:-~/.pi/agent}/sessions}" },
  tree = true,
  unique = true,
  ignores = { "system", "custom", "custom_message", "context_edit", "thinking_level_change",
    "model_change", "label", "usage" },

  is = function(r)
    return r.type == "session" and type(r.id) == "string" and type(r.timestamp) == "string"
      and has(r, "cwd")
  end,

  record = function(r)
    local kind = r.type
    local id, parent = r.id, names[r.parentId or ""]

    if kind == "session" then return session { id = id, cwd = r.cwd } end
    if not kind or not id then return bad("no 'type' or no 'id'") end
    names[id] = id .. "-" .. (r.timestamp or "")
    id = names[id]
    link(id, parent)
    if kind == "message" then
      give(r, r.message, id, parent)
    elseif kind == "compaction" or kind == "branch_summary" then
      message { role = "system", id = id, time = r.timestamp, content = r.summary }
    elseif kind == "session_info" then
      title { text = r.name, given = true }
    else
      ignored(kind)
    end
  end,
}
