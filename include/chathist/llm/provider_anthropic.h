/*
 * provider_anthropic - Anthropic's Messages API and the servers that are compatible with it.
 *
 * Sources: the platform documentation (platform.claude.com/docs), and the types and fixtures of
 * anthropic-sdk-python.
 *
 * The base URL may end in /v1 or before it. The system prompt is a separate field. `max_tokens` is
 * required; it is more than most models write, and their refusal names their maximum. Tool calls in
 * a request need declared tools. If a request has none, the tools that were called are declared
 * with `tool_choice` none, unless the option `tools` declares some.
 *
 * Nothing depends on the name of the model. What a model does not know (`thinking`,
 * `cache_control`, a format for the answer) is refused with HTTP 400 and then left out. `thinking`
 * and `output_config.effort` are sent if the user wants to see reasoning or sets the effort
 * ("Thinking", "Effort"); `display` is "summarized", because newer models send empty thinking
 * otherwise. `cache_control` at the top level marks the last block of the request ("Prompt
 * caching").
 *
 * Responses: the input tokens of `usage` include the tokens read from and written to the cache. A
 * response that stops with `pause_turn` continues if its blocks are sent back unchanged as the last
 * message ("Stop reasons and fallback"; nothing may follow them,
 * github.com/anthropics/anthropic-sdk-python/pull/1507). A refusal has `stop_details`,
 * {"type":"refusal","category","explanation"}, of which the last two may be null ("Handle streaming
 * refusals").
 */
#ifndef CHATHIST_LLM_PROVIDER_ANTHROPIC_H
#define CHATHIST_LLM_PROVIDER_ANTHROPIC_H

#include "chathist/base/cjson.h"
#include "chathist/llm/context.h"
#include "chathist/llm/provider.h"

extern const struct provider provider_anthropic;

/*
 * Makes two arrays, which the caller frees: the messages of a settled context, and a declaration of
 * each tool that is called in them. *tools is NULL if no tool is called. A request must end with
 * the user's message; a conversation that is exported may end with the model, and it may be empty.
 *
 *  - Turns alternate; the user begins and ends. If the conversation begins with the model, a user
 *    message `…` is put before it. No text is empty or blank.
 *  - Tool results are blocks at the start of the user message after the calls. Ids and names of
 *    calls are rewritten (wire_call_init). Arguments that are not an object are sent as
 *    {"INVALID_JSON":"…"}.
 *  - Images are blocks before the text of their message.
 *  - The blocks of a response go back in their order (thinking, call, thinking, text, call) to the
 *    provider that wrote them, if everything before them is unchanged ("Preserved thinking"): the
 *    model, the tools, the system prompt and the messages, blocks included. So each request that is
 *    made here continues an earlier one, or is free of blocks from the change on. If only the
 *    thinking was kept, it comes first. Blocks without a checksum go back
 *    during their loop of calls and results only (context_in_loop).
 */
void anthropic_conversation(const struct context *context, const char *provider, cJSON **messages,
                            cJSON **tools);

#endif
