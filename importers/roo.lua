-- Roo Code, and Kilo's extension: tasks/ID/api_conversation_history.json.
-- Seen: none, since they run in an editor; the file in tests/fixtures/import/roo was written by
-- hand. Source: RooCodeInc/Roo-Code, src/core/task-persistence/apiMessages.ts.
--
-- The file is an array of messages of Anthropic's Messages API with the time `ts`. The prompt
-- stands in <task> or <user_message>; <environment_details> come from the program. After a
-- condensation the array is rewritten: messages are named by their times. history_item.json beside
-- it has the id of the task. The model is in neither.

local began

local function plain(text)
  return match(text, [[(?s)^\s*<(task|user_message|feedback)>\s*\K.*?(?=\s*</\1>)]]) or text
end

importer {
  name = "roo",
  form = "elements",
  places = {
    "${XDG_CONFIG_HOME:-~/.config}/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
    "${XDG_CONFIG_HOME:-~/.config}/Code/User/globalStorage/kilocode.kilo-code/tasks",
    "~/Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
    "~/Library/Application Support/Code/User/globalStorage/kilocode.kilo-code/tasks" },
  beside = "history_item.json",
  harness = "^\\s*<environment_details>",
  ignores = { "thinking", "redacted_thinking", "reasoning" },

  is = function(r)
    return (r.role == "user" or r.role == "assistant") and has(r, "content")
      and type(r.ts) == "number"
  end,

  record = function(r)
    local content = {}

    if not r.role then return bad("no 'role'") end
    if not math.tointeger(r.ts) then return bad("no 'ts'") end
    if not began then
      began = "task-" .. fingerprint(r)
      for item in beside("history_item.json") do
        began = item.id or began
        session { cwd = item.workspace }
      end
    end
    session { id = began }
    for block in each(type(r.content) == "string" and json(raw { r.content }) or r.content) do
      local text = type(block) == "string" and block or block.type == "text" and block.text

      if not text then
        table.insert(content, block)
      elseif not match(text, [[^\s*<environment_details>]]) then
        table.insert(content, plain(text))
      end
    end
    message { role = r.isSummary and "system" or r.role, time = r.ts,
      id = math.tointeger(r.ts) .. "-" .. r.role, content = json(raw(content)) }
  end,
}
