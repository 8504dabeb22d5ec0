/*
 * provider_openai_messages - a context as the messages of OpenAI's wire (PROTOCOLS section 2).
 *
 * What servers want to see again with the calls that they made goes back to the provider it came
 * from, out of the message's thinking: Gemini's signature of its thoughts, which stands in a call's
 * `extra_content` (ai.google.dev/gemini-api/docs/thought-signatures; without it Gemini 3 answers
 * HTTP 400), DeepSeek's `reasoning_content` (api-docs.deepseek.com/guides/thinking_mode; likewise),
 * and OpenRouter's `reasoning_details` (openrouter.ai/docs/guides/best-practices/reasoning-tokens).
 * They go with every call of the conversation, not with those of the last turn alone.
 *
 * What servers of this form refuse is put right here, for all of them:
 *  - arguments of a call that are no JSON object become `{}`;
 *  - ids and names of calls get the form of llm/call_ids, the same in a call and in its result;
 *  - content is never null;
 *  - the first message is the user's, and between the result of a tool and the next prompt there is
 *    an answer: where one is missing, `…` stands for it.
 * llm/context has merged neighbouring texts of one role and completed calls without result before.
 */
#ifndef CHATHIST_LLM_PROVIDER_OPENAI_MESSAGES_H
#define CHATHIST_LLM_PROVIDER_OPENAI_MESSAGES_H

#include <stdbool.h>

#include "chathist/base/cjson.h"
#include "chathist/llm/context.h"

/* Makes the array of a context that is settled; the caller frees it. `system` is the system prompt,
 * left out when it is blank. `short_ids`: the server takes ids of calls of nine letters and digits
 * only. */
cJSON *openai_messages(const struct context *c, struct str system, const char *provider,
                       bool short_ids);

#endif
