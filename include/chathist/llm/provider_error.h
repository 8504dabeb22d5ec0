/*
 * provider_error - turns the error of a server, in whatever form it comes, into one message and
 * kind.
 *
 * The forms that are understood: {"error":{"message","type","code"}}, {"error":"text"},
 * {"message"}, {"detail"}, {"object":"error","message"}, each also as the first element of an
 * array; otherwise text, of which the first line is shown, or HTML, of which the title is shown.
 * Sources: openai-openapi, Anthropic's error page, llama.cpp server, vLLM, FastAPI, Ollama,
 * OpenRouter.
 */
#ifndef CHATHIST_LLM_PROVIDER_ERROR_H
#define CHATHIST_LLM_PROVIDER_ERROR_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/secret.h"

/* Returns true if this JSON value reports an error: it has an `error` that is not null, false, 0 or
 * empty, or its `object` is "error". */
bool provider_error_reported(struct str value);
/* The same, given the values of these two members. */
bool provider_error_in(struct str error, struct str object);
/* Sets the error that a JSON value inside a response of status 200 reports. The kind follows from
 * its numeric code, or else from its type. Returns -1. */
int provider_error_set_reported(struct err *e, struct str value);
/* Sets the error of an HTTP response: `HTTP 429: MESSAGE`. The kind follows from the status, but is
 * ERR_REFUSED if the body is about the content policy, and ERR_TOO_LONG if the context is too long.
 * Returns -1. */
int provider_error_set_http(struct err *e, int status, struct str body);

/* Returns the body of an error without the `data:` before it: LiteLLM sends an event
 * (`data: {"error": ...}`). */
struct str provider_error_body(struct str body);

/* Returns the object that describes an error, which may be the reply itself. If the reply is an
 * array, *value becomes its first element. */
struct str provider_error_object(struct str *value);

/* Returns true if the text of an error has one of the words, given in lower case, in any case. */
bool provider_error_mentions(struct str text, const char *const *words);
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Adds advice to the error of an HTTP response: where the key came from (401, 403), how to list the
 * models, or else `missing`, which may be NULL, or that the base URL may be wrong (404). Does
 * nothing if e is NULL, or without a base URL, as for the echo provider. */
void provider_error_explain(struct err *e, int status, struct str body, const struct ask *ask,
                            const char *missing);

/* Returns true if the name of a header says that its value is a secret. The value of a header is
 * masked if its name says so, or if a command prints it. */
bool header_names_secret(const char *name);
/* Returns the secret in a header, the last word of its value, as in `Bearer KEY`; or NULL. */
const char *header_secret(const struct ask_header *header);
/* Masks the key and the secrets in headers in e's message. */
void provider_error_mask(struct err *e, const struct ask *ask);

/* If body is an HTML page, adds its title and the fact that it is a page. Returns false, and adds
 * nothing, if it is not. */
bool provider_error_add_page(struct buf *out, struct str body);
/* Adds the first `max` code points of text as one line that is safe to show, with `…` if there is
 * more. */
void provider_error_add_excerpt(struct buf *out, struct str text, size_t max);

#endif
