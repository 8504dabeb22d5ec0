-- Codex: ~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl, and archived_sessions.
-- Seen: files of 2025-09 to 0.171. Source: openai/codex, codex-rs/protocol/src/protocol.rs
-- (RolloutLine, SessionMeta, CompactedItem, TurnContextItem) and models.rs (ResponseItem).
--
-- A line is {timestamp, type, payload}. Until September 2025 a line was only the payload of a
-- response item, after a first line with id and timestamp. Lines have no ids: their number is one,
-- because rollouts only grow. session_index.jsonl has the names that the user gave. A thread that
-- was reverted continues in a second file, rollout-TIME-ID_SEGMENT.jsonl. A fork has only its own
-- records: those before history_base.end_ordinal_exclusive are in the file that history_base names,
-- and are given as copies. Without that file the session begins with the fork.

local id, began, replayed, ours -- of the session; ours: an export wrote it
local segment               -- of a reverted thread: the id of this file
local compacting            -- the model writes the summary
local time, ordinal         -- of the record
local copied                -- of the file that a fork continues: its session, segment and record
local asked, ever_asked     -- a response item had a prompt: since the last answer, or ever
local answered              -- a response item had an answer, ever
local waiting, spoken = nil, {} -- prompt and answers of events, which response items may repeat

-- An editor puts what it shows before the prompt.
local ide = [[(?s)^# Context from my IDE.*\n## My request for Codex:\n\K.*]]

-- Texts and images of a prompt, without what Codex adds to it.
local function said(content, kinds)
  local texts, images, n = {}, 0, 0

  if type(content) == "string" then content = json(raw({ content })) end
  for part in each(content) do
    local text = type(part) == "string" and part or part.text

    n = n + 1
    if part.type == "input_image" then
      images = images + 1
    elseif text and starts(kinds[n] or "user.", "user.") then
      texts[#texts + 1] = match(text, ide) or text
    end
  end
  return { texts = texts, images = images }
end

local context = [[^\s*(?:<environment_context>|<user_instructions>|# AGENTS.md instructions |]] ..
  [[<turn_aborted>|<recommended_plugins>|<skill>|<subagent_notification>|]] ..
  [[<codex_internal_context|<permissions instructions>|</?image\b)]]

local function is_context(prompt)
  for _, text in ipairs(prompt.texts) do
    if not match(text, context) then return false end
  end
  return prompt.images == 0
end

-- The name of the record. In the second file of a reverted thread the ordinals go on after those
-- of the first that still count.
local function name()
  if copied then
    return copied.id .. "/" .. (copied.segment and copied.segment .. "-" .. ordinal or copied.n)
  end
  return segment and segment .. "-" .. (ordinal or number()) or number()
end

local function give(fields)
  fields.id = fields.id or name()
  fields.copy_of = copied and fields.id
  message(fields)
end

local function give_prompt()
  local p = waiting

  waiting = nil
  if p then give { role = "user", id = p.id, time = p.time, content = p.texts } end
end

local function give_spoken()
  for _, a in ipairs(spoken) do
    if not answered then
      give { role = "assistant", id = a.id, time = a.time, content = a.text }
    end
  end
  spoken = {}
end

local function answer(fields)
  give_prompt()
  fields.role, fields.time, fields.joins = "assistant", time, true
  asked, answered = false, true
  give(fields)
end

local function item(p)
  local kind = p.type

  if kind == "message" and p.role == "user" then
    local meta = p.internal_chat_message_metadata_passthrough
    local prompt = said(p.content, meta.content_item_kinds)

    if is_context(prompt) then return ignored() end
    asked, ever_asked, waiting = true, true, nil
    give_spoken()
    give { role = "user", time = time, content = prompt.texts, images = prompt.images }
  elseif kind == "message" and p.role == "assistant" then
    answer { content = p.content }
  elseif kind == "message" and p.originator == "chathist" then
    give { role = "system", time = time, content = p.content } -- an export wrote it
  elseif kind == "message" then
    ignored() -- of Codex itself: roles developer and system
  elseif kind == "local_shell_call" then
    answer { calls = { { id = p.call_id, name = "local_shell", args = p.action } } }
  elseif kind == "function_call" or kind == "custom_tool_call" then
    -- The input of a custom tool is text instead of an object.
    -- Older versions have the server of a tool of MCP in the name.
    local before = match(p.namespace, "^mcp__.*[^_]")

    answer { calls = { { id = p.call_id, name = before and before .. "__" .. p.name or p.name,
      args = p.input and { input = p.input } or p.arguments } } }
  elseif kind == "function_call_output" or kind == "custom_tool_call_output" then
    give_prompt()
    give { role = "tool", time = time, result_of = p.call_id,
      content = type(p.output) == "string" and p.output or p.output.content or p.output }
  else
    ignored(kind)
  end
end

local function compacted(p)
  compacting = false
  give_prompt()
  give_spoken()
  give { role = "system", time = time, content = p.message }
  -- If Codex wrote the rollout anew, this has the only copy of the prompts.
  local n = 0
  for old in each(not ever_asked and p.replacement_history) do
    local prompt = said(old.content)

    n = n + 1
    if old.role == "user" and not is_context(prompt) then
      give { role = "user", id = name() .. "." .. n, time = time, content = prompt.texts }
    end
  end
end

local function event(p)
  local kind = p.type

  if kind == "token_count" and not replayed and not copied and not compacting then
    local u = p.info.last_token_usage

    usage { input = u.input_tokens, output = u.output_tokens,
      cache_read = u.cached_input_tokens, reasoning = u.reasoning_output_tokens }
  elseif kind == "thread_rolled_back" then
    give_prompt()
    rewind(math.tointeger(p.num_turns))
    asked = false
  elseif kind == "thread_name_updated" then
    title { text = p.thread_name }
  elseif kind == "user_message" then
    local prompt = said(p.message)

    ignored()
    if not asked and not is_context(prompt) then
      give_prompt()
      give_spoken()
      waiting = { id = name(), time = time, texts = prompt.texts }
    end
  elseif kind == "agent_message" then
    spoken[#spoken + 1] = not answered and { id = name(), time = time, text = p.message } or nil
    ignored()
  end
end

-- The lines of the file that this one continues, from the ordinal on, are shown no more.
local function revert(base)
  local first, before = math.tointeger(base.end_ordinal_exclusive), base.thread_id .. "-"

  -- In the first file records are named by their lines.
  if base.thread_id == id then first, before = first + 1, "" end
  for n = first, first + 9999 do left(before .. n) end
  rewind(10000)
end

-- Gives the records of the file that a fork continues, and before them those that it continues itself.
local record

local function copy(base, depth)
  local before, from = copied, { n = 0 }
  local last, thread = math.tointeger(base.end_ordinal_exclusive), base.thread_id

  if depth > 20 or not last or type(thread) ~= "string" then return end
  for _, place in ipairs { "*/*/*/", "sessions/*/*/*/", "archived_sessions/", "" } do
    for r in beside(place .. "rollout-*" .. thread .. ".jsonl*") do
      if (math.tointeger(r.ordinal) or from.n) >= last then break end
      from.n = from.n + 1
      if from.n > 1 then
        copied = from
        record(r)
      else
        from.id = r.payload.id or ""
        from.segment = from.id ~= thread and thread or nil
        if r.payload.history_base then copy(r.payload.history_base, depth + 1) end
      end
    end
    if from.id then break end
  end
  copied = before
end

local function meta(p)
  -- An older fork repeats the conversation of its parent, after the parent's own head.
  if id then
    replayed = began
  else
    id, began = p.id or p.session_id, p.timestamp
    session { id = id, provider = p.model_provider, cwd = p.cwd, branch = p.git.branch,
      agent = p.source.subagent and "subagent" }
    segment = match(stem(), id .. [[_\K.*]])
    if segment then revert(p.history_base)
    elseif p.history_base then copy(p.history_base, 1)
    end
  end
  ignored()
end

function record(r)
  local kind, p = r.type, r.payload

  -- What Codex adds to an export begins with a task, which no export has.
  if kind == "session_meta" and p.originator == "chathist" and scanning() then
    ours = true
    return meta(p)
  end
  ours = ours and p.type ~= "task_started"
  if ours then return ignored() end
  time, ordinal = r.timestamp or began, math.tointeger(r.ordinal)
  if replayed and starts(time, replayed:sub(1, 19)) == false then replayed = nil end
  if not kind then
    if type(r.id) == "string" then meta(r)
    elseif not r.record_type then bad("no 'type'") end
  elseif kind == "session_meta" then if not copied then meta(p) end
  elseif kind == "response_item" and r.metadata.compaction_output then
    compacting = true
    ignored() -- the record of the compaction has it, too
  elseif kind == "response_item" then item(p)
  elseif kind == "compacted" then compacted(p)
  elseif kind == "turn_context" then session { model = p.model, cwd = p.cwd }
  elseif kind == "event_msg" then event(p)
  elseif not p then item(r)
  else ignored(kind)
  end
end

importer {
  name = "codex",
  form = "lines",
  resume = "codex resume {session}",
  places = { "${CODEX_HOME:-~/.codex}/sessions", "${CODEX_HOME:-~/.codex}/archived_sessions" },
  beside = { "session_index.jsonl", "*/*/*/rollout-*", "sessions/*/*/*/rollout-*",
    "archived_sessions/rollout-*", "rollout-*" },
  tree = true,
  harness = context,
  ignores = { "reasoning", "web_search_call", "tool_search_call", "tool_search_output",
    "additional_tools", "image_generation_call", "compaction", "compaction_summary",
    "ghost_snapshot", "compaction_trigger", "context_compaction", "agent_message",
    "world_state", "token_usage_record", "turn_context",
    -- Events, which repeat what response items have, or are notes of Codex.
    "agent_reasoning", "agent_reasoning_raw_content", "background_event",
    "collab_agent_interaction_end", "collab_agent_spawn_end", "collab_close_end",
    "collab_resume_end", "collab_waiting_end", "context_compacted", "deprecation_notice",
    "dynamic_tool_call_request", "dynamic_tool_call_response", "entered_review_mode", "error",
    "exec_command_end", "exited_review_mode", "guardian_assessment", "image_generation_end",
    "item_completed", "mcp_tool_call_end", "patch_apply_end", "plan_update", "stream_error",
    "sub_agent_activity", "task_complete", "task_started", "thread_settings_applied", "token_count",
    "turn_aborted", "turn_complete", "turn_started", "undo_completed", "view_image_tool_call",
    "warning", "web_search_end" },

  is = function(r)
    return type(r.type) == "string" and type(r.payload) == "object"
      or type(r.record_type) == "string"
      or type(r.id) == "string" and type(r.timestamp) == "string" and has(r, "instructions")
  end,

  record = function(r) record(r) end,

  finish = function()
    -- If response items have the prompts, the one with the last prompt may not be written yet.
    if not ever_asked then give_prompt() end
    give_spoken()
    for entry in beside("session_index.jsonl") do
      if entry.id == id then title { text = entry.thread_name } end
    end
  end,
}
