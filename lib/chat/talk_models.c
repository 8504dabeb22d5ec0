#include "chathist/chat/talk_models.h"

#include <stdlib.h>

#include "chathist/base/clock.h"
#include "chathist/base/path.h"
#include "chathist/cli/die.h"
#include "chat/clean_env.h"
#include "chathist/llm/models.h"

/* How old a list of models may be for --cached, and how long it takes to get a new one at most. */
#define CACHED_AGE (24 * 60 * 60 * CLOCK_SECOND)
#define CACHED_SECONDS 4
#define CACHE_DIR "chathist/models"

void talk_seek_model(struct talk *t)
{
    if (t->unasked.kind == ERR_NONE)
        return;
    err_release(&t->unasked);
    server_choose_model(&t->server, &t->unasked);
}

int talk_change_model(struct talk *t, const char *name, struct err *e)
{
    struct config tried = t->config;
    struct server server = {0};
    struct buf full = BUF_INIT(BUF_SMALL);
    const struct provider *provider;
    const char *model;
    int result;

    provider_split(name, &provider, &model);
    if (!provider)
        provider = t->server.provider;
    buf_addf(&full, "%s:%s", provider->name, model);
    tried.value[SETTING_MODEL] = full.data;
    tried.from[SETTING_MODEL] = CONFIG_FLAG;
    tried.value[SETTING_PROVIDER] = NULL;
    /* --base-url was meant for the server that was asked at first. */
    if (provider != t->first && tried.from[SETTING_BASE_URL] == CONFIG_FLAG) {
        tried.value[SETTING_BASE_URL] = NULL;
        tried.from[SETTING_BASE_URL] = CONFIG_DEFAULT;
    }
    result = server_choose(&server, &tried, e);
    if (result == 0 && !t->args->insecure)
        result = server_check_key(&server, e);
    if (result == 0)
        result = server_try_key(&server, e);
    if (result == 0)
        result = server_choose_model(&server, e);
    if (result == 0) {
        server_release(&t->server);
        t->server = server;
        if (t->toolbox.env)
            clean_env_more(t->toolbox.env, server.key);
        err_release(&t->unasked);
    } else {
        server_release(&server);
    }
    buf_release(&full);
    return result;
}

/* ---- what there is ---- */

int talk_load_models(struct talk *t, const struct http_limits *limits, struct model_list *list,
                     struct err *e)
{
    struct ask ask = {.limits = *limits};

    *list = (struct model_list){0};
    if (server_load_key(&t->server, e) < 0)
        return -1;
    server_address(&t->server, &ask);
    return model_list_load(list, t->server.provider, &ask, e);
}

/* Asks the server, and keeps what it said; that it cannot be kept is no reason not to tell it. */
static void ask_models(struct talk *t, const char *cache, struct model_list *list)
{
    struct err e = ERR_INIT;

    if (talk_load_models(t, &t->args->limits, list, &e) < 0)
        die_err(&e);
    if (cache && t->server.base_url &&
        model_cache_store(cache, t->server.provider, t->server.base_url, list, &e) < 0)
        hintf(t->args->verbose, "%s", err_text(&e));
    err_release(&e);
}

int talk_list_models(struct talk *t)
{
    const struct server *s = &t->server;
    char *cache = t->config.cache_home ? path_join(t->config.cache_home, CACHE_DIR) : NULL;
    struct model_list list = {0};

    if (!t->args->cached || !cache || !s->base_url ||
        !model_cache_load(cache, s->provider, s->base_url, CACHED_AGE, &list)) {
        /* A shell that completes a name waits for us: at its time there is no list. */
        if (t->args->cached)
            die_after(CACHED_SECONDS);
        ask_models(t, cache, &list);
    }
    free(cache);
    for (size_t i = 0; i < list.count; i++)
        events_model(&t->events, t->server.provider->name, list.at[i]);
    if (list.count == 0 && !t->args->cached)
        warnf("the server lists no models");
    model_list_release(&list);
    return 0;
}
