/*
 * call_ids - ids and names of tool calls in the form that a server accepts.
 *
 * A history holds calls of many servers. What one of them named `functions.f`, or gave an id of 46
 * characters, another one refuses, and with it every later request of the session:
 *
 *  - OpenAI takes names of `[a-zA-Z0-9_-]{1,64}` (platform.openai.com/docs/api-reference/chat) and
 *    ids of at most 40 characters (github.com/BerriAI/litellm/issues/17343).
 *  - Anthropic takes the same characters in both (platform documentation, "Tool use").
 *  - Mistral takes ids of exactly nine letters and digits (mistralai.github.io/mistral-common,
 *    "Tools"; github.com/anomalyco/opencode/issues/1680).
 *
 * An id that does not fit, or that an earlier call of the request has, is replaced in the request
 * alone. The replacement is computed from the id, so a call keeps it from one request to the next.
 */
#ifndef CHATHIST_LLM_CALL_IDS_H
#define CHATHIST_LLM_CALL_IDS_H

#include <stdbool.h>

#include "chathist/base/buf.h"

#define CALL_ID_MAX 40
#define CALL_NAME_MAX 64

struct call_ids {
    bool nine;          /* ids are nine letters and digits */
    struct buf taken;   /* the ids of the request so far, each between line feeds */
    struct buf waiting; /* the ids whose results come next, each followed by a line feed */
};

void call_ids_init(struct call_ids *ids, bool nine);
void call_ids_release(struct call_ids *ids);
/* A message with calls begins: results that an earlier one still waits for do not come. */
void call_ids_begin(struct call_ids *ids);
/* Adds to `out` the id that the next call of the message gets. */
void call_ids_add(struct call_ids *ids, struct str id, struct buf *out);
/* Adds to `out` the id of the next result: results stand behind their calls, in their order
 * (context_settle). Returns false when no call waits for one. */
bool call_ids_next(struct call_ids *ids, struct buf *out);

/* Adds a tool's name: other characters become `_`, an empty name becomes `unnamed`. */
void call_name_add(struct buf *out, struct str name);

#endif
