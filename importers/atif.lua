-- ATIF, the Agent Trajectory Interchange Format: a document that a harness writes.
-- Seen: none; the file in tests/fixtures/import/atif was written by hand from the specification.
-- Source: laude-institute/harbor, docs/rfcs/0001-trajectory-format.md (versions 1.0 to 1.7).

local roles = { user = "user", agent = "assistant", system = "system" }

importer {
  name = "atif",
  form = "document",

  is = function(r)
    return starts(r.schema_version, "ATIF-") and type(r.steps) == "array"
  end,

  record = function(r)
    if type(r.steps) ~= "array" then return bad("no 'steps'") end
    session { id = r.session_id, model = r.agent.model_name }
    for step in each(r.steps) do
      local calls, u, id = {}, step.metrics, step.step_id

      for c in each(step.tool_calls) do
        table.insert(calls, { id = c.tool_call_id, name = c.function_name, args = c.arguments })
      end
      if not roles[step.source] then
        bad("no known 'source'")
      else
        message { role = roles[step.source], id = id, time = step.timestamp,
          content = step.message, calls = calls, model = step.model_name,
          usage = u and { input = u.prompt_tokens, output = u.completion_tokens,
            cache_read = u.cached_tokens, cost = u.cost_usd } }
      end
      for result, n in each(step.observation.results) do
        message { role = "tool", id = id .. "-" .. (result.source_call_id or n),
          time = step.timestamp, content = result.content, result_of = result.source_call_id }
      end
    end
  end,
}
