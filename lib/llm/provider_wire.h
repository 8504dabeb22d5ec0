/*
 * provider_wire - what the wires of several providers have in common.
 */
#ifndef CHATHIST_LLM_PROVIDER_WIRE_H
#define CHATHIST_LLM_PROVIDER_WIRE_H

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/cjson.h"
#include "chathist/llm/response.h"
#include "chathist/llm/provider.h"

/* Begin a request: its URL and the headers that hold no key. The URL is the base URL, `version`
 * ("/v1" or "") unless it ends so, and the path; a query of the base URL stays one, behind that of
 * the path. */
int wire_begin_post(struct http_request *r, const struct provider *p, const struct ask *ask,
                    const char *version, const char *path, struct err *e);
int wire_begin_get(struct http_request *r, const struct provider *p, const struct ask *ask,
                   const char *version, const char *path, struct err *e);
/* Is there an option of that name? */
bool wire_has_option(const struct ask *ask, const char *key);
/* Puts the options into the body: valid JSON as it is, all else as a string. They come last, for
 * they count for more than what the provider makes of the rest. */
void wire_set_options(cJSON *body, const struct ask *ask);

/* Notes the model's name, a JSON string, unless there is one. */
void wire_take_model(struct response *a, struct str model);
/* A finish reason in the words of chathist(5). NULL ends a list; what is not in it stays as it
 * is. */
struct wire_name {
    const char *theirs, *ours;
};
struct str wire_finish(struct str reason, const struct wire_name *names);
/* The error of an event or answer that cannot be used: `what: 'its beginning'`. Returns -1. */
int wire_unusable(struct err *e, enum err_kind kind, const char *what, struct str data);
/* The value of an event's data, of a whole answer. -1: it is not JSON, or nested too deeply
 * for us. */
int wire_parse_event(struct str data, struct str *value, struct err *e);
int wire_parse_whole(struct str body, struct str *value, struct err *e);

#endif
