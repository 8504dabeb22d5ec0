/*
 * provider_openai - OpenAI's Chat Completions API and the servers that are compatible with it.
 *
 * OpenAI's own models answer more and faster through the Responses API (llm/provider_responses),
 * and some only there, so `openai` uses that one at OpenAI's own base URL.
 *
 * Sources: the schema (github.com/openai/openai-openapi) and openai-python, `_streaming.py`.
 *
 * llama.cpp speaks the same API, and Ollama at a base URL that ends in /v1 (see
 * llm/provider_ollama). They are separate providers because they need no key and have usual ports
 * on loopback. Some services are separate providers too, each with its address and
 * its key.
 */
#ifndef CHATHIST_LLM_PROVIDER_OPENAI_H
#define CHATHIST_LLM_PROVIDER_OPENAI_H

#include <stdbool.h>

#include "chathist/base/cjson.h"
#include "chathist/llm/context.h"
#include "chathist/llm/provider.h"

/* `openai` at the base URL of another server (provider_openai_own is at OpenAI's own). */
extern const struct provider provider_openai;
extern const struct provider provider_openai_chat;
extern const struct provider provider_openrouter;
extern const struct provider provider_groq;
extern const struct provider provider_mistral;
extern const struct provider provider_deepseek;
extern const struct provider provider_gemini;
extern const struct provider provider_ollama_chat;
extern const struct provider provider_llamacpp;
extern const struct provider provider_lmstudio;
extern const struct provider provider_vllm;
extern const struct provider provider_docker;

/*
 * Makes the array `messages` of a settled context; the caller frees it. `system` is the system
 * prompt, omitted if it is blank. `short_ids`: the server only takes call ids of nine
 * letters and digits. hist-export uses this function, too.
 *
 * Some servers want parts of their own responses back with the tool calls. These go back from the
 * message's thinking, in the members in which they came, but only to the server that sent them
 * (context_blocks): Gemini's thought signature in a call's `extra_content`
 * (ai.google.dev/gemini-api/docs/thought-signatures; Gemini 3 answers HTTP 400 without it),
 * DeepSeek's `reasoning_content` (api-docs.deepseek.com/guides/thinking_mode; likewise),
 * OpenRouter's `reasoning_details`
 * (openrouter.ai/docs/guides/best-practices/reasoning-tokens), and LiteLLM's `thinking_blocks` and
 * `provider_specific_fields` (docs.litellm.ai/docs/reasoning_content). They go with every call of
 * the conversation, not only with those of the last turn.
 *
 * Calls of another server lack what this one demands. If the server is known to demand it, or says
 * so (llm/refusals), it gets a stand-in: an empty `reasoning_content`, which DeepSeek and Kimi
 * accept; and for the first call of a message the signature `skip_thought_signature_validator`,
 * which Gemini documents for calls that it did not make (the page above, "FAQs").
 *
 * The messages avoid what servers of this API refuse:
 *  - arguments of a call that are not a JSON object become `{}`;
 *  - ids and names of calls are rewritten (wire_call_init), in the call and in its result;
 *  - content is never null;
 *  - the first message is the user's, and an assistant message is between the result of a tool and
 *    the next prompt: if one is missing, `…` is sent.
 * context_finish has merged neighbouring texts of one role and completed calls without a result
 * before.
 */
cJSON *openai_messages(const struct context *c, struct str system, struct context_server asked,
                       bool short_ids);

/* Makes the array `tools`, which Ollama's own API has in the same form. The caller frees it. */
cJSON *openai_tools(const struct ask *ask);

#endif
