/*
 * provider_echo - a model that works offline: it answers with the prompt and the number of messages
 * that it was sent.
 *
 *     PROMPT
 *     [3 messages]
 *
 * PROMPT is the last user message of the context. The system prompt is not counted. The answer
 * streams as server-sent events, about one word each, through the same code as other answers.
 * Tokens are words between white space.
 *
 * Options make it fail, so that scripts can be tested: `-o delay_ms=N` (a pause before each delta),
 * `-o status=N` (an HTTP error of that status), `-o cut=N` (the connection breaks after N bytes of
 * the text). Any other option or value is ERR_USAGE.
 */
#ifndef CHATHIST_LLM_PROVIDER_ECHO_H
#define CHATHIST_LLM_PROVIDER_ECHO_H

#include "chathist/llm/provider.h"

extern const struct provider provider_echo;

#endif
