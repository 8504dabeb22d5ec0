/*
 * provider_openai_messages - a context as the messages of OpenAI's wire (PROTOCOLS section 2).
 *
 * What servers want to see again with the calls that they made goes back to the provider it came
 * from, out of the message's thinking: Gemini's signature of its thoughts, which stands in a call's
 * `extra_content` (ai.google.dev/gemini-api/docs/thought-signatures; without it Gemini 3 answers
 * HTTP 400), DeepSeek's `reasoning_content` (api-docs.deepseek.com/guides/thinking_mode; likewise),
 * and OpenRouter's `reasoning_details` (openrouter.ai/docs/guides/best-practices/reasoning-tokens).
 * They are told for the whole conversation, not for its last turn alone.
 *
 * Mistral takes ids of calls of exactly nine letters and digits
 * (mistralai.github.io/mistral-common, "Tools"; github.com/anomalyco/opencode/issues/1680): others
 * become ones, the same in every request, none twice in one, in the request alone.
 */
#ifndef CHATHIST_LLM_PROVIDER_OPENAI_MESSAGES_H
#define CHATHIST_LLM_PROVIDER_OPENAI_MESSAGES_H

#include <stdbool.h>

#include "base/json_tree.h"
#include "llm/context.h"

/* Makes the array, the caller's to free, of a context that is settled; `system` (its p may be NULL:
 * none) is the system prompt. */
struct json_tree *openai_messages(const struct context *c, struct str system, const char *provider,
                                  bool short_ids);

#endif
