/*
 * request_settings - what the user wants in each request: options, effort, the limit of tokens, and
 * tools of the server. They come from the user configuration, a template or persona, and flags; the
 * later of these are stronger (enum ask_from).
 *
 * In the configuration, `option.NAME` is for every provider and `option.PROVIDER.NAME` for one,
 * after the others. The names of headers are read in the same way (chat/server).
 */
#ifndef CHATHIST_CHAT_REQUEST_SETTINGS_H
#define CHATHIST_CHAT_REQUEST_SETTINGS_H

#include <stddef.h>

#include "chathist/base/error.h"
#include "chathist/base/process.h"
#include "chathist/chat/chat_args.h"
#include "chathist/cli/config.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"

/* Options that the user sets during a conversation, owned. Zero-initialise. */
struct option_set {
    struct own_option {
        char *key, *value;
        size_t value_len;
    } * at;
    size_t count, cap;
};

/* Sets an option, or removes it from the set if value.p is NULL. */
void option_set_put(struct option_set *s, struct str key, struct str value);
void option_set_release(struct option_set *s);

/* Strings are borrowed from the configuration and the arguments, unless it says otherwise. */
struct request_settings {
    struct ask_option *options;
    size_t options_count, options_cap;
    struct words hosted; /* tools of the server, without the @ */
    const char *effort;
    int64_t max_tokens;
    enum ask_from effort_from, max_tokens_from;
};

/* Reads the settings for a provider, in place of earlier ones; those in `own` (NULL: none) are
 * stronger than the arguments. Zero-initialise before the first
 * call. Returns 0, or -1 with ERR_USAGE if a value is bad. */
int request_settings_load(struct request_settings *r, const struct config *c,
                          const struct chat_args *a, const struct option_set *own,
                          const struct providers *known, const struct provider *p, struct err *e);
/* Sets them in the ask, which borrows from r. */
void request_settings_fill(const struct request_settings *r, struct ask *ask);
void request_settings_release(struct request_settings *r);

/* How long to wait for whom, and how often to ask. */
struct request_limits {
    struct http_limits http;
    long tool_ms;     /* the longest time of a tool */
    unsigned retries; /* how often a request is repeated while the server is busy */
    unsigned rounds;  /* the rounds of tool calls in a turn */
};

/* Reads the limits, of which those that are not set have their defaults. Returns 0, or -1 with
 * ERR_USAGE if a value is bad. */
int request_limits_load(struct request_limits *l, const struct config *c, struct err *e);

/* Reads the name in a key (`option.NAME`, `header.NAME`). With `own`, returns the part that follows
 * the name of this provider; without it, the whole name if it does not begin with the name of a
 * provider. Otherwise returns NULL. */
const char *setting_name_for(const struct providers *known, const char *name,
                             const struct provider *p, bool own);

#endif
