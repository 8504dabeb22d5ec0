/*
 * provider_echo - a model that answers offline with the prompt it was given and how many messages
 * it came with:
 *
 *     PROMPT
 *     [3 messages]
 *
 * PROMPT is the last user message of the context; the system prompt is not counted. It streams like
 * the others: its answer is a stream of server-sent events of its own making, a word or so each,
 * fed through the same path. Tokens are words between white space.
 *
 * Faults on demand, for testing scripts: `-o delay_ms=N` (pause before each delta), `-o status=N`
 * (an HTTP error of that status), `-o cut=N` (the connection breaks after N bytes of the answer's
 * text). Another option, or another value, is ERR_USAGE.
 */
#ifndef CHATHIST_LLM_PROVIDER_ECHO_H
#define CHATHIST_LLM_PROVIDER_ECHO_H

#include "chathist/llm/provider.h"

extern const struct provider provider_echo;

#endif
