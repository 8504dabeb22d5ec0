/*
 * refusals - the parts of requests that a server has refused, and their replacements.
 *
 * What a model accepts changes with every model, so chat has no list of it. It believes the server:
 * if an error (HTTP 400, 422, 500 or 501) refuses something that chat or the configuration chose,
 * chat says so, asks again without it, and remembers it for a day in a cache. The table `rules` in
 * llm/refusals.c has what can be refused and the words of servers for it: streaming, the length of
 * the answer, the role of the system prompt, the schema of the answer, single tools (as
 * `tool NAME`) and their number, results of tools, earlier reasoning, and any field of the body.
 *
 * The name of a field is read from `error.param` (OpenAI, platform.openai.com/docs/api-reference;
 * Azure, vLLM), else from `loc` of each entry of `detail` (pydantic's errors: FastAPI, Mistral),
 * else from the text of the error: the first word that is the path of a field of the request and
 * stands at the beginning before a colon (Anthropic: `output_config.effort: Extra inputs are not
 * permitted`), in quotes (Groq: `property 'x' is unsupported`), after a colon (llama.cpp:
 * `Unsupported param: x`), or has an underscore.
 *
 * Fields that make the request what it is are never left out (messages, tools, `store` and so on),
 * nor is what a flag of the user set: then the error stands.
 */
#ifndef CHATHIST_LLM_REFUSALS_H
#define CHATHIST_LLM_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/provider.h"

enum refusal_text {
    REFUSED_THING, /* the path of a field, its names separated by dots, or one of the names below */
    REFUSED_ONLY,  /* the value that was refused, JSON; NULL: any value */
    REFUSED_VALUE, /* the value that is sent instead, JSON; NULL: none */
    REFUSED_NAME,  /* the field that gets that value; without a value, the new name of the field */
    REFUSED_TEXTS
};

struct refusal {
    char *text[REFUSED_TEXTS]; /* owned */
    int64_t since;             /* microseconds since 1970, or one of these: */
};
#define REFUSED_NOW 0     /* it holds for this exchange */
#define REFUSED_HERE (-1) /* it holds while the program runs */

/* Things that are no fields. */
#define REFUSED_SYSTEM "system prompt"        /* its role */
#define REFUSED_SCHEMA "answer schema"        /* its field */
#define REFUSED_JSON_SCHEMA "json schema"     /* its newer form in response_format */
#define REFUSED_RESULTS "results of tools"    /* their role */
#define REFUSED_REASONING "earlier reasoning" /* and all else that goes back as it came */
#define REFUSED_MANY "number of tools"        /* a number of them; the value is how many are sent */
#define REFUSED_SILENCE "no reasoning"        /* messages without `reasoning_content` */
#define REFUSED_UNSIGNED "no signature"       /* calls without one (Gemini) */

/* What one model at one server has refused. Zero-initialise. */
struct refusals {
    struct refusal *at;
    size_t count, cap;
    size_t stored;      /* the cache has this many of them */
    char *path, *model; /* the cache's file and key; NULL: there is no cache */
};
void refusals_release(struct refusals *f);
/* Returns whether it has been refused: any value of it, or this one (REFUSED_ONLY), unless that is
 * NULL. `f` may be NULL. */
bool refusals_have(const struct refusals *f, const char *thing, const char *only);
/* Ends an exchange before which there were `first`: forgets the later ones, if they `helped` only
 * those that hold for the exchange. */
void refusals_end_exchange(struct refusals *f, size_t first, bool helped);

/* Reads the cache, a file for each server (model_cache_path), without entries older than a day. f
 * takes `path`, which may be NULL. */
void refusals_load(struct refusals *f, char *path, const char *model);
/* Writes new entries into the cache, and first adds those to f that other programs have written
 * there meanwhile. Returns 0, or -1 with *e set. */
int refusals_store(struct refusals *f, struct err *e);

/* Builds the request as p->request does, without the refused parts. Returns 0, or -1 with *e set.
 */
int refusals_request(const struct provider *p, const struct ask *ask, struct http_request *r,
                     struct err *e);

/* Reads the error `reply` to the request body `sent`; `too_long` says whether it calls the
 * conversation too long. If it refuses something that can be done without, adds it to ask->refused,
 * sets `notice` to a line for the user, which may be empty, and returns true. Otherwise `notice` is
 * the flag that set the refused field, if one did. */
bool refusals_learn(const struct provider *p, const struct ask *ask, int status, bool too_long,
                    struct str reply, struct str sent, struct buf *notice);

#endif
