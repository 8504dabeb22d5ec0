-- Claude Code: ~/.claude/projects/PROJECT/SESSION.jsonl, and SESSION/subagents/ beside it.
-- Seen: files of 0.2 to 2.1.332. Its maker does not document the format. Others describe it:
-- ticpu/claude-conversation-search-mcp, docs/jsonl-format.md; simonw/claude-code-transcripts.
--
-- Each line is a record with type, uuid, sessionId and timestamp; those of type user and assistant
-- have a message of Anthropic's Messages API. An answer has a record for each content block. The
-- output of `claude -p --output-format stream-json` has the same records, with session_id.

-- Texts that the program writes in the user's name. A command that the user sends as a prompt
-- begins with <command-message>.
local harness = [[^\s*(?:<command-name>|<local-command-|<bash-stdout>|<bash-stderr>|]] ..
  [[<task-notification>|<system-reminder>|\[Request interrupted by user)]]

-- Of a response that was read from the cache, Anthropic counts these tokens apart.
local function tokens(u, cost)
  local long = u.cache_creation.ephemeral_1h_input_tokens or 0

  return u and { input = u.input_tokens, output = u.output_tokens, cost = cost, apart = true,
    cache_read = u.cache_read_input_tokens, cache_write = u.cache_creation_input_tokens,
    long_cache_write = long > 0 and long or nil }
end

local function answer(r, m)
  -- The program itself wrote this message instead of a response.
  local own = m.model == "<synthetic>"

  message {
    role = "assistant", id = r.uuid, response = m.id, joins = not m.id,
    session = r.sessionId or r.session_id, agent = r.isSidechain and (r.agentId or "sidechain"),
    time = r.timestamp, content = m.content, provider = "anthropic",
    cwd = r.cwd, branch = r.gitBranch,
    model = not own and m.model or nil,
    usage = not own and tokens(m.usage, r.costUSD) or nil,
    finish = r.isApiErrorMessage and "error" or m.stop_reason,
  }
end

local function prompt(r, content, parent)
  message {
    -- The summary that replaces a conversation that grew too long is no prompt.
    role = r.isCompactSummary and "system" or "user",
    id = r.uuid, parent = parent,
    session = r.sessionId or r.session_id, agent = r.isSidechain and (r.agentId or "sidechain"),
    time = r.timestamp, content = content, cwd = r.cwd, branch = r.gitBranch,
  }
end

importer {
  name = "claude-code",
  form = "lines",
  resume = "claude --resume {session}",
  places = { "${CLAUDE_CONFIG_DIR:-~/.claude}/projects",
    "${CLAUDE_CONFIG_DIR:-${XDG_CONFIG_HOME:-~/.config}/claude}/projects" },
  erases = "after 30 days", -- unless its setting cleanupPeriodDays says otherwise
  unique = true,
  tree = true,
  grows = true,
  harness = harness,
  ignores = { "thinking", "redacted_thinking", "system", "progress", "attachment", "result",
    "stream_event", "queue-operation", "file-history-snapshot", "last-prompt",
    "agent-name", "permission-mode", "api-request", "api-request-blob", "api-request-shape" },

  is = function(r)
    return type(r.type) == "string" and type(r.sessionId) == "string"
      and not r.message.parts and not has(r, "systemPayload") -- Qwen Code's
      or type(r.session_id) == "string" and type(r.uuid) == "string" and
        (r.type == "system" or r.type == "user" or r.type == "assistant")
      or r.type == "summary" and type(r.leafUuid) == "string"
      or r.type == "file-history-snapshot"
  end,

  record = function(r)
    local kind, m = r.type, r.message

    link(r.uuid, r.parentUuid)
    if r.entrypoint == "chathist" and scanning() then
      ignored() -- an export wrote it
    elseif not kind then
      bad("no 'type'")
    elseif kind == "custom-title" then
      title { text = r.customTitle, given = true }
    elseif kind == "ai-title" then
      title { text = r.aiTitle }
    elseif kind == "summary" then
      title { text = r.summary, of = r.leafUuid }
    elseif kind == "attachment" and r.attachment.type == "queued_command" then
      -- What the user typed while a tool ran; the program queues notes of its own, too.
      local a = r.attachment
      if (a.commandMode or "prompt") == "prompt" and a.origin.kind ~= "task-notification" then
        prompt(r, a.prompt)
      else
        ignored()
      end
    elseif kind ~= "user" and kind ~= "assistant" then
      -- Notes of the program change with each version.
      if type(m) == "object" then ignored(kind) end
    elseif not r.uuid then
      bad("no 'uuid'")
    elseif not m then
      bad("no 'message'")
    elseif r.isMeta or r.origin.kind == "task-notification" then
      ignored()
    elseif kind == "assistant" then
      answer(r, m)
    else
      prompt(r, m.content, r.parentUuid)
    end
  end,
}
