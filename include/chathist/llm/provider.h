/*
 * provider - the interface to model servers: which ones exist, and how to speak to each.
 *
 * A provider owns its whole wire: the request body, and the meaning of events and responses. Each
 * has one file (llm/provider_NAME). A new provider needs that file and a line in the table of
 * llm/providers. llm/provider_wire has the parts that several wires share, llm/provider_error the
 * errors of servers.
 */
#ifndef CHATHIST_LLM_PROVIDER_H
#define CHATHIST_LLM_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/context.h"
#include "chathist/llm/http.h"
#include "chathist/llm/response.h"
#include "chathist/llm/tool.h"

struct refusals; /* llm/refusals */

/* Who chose a value of the request, the weakest first. */
enum ask_from { ASK_PROVIDER, ASK_CONFIGURATION, ASK_TEMPLATE, ASK_FLAG };

/* An option from `-o key=value`. The value is JSON if it is valid JSON, otherwise a string. */
struct ask_option {
    const char *key;
    struct str value;
    enum ask_from from;
};

/* A header of the user for every request to the server. It may hold a secret, so it is not shown.
 * An empty value means that the header is not sent. */
struct ask_header {
    const char *name, *value;
    enum ask_from from;
    bool secret; /* the last word of the value is masked if the server repeats it */
};

/* Which schemas a service accepts in a field of the request. */
enum schema_dialect {
    /* `strict` in OpenAI's guide "Structured model outputs": the whole is an object; every object
     * requires all of its properties and allows no others; no other keywords than listed there. */
    SCHEMA_STRICT = 1 << 0,
    /* Anthropic's platform documentation, "Structured outputs": no recursion, no bounds, no
     * additional properties. */
    SCHEMA_ANTHROPIC = 1 << 1,
};

/* How many tokens the context of a model can hold, as the server says; 0: it does not say. */
struct model_window {
    int64_t most;   /* the largest that the model allows */
    int64_t loaded; /* in the memory that the model has now; Ollama */
};

/* One request to a model. Everything in it is borrowed. One struct serves all requests of a
 * turn. */
struct ask {
    const struct context *context;
    const char *model;    /* the model without the provider's name */
    const char *base_url; /* NULL: the provider's own */
    const char *address;  /* its host and port; NULL: the provider's own */
    const char *key;      /* may be NULL */
    const char *key_from; /* the source of the key, for messages; may be NULL */
    const struct ask_option *options;
    size_t options_count;
    const struct tool *const *tools; /* the tools that the model may call */
    size_t tools_count;
    const char *tools_flag; /* "-T" or "--mcp", which gave tools; NULL: the configuration did */
    const char *const *hosted_tools; /* tools that run at the server: `-T @NAME` without the @ */
    size_t hosted_tools_count;
    const struct ask_header *headers;
    size_t headers_count;
    /* How much the model reasons: none, minimal, low, medium, high, xhigh, max; NULL: the server's
     * own. */
    const char *effort;
    enum ask_from effort_from;
    int64_t max_tokens; /* the most tokens of a response, with its reasoning; 0: the server's own */
    enum ask_from max_tokens_from;
    /* For a server whose context has a size that a request can choose. 0: unknown. */
    struct model_window window;
    size_t token_bytes;   /* the bytes of 1,000 tokens in this conversation, about */
    int64_t input_limit;  /* the most tokens that the user wants to send */
    int64_t answer_room;  /* the tokens to keep free for an answer */
    bool show_reasoning;  /* the user wants to see the reasoning */
    struct str schema;    /* a JSON Schema object for the answer, or STR_NONE */
    unsigned schema_fits; /* the services that accept it, bits of enum schema_dialect */
    bool schema_beside;   /* it is sent in the older form of response_format */
    struct str paused;    /* the blocks of a paused response, a JSON array, or STR_NONE */
    struct str container; /* its container (opaque_container), or STR_NONE */
    bool stream;
    bool once;                /* the conversation will not be continued */
    uint64_t conversation;    /* the same number in each request of a conversation; 0: none */
    struct refusals *refused; /* is added to; NULL: errors that refuse something stand */
    struct http_limits limits;
    unsigned retries; /* how often to repeat an exchange without a response */
};

struct provider {
    const char *name;
    const char *base_url; /* NULL: the provider works offline (echo) */
    bool service;         /* the user configuration defines it (provider_add) */
    bool local;           /* such a service is on this machine; others with a probe are as well */
    bool needs_key;       /* a key is needed at its own base URL */
    bool documents;       /* it takes PDFs as attachments */
    /* The usual environment variables, or NULL. These are names; cli/config reads the values. */
    const char *key_variable;
    /* Another variable for the key, which other programs use as well, so that it alone does not
     * choose this provider. */
    const char *shared_key_variable;
    const char *token_variable; /* a Bearer token, used if key_variable is not set */
    const char *key_header;     /* the header with the key; NULL: it is sent as a Bearer token */
    /* A header that each request has, or NULL. */
    const char *version_header, *version;
    const char *base_variable;
    /* The name under which its key and its settings are configured (keys/NAME, option.NAME.KEY and
     * so on), if that is not only its own name. */
    const char *key_name;
    /* The provider of the same name that is used instead at the base URL of another host, or
     * NULL. */
    const struct provider *elsewhere;
    /* The provider of the same name that is used instead at a base URL that ends in /v1, or
     * NULL. */
    const struct provider *at_v1;
    const char *missing; /* advice for HTTP 404, or NULL */
    /* For a server on loopback that chat looks for if nothing is configured: the path at which it
     * lists its models, and the member that holds the list. The member is checked because any
     * program may listen on such a port, and many answer 200 to every path. Both may be NULL. */
    struct {
        const char *path, *list;
    } probe;
    bool lines; /* a stream is lines of JSON, not server-sent events */
    /* The server may leave out the beginning of a conversation without saying so, and its count of
     * the input shows it, unless the server is one that does not count tokens from its cache. */
    bool cuts_silently;
    /* The server always reports the usage of a stream, and refuses a request that asks for it. */
    bool usage_unasked;
    bool short_call_ids;     /* the server only takes call ids of nine letters and digits */
    int64_t retry_after_max; /* milliseconds; 0: RETRY_AFTER_MAX */
    bool hosted_tools;       /* the server runs tools itself (ask->hosted_tools) */
    /* The provider's own tools that the client carries out, without the date at the end of their
     * names, ending with NULL: chat cannot. NULL: none. */
    const char *const *client_tools;
    /* The fields of the request for ask->effort and ask->max_tokens. The name is a path: the names
     * of the objects around the field are separated by dots. NULL: the server has no such field.
     * wire_end_body sets them unless the request has a value there already. */
    const char *effort_field;
    bool cache_key; /* requests of one conversation are marked, so that they reach the same cache */
    bool own_effort; /* the provider itself sets the fields for ask->effort */
    const char *limit_field;
    const char *limit_elsewhere; /* limit_field at another base URL than the own; NULL: the same */
    bool needs_limit;            /* a request without limit_field is refused */
    const char *schema_field;    /* the field for ask->schema */
    /* Options of the user that are not fields of the request go into this object. body_fields has
     * the names of the fields and ends with NULL. NULL: all options are fields. */
    const char *options_field;
    const char *const *body_fields;
    /* The option with which the user chooses the size of the context, or NULL. */
    const char *window_field;

    /* Builds the URL, the headers (including the key) and the body, without the refused parts. `p`
     * is the provider itself, because servers that differ only in address and key share these
     * functions. Returns 0, or -1 with *e set. */
    int (*request)(const struct provider *p, const struct ask *ask, struct http_request *r,
                   struct err *e);
    /* Carries r out and passes the response to sink. NULL: http_exchange does. */
    int (*exchange)(const struct ask *ask, const struct http_request *r,
                    const struct http_sink *sink, struct err *e);
    /* Builds the request for the list of models (`{"data":[{"id"}, ...]}`), without using
     * ask->context. NULL: the provider has one model of the same name. */
    int (*models)(const struct provider *p, const struct ask *ask, struct http_request *r,
                  struct err *e);
    /* For a server that is asked in each turn how many tokens the context of ask->model can hold:
     * each builds a request, and reads its response into *w if it says anything. The second
     * question is only asked if it matters. Without one, the list of models says it, if anything
     * does. */
    struct {
        int (*request)(const struct provider *p, const struct ask *ask, struct http_request *r,
                       struct err *e);
        void (*read)(struct str response, const struct ask *ask, struct model_window *w);
    } window[2];
    /* Reads one event of a stream. Returns 0; 1 if the stream is complete; or -1 with *e set if the
     * event reports an error or cannot be used. */
    int (*event)(struct response *a, struct str event, struct str data, struct err *e);
    /* Reads a whole JSON response. It came because no stream was requested or the server cannot
     * stream. Returns 0, or -1 with *e set. */
    int (*whole)(struct response *a, struct str body, struct err *e);
};

/* The providers that are known: those that are built in, in the order in which --help lists them,
 * and then the services of the user. */
struct providers {
    const struct provider **at; /* NULL follows the last */
    size_t count, cap;
    struct service {
        struct provider provider;
        char *name, *base_url;
        struct service *next;
    } * services; /* owned */
};

/* Begins with those that are built in. */
void providers_init(struct providers *known);
void providers_release(struct providers *known);
/* Adds a service of the user: a provider of that name at base_url (http or https), with the API of
 * openai-chat, openai-responses or anthropic. `local`: it is on this machine. One that is not needs
 * a key if it is reached by https. The texts are copied. Returns 0, or -1 with ERR_USAGE if the
 * name is bad or is taken, or the wire is unknown. */
int provider_add(struct providers *known, struct str name, const char *base_url, const char *wire,
                 bool local, struct err *e);
/* Returns the providers that are built in, ended by NULL. */
const struct provider *const *provider_all(void);
/* Finds a provider by name. Returns NULL if it is unknown. */
const struct provider *provider_find(const struct providers *known, struct str name);
/* Returns the name of a tool without `_` and a date of eight digits at its end. */
struct str tool_undated(struct str name);
/* Checks that the provider can do what a flag of the user wants of it. Returns 0, or -1 with
 * ERR_USAGE. */
int provider_check(const struct provider *p, const struct ask *ask, struct err *e);
/* Returns the bytes that the tools add to a request, about. */
size_t ask_tools_bytes(const struct ask *ask);
/* Begins a request, a POST or a GET: the URL and all headers, also those of the user and the one
 * with the key, in the header of the provider or as a Bearer token. The URL is the base URL, then
 * `version` ("/v1" or "") unless the base URL ends in it, then the path. If the base URL has a
 * query, it is appended to the path's. Returns 0, or -1 with *e set. */
int wire_begin(struct http_request *r, const struct provider *p, const struct ask *ask, bool post,
               const char *version, const char *path, struct err *e);
/* Splits `provider:model`. If the part before the first colon is not a provider's name, *provider
 * is NULL and *model is the whole name. */
void provider_split(const struct providers *known, const char *name,
                    const struct provider **provider, const char **model);

#endif
