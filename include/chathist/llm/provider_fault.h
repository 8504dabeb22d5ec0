/*
 * provider_fault - what servers say when they fail, in whatever form, as one message and kind.
 *
 * The forms that are read: {"error":{"message","type","code"}}, {"error":"text"}, {"message"},
 * {"detail"}, {"object":"error","message"}, each also as the first element of an array; else text,
 * of which the first line is shown, or HTML. Sources: openai-openapi, Anthropic's error page,
 * llama.cpp server, vLLM, FastAPI, Ollama, OpenRouter.
 */
#ifndef CHATHIST_LLM_PROVIDER_FAULT_H
#define CHATHIST_LLM_PROVIDER_FAULT_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* Does this JSON value report an error: a truthy `error`, or `object` of "error"? */
bool fault_reported(struct str value);
/* The same, of these two members of it. */
bool fault_in(struct str error, struct str object);
/* The error that the JSON value reports, inside an answer of status 200: by its numeric code, else
 * by its type. Returns -1. */
int fault_set_reported(struct err *e, struct str value);
/* The error of an HTTP answer: `HTTP 429: its message`. The kind is the status's, or ERR_REFUSED
 * where the body tells of the content policy or a context that is too long. Returns -1. */
int fault_set_answer(struct err *e, int status, struct str body);

/* Adds to the error of an HTTP answer what the user can do about it: where the key came from (401,
 * 403), which models there are, or that the base URL may be wrong (404). */
struct ask;
void fault_explain(struct err *e, int status, struct str body, const struct ask *ask);

/* A secret is at least this long, in bytes: people give servers that need no key one such as `x` or
 * `ollama`, which is in many other words. */
#define SECRET_MIN 8
/* Replaces the key in e's message by `***`: a server may repeat it. NULL: there is none. One shorter
 * than SECRET_MIN stays. */
void fault_mask(struct err *e, const char *key);

/* Adds what the title of an HTML page says, and that it is one; false, and nothing, when the text is
 * none. */
bool fault_add_page(struct buf *out, struct str body);
/* Adds the first `max` code points of text on one line, made safe to show; `…` when there is
 * more. */
void fault_add_excerpt(struct buf *out, struct str text, size_t max);

#endif
