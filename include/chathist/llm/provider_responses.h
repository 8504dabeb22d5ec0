/*
 * provider_responses - OpenAI's Responses API, and the servers that are compatible with it.
 *
 * Sources: the schema (github.com/openai/openai-openapi, CreateResponse and ResponseStreamEvent),
 * openai-python (types/responses), and the guides "Reasoning models", "Conversation state" and
 * "Function calling" at developers.openai.com/api/docs. Where compatible servers are stricter than
 * the schema, their source is named beside the code.
 *
 * A conversation is sent whole with each request, and the server is asked to store nothing
 * (`store`). The items of a response go back to the provider that sent them, byte for byte and in
 * their order, because reasoning is encrypted and its server refuses it without the item that
 * follows it. They go back inside a loop of calls and results, and in later turns, too: the server
 * decides which of them the model sees (`reasoning.context`).
 */
#ifndef CHATHIST_LLM_PROVIDER_RESPONSES_H
#define CHATHIST_LLM_PROVIDER_RESPONSES_H

#include "chathist/llm/provider.h"

/* `openai` at OpenAI's own base URL. At any other it is provider_openai, which speaks Chat
 * Completions, as nearly all compatible servers do. */
extern const struct provider provider_openai_own;
/* `openai-responses`: the Responses API at any base URL. */
extern const struct provider provider_responses;

#endif
