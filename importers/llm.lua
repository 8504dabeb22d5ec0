-- llm (https://llm.datasette.io): logs.db in its folder.
-- Seen: databases of 0.5 to 0.36. Source: simonw/llm, llm/migrations.py, llm/logs.py
-- (LogStore.log, LogStore.load_chain, _LogRowBuilder.build) and docs/logging.md.
--
-- There are two generations of tables, and a database may have both. Up to 0.31 a row of responses
-- is a prompt and its response; tool_calls belong to the response, tool_results to the prompt that
-- had them; fragments come before the prompt or the system prompt. From 0.32 each of messages names
-- the one before it; the messages of a turn are those from its tip back to the first one that an
-- earlier turn of the thread has.

-- The texts of fragments, as far as a message can hold them.
local function fragments(texts, sql, id)
  local size = 0

  for f in rows(sql, id) do
    for c in rows("SELECT content FROM fragments WHERE id = ?1", f.fragment_id) do
      table.insert(texts, c.content)
      size = size + #(c.content or "")
    end
    if size > 64 << 20 then break end
  end
  return texts
end

local function count(sql, id)
  for r in rows(sql, id) do return r.n end
end

-- A row with the model and the usage, whose columns depend on the version of llm.
local function row_of(tab, columns, rowid)
  local function optional(column)
    return has_column(tab, column) and column or "NULL AS " .. column
  end
  local model = has_column(tab, "resolved_model") and "coalesce(resolved_model, model) AS model"
    or "model"

  for r in rows("SELECT " .. columns .. ", " .. model .. ", " .. optional("input_tokens") .. ", " ..
    optional("output_tokens") .. ", " .. optional("token_details") .. " FROM " .. tab ..
    " WHERE rowid = ?1", rowid) do return r end
end

-- The details are those of the provider. OpenAI's totals include them; Anthropic's input does not
-- include the tokens of the cache.
local function tokens(r)
  local details = json(r.token_details)
  local read = details.prompt_tokens_details.cached_tokens

  return { input = r.input_tokens, output = r.output_tokens, apart = not read,
    cache_read = details.cache_read_input_tokens or read,
    cache_write = details.cache_creation_input_tokens,
    reasoning = details.completion_tokens_details.reasoning_tokens }
end

-- ---- responses ----

local last_session, last_system

local function response(row)
  local r = row_of("responses", "id, conversation_id, prompt, system, response, datetime_utc",
    row.rowid)

  if not r.id then return bad("a response without an id") end
  local conversation = r.conversation_id or r.id
  local function give(fields)
    fields.session, fields.time = conversation, r.datetime_utc
    message(fields)
  end

  local calls = {}
  for c in rows("SELECT tool_call_id, name, arguments FROM tool_calls WHERE response_id = ?1" ..
    " ORDER BY id", r.id) do
    table.insert(calls, { id = c.tool_call_id, name = c.name, args = c.arguments })
  end

  -- A system prompt is a message where it changes.
  local system = fragments({},
    'SELECT fragment_id FROM system_fragments WHERE response_id = ?1 ORDER BY "order"', r.id)
  table.insert(system, r.system)
  local changed = last_session ~= conversation or last_system ~= table.concat(system, "\n\n")
  last_session, last_system = conversation, table.concat(system, "\n\n")
  if changed and last_system ~= "" then
    give { role = "system", id = r.id .. "-system", content = last_system }
  end

  local n = 0
  for t in rows("SELECT tool_call_id, name, output FROM tool_results WHERE response_id = ?1" ..
    " ORDER BY id", r.id) do
    n = n + 1
    give { role = "tool", id = r.id .. "-result-" .. n, content = t.output,
      result_of = t.tool_call_id or t.name }
  end

  local prompt = fragments({},
    'SELECT fragment_id FROM prompt_fragments WHERE response_id = ?1 ORDER BY "order"', r.id)
  table.insert(prompt, r.prompt)
  give { role = "user", id = r.id .. "-prompt", content = prompt,
    images = count("SELECT count(*) AS n FROM prompt_attachments p JOIN attachments a" ..
      " ON a.id = p.attachment_id WHERE p.response_id = ?1 AND a.type LIKE 'image/%'", r.id) }

  give { role = "assistant", id = r.id, content = r.response, calls = calls, model = r.model,
    usage = tokens(r) }
end

-- ---- threads ----

local thread, seen

-- The messages from `hash` back to one that the thread has, the last one first, and whether they
-- go back to the first message.
local function chain(hash)
  local links = {}

  while hash and hash ~= "" and not seen[hash] do
    local m
    for r in rows("SELECT parent_hash, role FROM messages WHERE hash = ?1", hash) do m = m or r end
    if not m then
      bad("a message of it is missing")
      return links, false
    end
    seen[hash] = true
    table.insert(links, { hash = hash, role = m.role })
    hash = m.parent_hash
  end
  return links, not hash or hash == ""
end

-- Text that is stored in pieces.
local function pieces(list)
  local texts = {}

  for p in each(list) do
    table.insert(texts, p.literal)
    for f in rows("SELECT content FROM fragments WHERE id = ?1", p.fragment) do
      table.insert(texts, f.content)
    end
  end
  return table.concat(texts)
end

local function give_link(l, tip, turn)
  local texts, calls, images, n = {}, {}, 0, 0
  local role = (l.role == "assistant" or l.role == "system" or l.role == "tool") and l.role
    or "user"

  for p in rows("SELECT id, type, text, payload FROM parts WHERE message_hash = ?1" ..
    " ORDER BY position", l.hash) do
    local payload = json(p.payload)

    if p.type == "tool_result" and payload then
      n = n + 1
      message { role = "tool", id = l.hash .. "." .. n, session = thread,
        time = turn.datetime_utc, content = payload.output,
        result_of = payload.tool_call_id or payload.name }
    elseif p.type == "text" then
      table.insert(texts, p.text or pieces(payload.text_ref))
    elseif p.type == "tool_call" then
      table.insert(calls,
        { id = payload.tool_call_id, name = payload.name, args = payload.arguments })
    elseif p.type == "attachment" then
      images = images + (count("SELECT count(*) AS n FROM part_attachments p JOIN attachments a" ..
        " ON a.id = p.attachment_id WHERE p.part_id = ?1 AND a.type LIKE 'image/%'", p.id) or 0)
    end
  end
  if role == "tool" and #texts == 0 then return end -- it had only results
  message { role = role, id = l.hash, session = thread, time = turn.datetime_utc,
    content = texts, calls = calls, images = images,
    model = tip and role == "assistant" and turn.model or nil,
    usage = tip and role == "assistant" and tokens(turn) or nil }
end

local function turn(row)
  local t = row_of("turns", "parent_message_hash, tip_message_hash, datetime_utc", row.rowid)

  if row.thread_id ~= thread then thread, seen = row.thread_id, {} end
  local first = next(seen) == nil
  local tip = t.tip_message_hash
  local links, whole = chain(tip and tip ~= "" and tip or t.parent_message_hash)

  -- If the chain begins anew, because the thread continues a conversation of the older tables or
  -- for another reason, only the messages after the last answer that was sent are new.
  if whole and (not first or
    count("SELECT 1 AS n FROM responses WHERE conversation_id = ?1 LIMIT 1", thread)) then
    local i = 1
    while links[i] and links[i].hash ~= t.parent_message_hash do i = i + 1 end
    while links[i] and links[i].role ~= "assistant" do i = i + 1 end
    for n = #links, i, -1 do links[n] = nil end
  end
  for i = #links, 1, -1 do give_link(links[i], i == 1, t) end
end

importer {
  name = "llm",
  form = "sqlite",
  resume = "llm chat --cid {session}",
  places = { "${LLM_USER_PATH:-${XDG_CONFIG_HOME:-~/.config}/io.datasette.llm}/logs.db",
    "${LLM_USER_PATH:-~/Library/Application Support/io.datasette.llm}/logs.db" },
  tables = { "responses", "prompt_fragments", "system_fragments", "fragments",
    "prompt_attachments", "attachments", "tool_calls", "tool_results", "turns", "messages",
    "parts", "part_attachments", "conversations", "threads" },

  is = function(tables)
    return tables.responses or tables.turns and tables.messages and tables.parts
  end,

  -- Keys are sorted, and then the rows are read one by one, so that texts are not sorted.
  queries = {
    { "SELECT rowid FROM responses ORDER BY" ..
      " max(datetime_utc) OVER (PARTITION BY coalesce(conversation_id, id))," ..
      " coalesce(conversation_id, id), datetime_utc, id", response },
    { "SELECT rowid, thread_id FROM turns ORDER BY" ..
      " max(datetime_utc) OVER (PARTITION BY thread_id), thread_id, datetime_utc, id", turn },
  },

  finish = function()
    for _, tab in ipairs { "conversations", "threads" } do
      if has_column(tab, "name") then
        for r in rows("SELECT id, name FROM " .. tab .. " ORDER BY id") do
          if r.name then title { session = r.id, text = r.name } end
        end
      end
    end
  end,
}
