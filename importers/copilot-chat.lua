-- GitHub Copilot Chat in VS Code: workspaceStorage/HASH/chatSessions/ID.json, newer ones ID.jsonl.
-- Seen: none, since it runs in an editor and wants an account; the files in
-- tests/fixtures/import/copilot-chat were written by hand in the form that kenn-io/agentsview,
-- internal/parser/vscode_copilot.go, reads (version 3).
-- Source: microsoft/vscode, src/vs/workbench/contrib/chat/common/model/chatModel.ts.
--
-- ID.json is the session. ID.jsonl has it first and then its changes {kind, k, v}: kind 0 is the
-- whole, 1 sets the member at the path k, 2 appends the items v to the array there, from the index
-- i on if there is one, 3 deletes. An answer is a list of parts: those without a kind are texts,
-- and a reference stands inside the sentence around it. workspace.json has the directory.

local chat -- the session so far: a table

local function copy(v)
  local t, n = {}, 0

  if type(v) ~= "object" and type(v) ~= "array" then return v end
  for item, key in each(v) do
    n = n + 1
    t[type(v) == "array" and n or key] = copy(item)
  end
  return t
end

local function change(r)
  local at, last = chat, nil

  for key in each(r.k) do
    local step = type(key) == "number" and math.tointeger(key) + 1 or key

    if last then
      at[last] = at[last] or {}
      at = at[last]
    end
    last = step
  end
  if not last then return bad("a change has no path") end
  if r.kind == 2 then
    local list = at[last] or {}

    for i = #list, r.i and math.tointeger(r.i) + 1 or #list + 1, -1 do list[i] = nil end
    for item in each(r.v) do list[#list + 1] = copy(item) end
    at[last] = list
  else
    at[last] = r.kind == 1 and copy(r.v) or nil
  end
end

local function text_of(v)
  return type(v) == "table" and (v.value or v.content) or v
end

-- Calls have their arguments, and their results, beside the answer.
local function calls_of(about)
  local args, results = {}, {}

  for _, round in ipairs(about.toolCallRounds or {}) do
    for _, call in ipairs(round.toolCalls or {}) do args[call.id or ""] = call.arguments end
  end
  for id, result in pairs(about.toolCallResults or {}) do
    local texts = {}

    for _, part in ipairs(result.content or {}) do
      if type(part.value) == "string" then table.insert(texts, part.value) end
    end
    results[id] = texts
  end
  return args, results
end

local function answer(r, time)
  local about = r.result.metadata or {}
  local args, results = calls_of(about)
  local text, calls, n = "", {}, 0
  local model = about.resolvedModel or match(r.modelId or "", "[^/]+$")

  local function give(last)
    if text == "" and #calls == 0 then return end
    n = n + 1
    message { role = "assistant", id = r.requestId .. "-" .. n, time = time, content = text,
      calls = calls, model = model,
      usage = last and { input = about.promptTokens, output = about.outputTokens } or nil }
    for _, call in ipairs(calls) do
      if results[call.id] then
        message { role = "tool", id = call.id, time = time, content = results[call.id],
          result_of = call.id }
      end
    end
    text, calls = "", {}
  end
  for _, part in ipairs(r.response or {}) do
    local kind, file = part.kind, part.inlineReference

    if not kind or kind == "markdownContent" or kind == "markdownVuln" or kind == "warning" then
      if #calls > 0 then give() end
      text = text .. (text_of(part.value) or text_of(part.content) or "")
    elseif kind == "inlineReference" then
      file = part.name or file.name or
        match(file.path or file.uri.path or file.fsPath or "", "[^/]+$")
      text = text .. "`" .. (file or "") .. "`"
    elseif kind == "toolInvocationSerialized" then
      table.insert(calls, { id = part.toolCallId, name = part.toolId,
        args = args[part.toolCallId or ""] or "{}" })
    else
      ignored(kind)
    end
  end
  give(true)
end

local function give()
  if not chat then return end
  session { id = chat.sessionId }
  for workspace in beside("workspace.json") do
    session { cwd = match(workspace.folder or "", "^file://\\K.*") }
  end
  for _, r in ipairs(chat.requests or {}) do
    if r.requestId and not r.shouldBeRemovedOnSend then
      message { role = "user", id = r.requestId, time = r.timestamp,
        content = r.message.text or r.message }
      answer(r, r.timestamp)
    end
  end
  title { text = chat.customTitle, given = true }
end

importer {
  name = "copilot-chat",
  form = "elements",
  places = {
    "${XDG_CONFIG_HOME:-~/.config}/Code/User/workspaceStorage",
    "${XDG_CONFIG_HOME:-~/.config}/Code/User/globalStorage/emptyWindowChatSessions",
    "${XDG_CONFIG_HOME:-~/.config}/Code - Insiders/User/workspaceStorage",
    "${XDG_CONFIG_HOME:-~/.config}/VSCodium/User/workspaceStorage",
    "~/.vscode-server/data/User/workspaceStorage",
    "~/Library/Application Support/Code/User/workspaceStorage",
    "~/Library/Application Support/Code/User/globalStorage/emptyWindowChatSessions" },
  beside = "workspace.json",
  ignores = { "textEditGroup", "notebookEditGroup", "codeblockUri", "undoStop", "thinking",
    "prepareToolInvocation", "progressMessage", "progressTaskSerialized", "confirmation", "command",
    "elicitation", "elicitationSerialized", "mcpServersStarting", "codeCitation", "treeData",
    "multiDiffData", "extensions", "pullRequest", "hook", "workspaceEdit", "externalEdits" },

  is = function(r)
    return type(r.requests) == "array" and type(r.sessionId) == "string"
      or r.kind == 0 and type(r.v.requests) == "array" and type(r.v.sessionId) == "string"
  end,

  record = function(r)
    ignored()
    if type(r.requests) == "array" then chat = copy(r)
    elseif r.kind == 0 then chat = copy(r.v)
    elseif chat and r.kind then change(r)
    else bad("neither a session nor a change of one")
    end
  end,

  finish = give,
}
