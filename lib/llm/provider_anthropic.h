/*
 * provider_anthropic - Anthropic's Messages API and servers compatible with it (PROTOCOLS section
 * 3; anthropic-sdk-python types and fixtures, platform documentation).
 *
 * How a conversation is put into its messages is in llm/provider_anthropic_messages.
 *
 * The base URL may end in /v1 or before it.
 *
 * The system prompt is a field of its own. `max_tokens` is required: it is chosen by the model's
 * name; the option of that name counts for more. Calls in a request need tools that are declared:
 * the called ones are, as not to be called again, unless the option `tools` declares some.
 *
 * Of its answers: the input that usage counts includes what was read from and written to the cache.
 * One that stops with `pause_turn` is gone on with when its blocks are sent back, as they came, as
 * the last message (platform documentation, "Stop reasons and fallback"; that nothing may stand
 * behind it, github.com/anthropics/anthropic-sdk-python/pull/1507). A refusal has `stop_details`
 * beside its stop reason, {"type":"refusal","category","explanation"}, each of which may be null
 * (platform documentation, "Handle streaming refusals").
 */
#ifndef CHATHIST_LLM_PROVIDER_ANTHROPIC_H
#define CHATHIST_LLM_PROVIDER_ANTHROPIC_H

#include "chathist/llm/provider.h"

extern const struct provider provider_anthropic;

#endif
