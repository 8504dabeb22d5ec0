-- Kimi Code: ~/.kimi-code/sessions/PROJECT/SESSION/agents/AGENT/wire.jsonl; kimi-cli before it:
-- ~/.kimi/sessions/PROJECT/SESSION/wire.jsonl. state.json above it has the title.
-- Seen: Kimi Code 2.1 (protocol 1.5), kimi-cli 1.51 (protocol 1.10). Source: the packages
-- @moonshot-ai/kimi-code of npm and kimi-cli of PyPI (kimi_cli/wire/types.py, session_fork.py).
--
-- A line is a record with type and time; in kimi-cli {timestamp, message: {type, payload}}. The
-- texts and calls of an answer are records that follow each other, its tokens come after them.
-- An undone turn stays, and context.undo follows it; kimi-cli makes a fork instead. A fork has
-- copies of the lines. kimi-cli records neither the model nor ids: a line is named by its time, and
-- a session by its folder. Only for the last session of each directory does kimi.json know where.

local step        -- of the answer in kimi-cli
local began       -- the session has its id

local function tokens(u)
  return u and { input = u.inputOther or u.input_other, output = u.output, apart = true,
    cache_read = u.inputCacheRead or u.input_cache_read,
    cache_write = u.inputCacheCreation or u.input_cache_creation }
end

local function content_of(content)
  local texts, images = {}, 0

  if type(content) ~= "array" then return { content }, 0 end
  for p in each(content) do
    if p.type == "text" then table.insert(texts, p.text) end
    if p.type == "image_url" then images = images + 1 end
  end
  return texts, images
end

-- The session that the records are of.
local function begin(r)
  began = true
  session { id = r.message and folder(),
    agent = (r.agentId or "main") ~= "main" and r.agentId or nil }
  for state in beside("state.json") do
    session { id = state.id, cwd = state.cwd }
    title { text = state.title or state.custom_title,
      given = state.isCustomTitle or state.titleKind == "custom" or nil }
  end
  for kimi in beside("kimi.json") do
    for dir in each(kimi.work_dirs) do
      if r.message and dir.last_session_id == folder() then session { cwd = dir.path } end
    end
  end
end

local function prompt(id, time, content)
  local texts, images = content_of(content)

  message { role = "user", id = id, time = time, content = texts, images = images }
end

local function answer(id, response, time, p, calls)
  if p.type == "think" then return ignored(p.type) end
  message { role = "assistant", id = id, response = response, time = time, content = p.text,
    images = p.type == "image_url" and 1 or 0, calls = calls }
end

local function result(id, call, time, output, failed)
  local texts, images = content_of(output)

  message { role = "tool", id = id, time = time, content = texts, images = images, result_of = call,
    failed = failed }
end

-- The events of Kimi Code.
local function event(e, time)
  if e.type == "content.part" then
    answer(e.uuid, e.stepUuid, time, e.part)
  elseif e.type == "tool.call" then
    answer(e.uuid, e.stepUuid, time, {}, { { id = e.toolCallId, name = e.name, args = e.args } })
  elseif e.type == "tool.result" then
    result("result-" .. e.parentUuid, e.toolCallId, time, e.result.output, e.result.isError)
  elseif e.type == "step.end" then
    usage(tokens(e.usage))
  else
    ignored(e.type)
  end
end

-- The messages of kimi-cli.
local function wire(kind, p, time)
  local id = raw(time) .. "-" .. kind

  if kind == "TurnBegin" or kind == "SteerInput" then
    step = id
    prompt(id, time, p.user_input)
  elseif kind == "StepBegin" then
    step = id
  elseif kind == "ContentPart" then
    answer(id, step, time, p)
  elseif kind == "ToolCall" then
    answer(id, step, time, {},
      { { id = p.id, name = p["function"].name, args = p["function"].arguments } })
  elseif kind == "ToolResult" then
    local r = p.return_value

    result(id, p.tool_call_id, time, r.output ~= "" and r.output or r.message, r.is_error)
  elseif kind == "StatusUpdate" and p.token_usage then
    usage(tokens(p.token_usage))
  else
    ignored(kind)
  end
end

importer {
  name = "kimi",
  form = "lines",
  places = { "${KIMI_CODE_HOME:-~/.kimi-code}/sessions", "${KIMI_SHARE_DIR:-~/.kimi}/sessions" },
  beside = { "state.json", "kimi.json" },
  unique = true,
  tree = true,
  ignores = { "think", "context", "injection", "step.begin", "context.clear", "context.undone",
    "agent", "config", "cron", "forked", "full_compaction", "goal", "llm", "mcp", "permission",
    "plan", "plugin", "profile", "prompt", "runtime", "skill", "task", "todo",
    "token_counting", "tools", "turn", "usage", "TurnEnd", "StepInterrupted", "CompactionBegin",
    "CompactionEnd", "StatusUpdate",
    "ApprovalRequest", "ApprovalResponse", "ToolCallPart", "SubagentEvent", "Notification",
    "HookTriggered", "HookResolved", "PlanDisplay", "MCPLoadingBegin", "MCPLoadingEnd",
    "BtwBegin", "BtwEnd", "QuestionRequest" },

  is = function(r)
    return r.type == "metadata" and type(r.protocol_version) == "string"
      or type(r.timestamp) == "number" and type(r.message.type) == "string"
        and has(r.message, "payload")
      or match(r.role or "", "^_(?:system_prompt|checkpoint|usage)$") -- context.jsonl repeats them
  end,

  record = function(r)
    local kind, time = r.type, r.time
    local m = r.message

    if r.role then return ignored("context") end
    if not began and (r.agentId or m) then begin(r) end
    if kind == "llm.request" then
      session { model = r.model, provider = r.provider }
    elseif kind == "context.append_message" then
      local from = m.origin.kind

      if m.role ~= "user" or from and from ~= "user" then return ignored("injection") end
      prompt(m.id, time, m.content)
    elseif kind == "context.append_loop_event" then
      event(r.event, time)
    elseif kind == "context.undo" then
      rewind(r.count)
    elseif kind == "context.apply_compaction" then
      message { role = "system", id = "compaction-" .. raw(r.time), time = time,
        content = r.summary }
    elseif kind == "metadata" then
      ignored()
    elseif kind then
      -- Each version has new kinds of these: turn.prompt, which repeats the prompt, for example.
      ignored(starts(kind, "context.") and kind or match(kind, "^[^.]+"))
    elseif type(m) == "object" then
      wire(m.type, m.payload, r.timestamp)
    else
      bad("no 'type'")
    end
  end,
}
