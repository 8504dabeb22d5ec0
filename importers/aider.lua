-- Aider: .aider.chat.history.md in the folder in which it is started, mostly of a repository.
-- Seen: 0.86. Source: Aider-AI/aider, aider/io.py (append_chat_history, add_to_input_history).
--
-- A text to which each start adds a heading with its time, prompts as #### and what the program
-- says as block quotes, both with two spaces at the end; other lines are answers. There are no ids:
-- a start is a session, named after its time and first prompt, and a message is its number. All
-- messages have the time of the start, local and without a zone, which is read as UTC. Above a
-- thousand, tokens are rounded to hundreds.

local started, model         -- of the session
local named, n = false, 0    -- it has an id; its messages
local role, lines = nil, {}  -- the message that is being read
local used                   -- its tokens

-- Commands of the program are no prompts; what /ask sends follows as one.
local command = "^/[a-z]"

local function give()
  local text = table.concat(lines, "\n")
  local said = replace(text, [[(?s)^\s*-+\n► \*\*THINKING\*\*.*?\n-+\n► \*\*ANSWER\*\*]], "")

  said = replace(said, [[(?s)\A\s+|\s+\z]], "")
  if started and said ~= "" and not (role == "user" and match(said, command)) then
    if not named then session { id = started .. "-" .. fingerprint(said), model = model } end
    named, n = true, n + 1
    message { role = role, id = n, time = started .. "Z", content = said, usage = used }
  end
  role, lines, used = nil, {}, nil
end

local function add(who, line)
  if role ~= who then give() end
  role = who
  table.insert(lines, line)
end

local function count(line, what)
  local number = match(line, [[[\d.,]+[kM]?(?= ]] .. what .. ")")
  local unit = number and (number:sub(-1) == "k" and 1000 or number:sub(-1) == "M" and 1000000) or 1

  number = number and tonumber(replace(number, "[,kM]", ""))
  return number and math.floor(number * unit + 0.5)
end

local function program(line)
  if starts(line, "> Tokens: ") then
    used = { input = count(line, "sent"), output = count(line, "received"),
      cache_read = count(line, "cache hit"), cache_write = count(line, "cache write"),
      cost = tonumber(match(line, [[Cost: \$\K[\d.]+(?= message)]]) or "") }
  end
  model = match(line, [[^> (?:Main m|M)odel: \K\S+(?= with )]]) or model
  give()
  ignored("output")
end

importer {
  name = "aider",
  form = "text",
  places = { ".aider.chat.history.md", "${AIDER_CHAT_HISTORY_FILE:-~/.aider.chat.history.md}" },
  ignores = { "output" },

  is = function(text)
    return match(text, [[^\s*# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d]])
  end,

  record = function(line)
    local start = match(line, [[^# aider chat started at \K\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$]])

    if start then
      give()
      started, named, n, model = replace(start, " ", "T"), false, 0, nil
      ignored()
    elseif match(line, "^####.*  $") then
      add("user", replace(match(line, "^#### ?\\K.*"), " +$", ""))
    elseif match(line, "^>.*  $") or n == 0 and not role and line ~= "" then
      program(line) -- the command line may have several lines
    elseif role or line ~= "" then
      -- An empty line ends a prompt.
      if role == "user" then give() end
      if role or line ~= "" then add("assistant", line) end
    end
  end,

  finish = give,
}
