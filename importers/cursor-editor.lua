-- Cursor's editor: globalStorage/state.vscdb of its user folder.
-- Seen: none, since it runs in windows and wants an account; the file in
-- tests/fixtures/import/cursor-editor was written by hand in the form that
-- getspecstory/getspecstory, specstory-cli/pkg/providers/cursoride, reads. Its maker does not
-- document the format.
--
-- The table cursorDiskKV has a session as composerData:ID, with the order of its messages, and each
-- message as bubbleId:SESSION:ID; older sessions have the messages in themselves. A bubble has the
-- text of an answer, or one call with its result. A prompt that was edited is a new bubble; the
-- bubbles after the old one leave the order. Tokens are counted for a bubble, mostly as 0.

local function tokens(u)
  local input, output = u.inputTokens or 0, u.outputTokens or 0

  return (input > 0 or output > 0) and { input = input, output = output } or nil
end

-- One call, whose arguments are JSON in a text.
local function call_of(b, id, time, model)
  local tool = b.toolFormerData
  local call = tool.toolCallId or id
  local args = tool.rawArgs or tool.params

  if not tool.name then return end
  message { role = "assistant", id = id, time = time, model = model,
    calls = { { id = call, name = tool.name,
      args = type(args) == "string" and args or raw(args) } } }
  if tool.result then
    message { role = "tool", id = id .. "-result", time = time, content = tool.result,
      result_of = call, failed = tool.status == "error" }
  end
end

local function give(b, s)
  -- Older bubbles have only a duration: they get the time of their session.
  local id, time = b.bubbleId, b.createdAt or b.timingInfo.clientStartTime or s.createdAt
  local model = b.modelInfo.modelName or s.modelConfig.modelName

  if b.type == 1 then
    message { role = "user", id = id, time = time, content = b.text, images = #(b.images or {}) }
  elseif b.type == 2 then
    if (b.text or "") ~= "" then
      message { role = "assistant", id = id, time = time, content = b.text,
        model = model, usage = tokens(b.tokenCount) }
    end
    call_of(b, id .. "-call", time, model)
  else
    bad("a bubble of an unknown type")
  end
end

local function give_session(row)
  local s = json(row.value)
  local found = 0

  if not s.composerId then return ignored() end
  session { id = s.composerId, cwd = s.workspaceIdentifier.uri.fsPath or "" }
  for head in each(s.fullConversationHeadersOnly or s.conversation) do
    local whole = head.text and head

    for b in rows("SELECT value FROM cursorDiskKV WHERE key = ?1",
      "bubbleId:" .. s.composerId .. ":" .. (head.bubbleId or "")) do
      whole = json(b.value)
    end
    -- A bubble without a row was not written yet.
    if whole and whole.bubbleId then
      found = found + 1
      give(whole, s)
    end
  end
  if found > 0 then title { text = s.name } end
  ignored() -- a draft has no bubbles
end

importer {
  name = "cursor-editor",
  form = "sqlite",
  places = { "${XDG_CONFIG_HOME:-~/.config}/Cursor/User/globalStorage/state.vscdb",
    "~/Library/Application Support/Cursor/User/globalStorage/state.vscdb" },
  tables = { "cursordiskkv", "itemtable" },

  is = function(tables)
    return tables.cursordiskkv and tables.itemtable
  end,

  queries = {
    { "SELECT value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'" ..
      " AND json_valid(value) ORDER BY value ->> 'createdAt', key", give_session },
  },
}
