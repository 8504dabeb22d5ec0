/*
 * provider - the boundary to model servers: who they are and how their wire is spoken.
 *
 * A provider owns its whole wire: the request body and the meaning of its events, answers and
 * errors. One file each (llm/provider_NAME); adding one is adding its file and its line in the
 * table of provider.c. What their errors have in common is in llm/provider_fault.
 */
#ifndef CHATHIST_LLM_PROVIDER_H
#define CHATHIST_LLM_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/llm/answer.h"
#include "chathist/llm/context.h"
#include "chathist/llm/http.h"
#include "chathist/llm/tool.h"

/* `-o key=value`: value is JSON when it is valid JSON, else a string. */
struct ask_option {
    const char *key;
    struct str value;
};

/* Who is told before an exchange is repeated: why the last one failed, and in how many milliseconds
 * the next begins, which is number `repeated` of the repetitions. */
struct ask_watch {
    void (*again)(void *arg, const struct err *why, int64_t ms, unsigned repeated);
    void *arg;
};

/* One request to a model. Borrowed throughout. */
struct ask {
    const struct context *context;
    const char *model;    /* without the provider's name */
    const char *base_url; /* NULL: the provider's own */
    const char *key;      /* NULL: none */
    const char *key_from; /* where the key was found, for messages; NULL: not known */
    const struct ask_option *options;
    size_t options_count;
    const struct tool *const *tools; /* that the model may call */
    size_t tools_count;
    struct str schema; /* a JSON Schema that the answer is to hold to, an object; STR_NONE: none */
    struct str
        paused; /* blocks of the answer that is to be gone on with, an array; STR_NONE: none */
    bool stream;
    struct http_limits limits;
    unsigned retries;              /* how often it may be repeated before any answer came */
    const struct ask_watch *watch; /* NULL: nobody */
};

struct provider {
    const char *name;
    const char *base_url; /* NULL: no server is asked (echo) */
    bool needs_key;       /* at its own base URL */
    /* Environment variables of the ecosystem; NULL: none. Names only: cli/config reads them. */
    const char *key_variable;
    const char *base_variable;
    /* For a server on loopback that is looked for when nothing is configured: a path at its host
     * where it lists its models, and the member that holds the list. Anything may be on such a
     * port, and many answer 200 to every path. NULL: not looked for. */
    struct {
        const char *path, *list;
    } probe;
    /* It tells a stream's usage unasked, and refuses a request that asks for it. */
    bool usage_unasked;
    bool short_call_ids;     /* it takes ids of calls of nine letters and digits only */
    int64_t retry_after_max; /* milliseconds; 0: RETRY_AFTER_MAX */

    /* Builds url, headers and body. The header with the key is part of it. `p` is the provider
     * itself: servers that differ only in their place and their key share the functions. */
    int (*request)(const struct provider *p, const struct ask *ask, struct http_request *r,
                   struct err *e);
    /* Builds the body again without what an HTTP error refuses that the server need not do; false:
     * there is no such thing. *less, 0 at first, is what has been left out so far: bits that only
     * the provider knows. NULL: there never is. */
    bool (*lessen)(const struct provider *p, const struct ask *ask, int status, struct str body,
                   unsigned *less, struct http_request *r);
    /* Carries r out and hands the answer to sink; NULL: http_exchange. */
    int (*exchange)(const struct ask *ask, const struct http_request *r,
                    const struct http_sink *sink, struct err *e);
    /* Builds the request for the list of models (`{"data":[{"id"}, …]}`); NULL: there is one model,
     * named like the provider. ask->context is not used. */
    int (*models)(const struct provider *p, const struct ask *ask, struct http_request *r,
                  struct err *e);
    /* One event of a stream: 0 go on, 1 the stream is over, -1 an error that the server reports or
     * that makes the event unusable. */
    int (*event)(struct answer *a, struct str event, struct str data, struct err *e);
    /* A whole JSON answer: not asked to stream, or a server that does not. */
    int (*whole)(struct answer *a, struct str body, struct err *e);
    /* The message of an error answer, whatever its form: sets *e (kind by status and body),
     * returns -1. */
    int (*failure)(int status, struct str body, struct err *e);
};

/* All providers in the order in which help lists them; NULL ends. */
const struct provider *const *provider_all(void);
/* By name; NULL when there is none. */
const struct provider *provider_find(struct str name);
/* Splits `provider:model`: only where the part before the first colon is a known provider's name;
 * else *provider is NULL and *model is the whole name. */
void provider_split(const char *name, const struct provider **provider, const char **model);
/* The kind of error that an HTTP status means. */
enum err_kind provider_status_kind(int status);

#endif
