#include "chathist/chat/request_settings.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/chat/turn.h"
#include "chathist/llm/exchange.h"

const char *setting_name_for(const struct providers *known, const char *name,
                             const struct provider *p, bool own)
{
    const char *dot = strchr(name, '.');
    const struct provider *of =
        dot && dot[1] ? provider_find(known, (struct str){name, (size_t)(dot - name)}) : NULL;

    /* The three providers of OpenAI have the settings of `openai` in common. */
    if (own)
        return of && (strcmp(of->name, p->name) == 0 ||
                      (p->key_name && strcmp(of->name, p->key_name) == 0))
                   ? dot + 1
                   : NULL;
    return of ? NULL : name;
}

void option_set_put(struct option_set *s, struct str key, struct str value)
{
    size_t i = 0;

    while (i < s->count && !str_eq_c(key, s->at[i].key))
        i++;
    if (i < s->count) {
        free(s->at[i].key);
        free(s->at[i].value);
        s->at[i] = s->at[--s->count];
    }
    if (!value.p)
        return;
    s->at = mem_grow(s->at, &s->cap, s->count + 1, sizeof *s->at);
    s->at[s->count++] =
        (struct own_option){mem_copy(key.p, key.n), mem_copy(value.p, value.n), value.n};
}

void option_set_release(struct option_set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->at[i].key);
        free(s->at[i].value);
    }
    free(s->at);
    *s = (struct option_set){0};
}

static void push_option(struct request_settings *r, struct ask_option option)
{
    r->options = mem_grow(r->options, &r->options_cap, r->options_count + 1, sizeof *r->options);
    r->options[r->options_count++] = option;
}

static void add_configured_options(struct request_settings *r, const struct config *c,
                                   const struct providers *known, const struct provider *p,
                                   bool own)
{
    for (size_t i = 0; i < c->named_count; i++) {
        const struct config_named *named = &c->named[i];
        const char *name =
            named->setting == SETTING_OPTION ? setting_name_for(known, named->name, p, own) : NULL;

        if (name)
            push_option(r, (struct ask_option){name, str_of(named->value), ASK_CONFIGURATION});
    }
}

/* Adds those of the flags, or without -T those of the user configuration. It is for all providers,
 * so it does not count for those without such tools. */
static void add_all_hosted(struct request_settings *r, const struct config *c,
                           const struct chat_args *a, const struct provider *p)
{
    struct str rest = str_of(c->value[SETTING_TOOLS]), word;

    for (size_t i = 0; i < a->hosted.count; i++)
        words_add(&r->hosted, str_of(a->hosted.at[i]));
    while (!a->tools.at && p->hosted_tools && (word = str_word(&rest)).p)
        if (str_starts(word, STR("@")) && word.n > 1)
            words_add(&r->hosted, str_skip(word, 1));
}

/* Removes all settings but keeps the array of options. */
static void clear(struct request_settings *r)
{
    words_release(&r->hosted);
    r->options_count = 0;
}

static enum ask_from strength(enum config_from from)
{
    if (from == CONFIG_FLAG)
        return ASK_FLAG;
    return from == CONFIG_PRESET ? ASK_TEMPLATE : ASK_CONFIGURATION;
}

int request_settings_load(struct request_settings *r, const struct config *c,
                          const struct chat_args *a, const struct option_set *own,
                          const struct providers *known, const struct provider *p, struct err *e)
{
    clear(r);
    add_configured_options(r, c, known, p, false);
    add_configured_options(r, c, known, p, true);
    for (enum ask_from from = ASK_TEMPLATE; from <= ASK_FLAG; from++)
        for (size_t i = 0; i < a->options_count; i++)
            if (a->options[i].from == from)
                push_option(r, a->options[i]);
    for (size_t i = 0; own && i < own->count; i++)
        push_option(r, (struct ask_option){
                           own->at[i].key, {own->at[i].value, own->at[i].value_len}, ASK_FLAG});
    add_all_hosted(r, c, a, p);
    r->effort_from = strength(c->from[SETTING_EFFORT]);
    r->max_tokens_from = strength(c->from[SETTING_MAX_TOKENS]);
    if (config_effort(c, &r->effort, e) < 0)
        return -1;
    return config_max_tokens(c, &r->max_tokens, e);
}

void request_settings_fill(const struct request_settings *r, struct ask *ask)
{
    ask->options = r->options;
    ask->options_count = r->options_count;
    ask->hosted_tools = (const char *const *)r->hosted.at;
    ask->hosted_tools_count = r->hosted.count;
    ask->effort = r->effort;
    ask->effort_from = r->effort_from;
    ask->max_tokens = r->max_tokens;
    ask->max_tokens_from = r->max_tokens_from;
}

void request_settings_release(struct request_settings *r)
{
    clear(r);
    free(r->options);
    *r = (struct request_settings){0};
}

int request_limits_load(struct request_limits *l, const struct config *c, struct err *e)
{
    struct http_limits *http = &l->http;

    *l = (struct request_limits){
        .http = {.connect_ms = HTTP_CONNECT_MS,
                 .idle_ms = HTTP_IDLE_MS,
                 .first_byte_ms = -1, /* unset */
                 .cancel_fd = -1},
        .tool_ms = TOOL_TIMEOUT_MS,
        .retries = RETRY_TIMES,
        .rounds = TURN_ROUNDS,
    };
    if (config_milliseconds(c, SETTING_CONNECT_TIMEOUT, &http->connect_ms, e) < 0 ||
        config_milliseconds(c, SETTING_FIRST_BYTE_TIMEOUT, &http->first_byte_ms, e) < 0 ||
        config_milliseconds(c, SETTING_IDLE_TIMEOUT, &http->idle_ms, e) < 0 ||
        config_milliseconds(c, SETTING_TOOL_TIMEOUT, &l->tool_ms, e) < 0 ||
        config_number(c, SETTING_RETRIES, &l->retries, e) < 0 ||
        config_number(c, SETTING_MAX_ITERATIONS, &l->rounds, e) < 0)
        return -1;
    if (http->first_byte_ms == 0)
        http->first_byte_ms = HTTP_NO_LIMIT;
    else if (http->first_byte_ms < 0)
        http->first_byte_ms = HTTP_AS_IDLE;
    return 0;
}
