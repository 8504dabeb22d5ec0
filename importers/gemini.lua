-- Gemini CLI: ~/.gemini/tmp/PROJECT/chats/session-TIME-ID.jsonl; .json before 0.58.
-- ~/.gemini/projects.json has the directory of each PROJECT.
-- Seen: 0.61. Source: google-gemini/gemini-cli, packages/core/src/services/chatRecordingService.ts.
--
-- Each line is the head of a session, a message, or {"$set":…} with members of the head that
-- changed, which may include the list of all messages. {"$rewindTo":ID} takes back that message
-- and all after it. A message that grew stands there again. A resumed session repeats its messages,
-- with other times and without tokens; in the list of a session that was rewound or compressed they
-- have other ids, too: the first form counts. Older files are one object.

local names, order = {}, {} -- the messages of the session: "prompt" or their types; their order
local waiting               -- the newest answer, to which calls may be added
local answered = {}         -- calls with a result
local by_text = {}          -- the messages by their texts

-- The result of a call: {output} or {error}.
local function result_of(response)
  local said = response.output or response.error or response

  return type(said) == "string" and said or raw(said)
end

local function text_of(content)
  local texts = {}

  if type(content) == "string" then return { content } end
  for part in each(content) do
    if part.text and not part.thought then table.insert(texts, part.text) end
  end
  return texts
end

-- The calls have a name of their own: an earlier import may have seen the answer without them.
local function give()
  local m = waiting

  waiting = nil
  if not m then return end
  message(m)
  if #m.called > 0 then
    m.id, m.content, m.calls = m.id .. "-calls", nil, m.called
    message(m)
  end
  for _, result in ipairs(m.results) do message(result) end
end

-- The program has carried out a call when it adds it to the answer.
local function answer(m)
  local t, calls, results = m.tokens, {}, {}

  for call in each(m.toolCalls) do
    local texts = {}

    table.insert(calls, { id = call.id, name = call.name, args = raw(call.args) })
    for part in each(call.result) do
      table.insert(texts, result_of(part.functionResponse.response))
    end
    answered[call.id] = true
    table.insert(results, { role = "tool", id = m.id .. "-" .. call.id, time = call.timestamp,
      content = texts, result_of = call.id, failed = call.status == "error" })
  end
  for part in each(#calls == 0 and type(m.content) == "array" and m.content) do
    local f = part.functionCall

    if f then table.insert(calls, { id = f.id, name = f.name, args = raw(f.args) }) end
  end
  waiting = { role = "assistant", id = m.id, response = m.id, time = m.timestamp, model = m.model,
    provider = "google", content = text_of(m.content), called = calls, results = results,
    usage = t and { input = t.input, cache_read = t.cached, reasoning = t.thoughts,
      output = (t.output or 0) + (t.thoughts or 0) } }
end

local function prompt(m)
  -- The result of a call mostly stands in the answer, too.
  for part in each(type(m.content) == "array" and m.content) do
    local f = part.functionResponse

    if f and answered[f.id or ""] then return ignored() end
    if f then
      answered[f.id or ""] = true
      return message { role = "tool", id = m.id, time = m.timestamp, result_of = f.id,
        content = result_of(f.response) }
    end
  end
  names[m.id] = "prompt"
  message { role = "user", id = m.id, time = m.timestamp, content = text_of(m.content) }
end

-- The text of a message, or the ids of its calls.
local function key_of(m)
  local key = table.concat(text_of(m.content), "\n")

  for call in each(key == "" and m.toolCalls) do key = key .. call.id end
  for part in each(key == "" and type(m.content) == "array" and m.content) do
    key = key .. (part.functionCall.id or "")
  end
  return m.type .. key
end

-- What replaces a compressed conversation: its summary, and an answer by the program.
local function is_summary(m, key)
  if starts(key, "gemini") then return key == "geminiGot it. Thanks for the additional context!" end
  if not starts(key, "user<state_snapshot>") then return false end
  message { role = "system", id = m.id, time = m.timestamp, content = text_of(m.content) }
  return true
end

local function said(m, listed)
  local grows = waiting and waiting.id == m.id

  if not m.id then return bad("no 'id'") end
  if not grows then give() end
  if names[m.id] and not grows then return ignored() end
  local key = key_of(m)
  if listed and (names[by_text[key] or ""] or is_summary(m, key)) then
    names[m.id] = names[m.id] or "repeated"
    by_text[key] = m.id
    return ignored()
  end
  by_text[key] = m.id
  if not names[m.id] then table.insert(order, m.id) end
  names[m.id] = m.type or "other"
  if m.type == "user" then return prompt(m) end
  ignored(m.type ~= "gemini" and m.type or nil)
  if m.type == "gemini" then answer(m) end
end

-- Takes back the message `id` and all after it, or everything.
local function rewind_to(id)
  local turns, last = 0, nil

  give()
  while #order > 0 and last ~= id do
    last = table.remove(order)
    turns = turns + (names[last] == "prompt" and 1 or 0)
    names[last] = nil
  end
  rewind(turns)
end

importer {
  name = "gemini",
  form = "elements",
  resume = "gemini --resume {session}",
  places = { "${GEMINI_CLI_HOME:-~/}/.gemini/tmp" },
  beside = "projects.json",
  tree = true,
  harness = "^<session_context>",
  ignores = { "info", "warning", "error" },

  is = function(r)
    return type(r.sessionId) == "string" and has(r, "projectHash")
  end,

  record = function(r)
    local set = r["$set"]

    if r.sessionId then
      session { id = r.sessionId, agent = r.kind == "subagent" and "subagent" or nil }
      for index in beside("projects.json") do
        for project, dir in each(index.projects) do
          if project == folder(r.kind == "subagent" and 3 or 2) then session { cwd = dir } end
        end
      end
      if r.summary then title { text = r.summary } end
    end
    for m in each(r.messages or set.messages) do said(m, true) end
    if set.summary then title { text = set.summary } end
    if r["$rewindTo"] then rewind_to(r["$rewindTo"])
    elseif r.type then said(r)
    elseif r.sessionId or set then ignored()
    else bad("no 'type'")
    end
  end,

  finish = give,
}
