/*
 * refused_fields - the fields of requests that a server has refused.
 *
 * Which fields a model accepts changes with every model, so chat has no table of them. It believes
 * the server: if an error (HTTP 400, 422, or 500 of llama-cpp-python) names a field that the
 * provider or the configuration set, the request is sent again without it. The field is kept here
 * and, for a day, in a cache, so that the next turn does not repeat the error.
 *
 * The name of the field is read from, in this order:
 *
 *  - `error.param` (OpenAI, platform.openai.com/docs/api-reference; Azure, vLLM);
 *  - `loc` of each entry of `detail` (pydantic's errors: FastAPI, Mistral);
 *  - the text of the error: the first word in it that is the path of a field of the request and
 *    stands at the beginning before a colon (Anthropic: `output_config.effort: Extra inputs are not
 *    permitted`), in quotes (Groq: `property 'x' is unsupported`), after a colon (llama.cpp:
 *    `Unsupported param: x`), or has an underscore.
 *
 * Three fields are not just left out. The two names of the limit, max_tokens and
 * max_completion_tokens, replace each other. The efforts `max` and `minimal`, which few servers
 * know, become the highest and the lowest that the error names. And if the server takes tools only
 * with the effort `none` (OpenAI's GPT-5 models on chat completions), it is set for requests with
 * tools.
 *
 * What chat sends without being asked is refused in other words, too, and then gives way: streaming
 * (the whole answer is asked for), the length of the answer (the largest number in the error that
 * is less than ours, without the tokens of the prompt, else 8192, then 4096) and the system prompt
 * (it is sent before the first prompt). A length that depends on the prompt, or on what the account
 * can pay for, holds for this exchange only.
 *
 * Fields that make the request what it is are never left out (messages, tools, schema, `store` and
 * so on), nor is what a flag of the user set: then the error stands.
 */
#ifndef CHATHIST_LLM_REFUSED_FIELDS_H
#define CHATHIST_LLM_REFUSED_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/provider.h"

/* A field and its replacement. All strings are owned. */
struct refused_field {
    char *path;      /* the names of the objects around the field and its own, with dots */
    char *only;      /* the value that was refused, JSON; NULL: any value */
    char *value;     /* the value that is sent instead, JSON; NULL: none */
    char *name;      /* the field that gets the value instead; NULL: none */
    bool with_tools; /* refused only in requests with tools */
    int64_t since;   /* microseconds since 1970; 0: holds for this prompt only, not remembered */
};

/* The refused fields of one model at one server. Zero-initialise. */
struct refused_fields {
    struct refused_field *at;
    size_t count, cap;
    size_t stored; /* the cache has this many of them */
};
/* Adds the field, whose strings the list then owns. Returns false, and releases it, if the same was
 * refused before. */
bool refused_fields_add(struct refused_fields *f, struct refused_field field);
void refused_field_release(struct refused_field *field);
void refused_fields_release(struct refused_fields *f);
/* Ends an exchange before which there were `first` fields: forgets the later ones, if they `helped`
 * only those that are not remembered. */
void refused_fields_settle(struct refused_fields *f, size_t first, bool helped);

/* The path that stands for the role of the system prompt. */
#define REFUSED_SYSTEM "system prompt"

/* Builds the request as p->request does, with the system prompt before the first prompt if the
 * model has refused it. Returns 0, or -1 with *e set. */
int refused_fields_request(const struct provider *p, const struct ask *ask, struct http_request *r,
                           struct err *e);

/* Reads the error `reply` to the request body `sent`; `too_long` says whether it calls the
 * conversation too long. If it refuses a field that can be done without, adds the field to
 * ask->refused, adds a line for the user to `notice`, and returns true. */
bool refused_fields_learn(const struct provider *p, const struct ask *ask, int status,
                          bool too_long, struct str reply, struct str sent, struct buf *notice);

/* ---- the cache (llm/refused_cache, which uses libcurl) ---- */

/* Loads the fields of a model from the cache, without those older than a day. The list is
 * empty if the cache has no file for the server. */
void refused_fields_load(struct refused_fields *f, const char *dir, const struct provider *p,
                         const char *base_url, const char *model);
/* Writes them into the cache, beside what other programs have added there meanwhile, which is added
 * to f, too. Returns 0, or -1 with *e set. */
int refused_fields_store(struct refused_fields *f, const char *dir, const struct provider *p,
                         const char *base_url, const char *model, struct err *e);

#endif
