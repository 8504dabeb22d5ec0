#include "chathist/chat/chat_session.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/time.h"
#include "chathist/chat/request_settings.h"
#include "chathist/chat/tools.h"
#include "chathist/cli/choose_session.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/progress.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"
#include "chathist/history/store.h"
#include "chathist/llm/context.h"
#include "chathist/llm/http.h"
#include "chathist/chat/model_cache.h"
#include "chathist/llm/models.h"
#include "chathist/llm/provider.h"
#include "chat/schema_option.h"

static void choose_server(struct chat_session *t)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < SETTING_COUNT; i++) {
        config_set_preset(&t->choice.config, (enum setting)i, t->args->preset[i]);
        config_set(&t->choice.config, (enum setting)i, t->args->setting[i]);
    }
    /* The server of the prompts does not get the history. */
    if (t->args->embed && !t->args->setting[SETTING_BASE_URL])
        t->choice.config.value[SETTING_BASE_URL] = NULL;
    if (request_limits_load(&t->limits, &t->choice.config, &e) < 0 ||
        server_providers(&t->known, &t->choice.config, &e) < 0 ||
        server_choose(&t->server, &t->known, &t->choice.config, t->args->headers,
                      t->args->headers_count, &e) < 0 ||
        /* Without a model even a dry run asks the server for its models. */
        ((!t->args->dry_run || !t->server.model) &&
         server_need_key(&t->server, &t->choice.config, &e) < 0) ||
        (!t->args->insecure && server_check_key(&t->server, &e) < 0))
        die_err(&e);
    t->first = t->server.provider;
    /* If the server cannot be reached, the prompt is still stored. */
    if (!t->args->models && server_choose_model(&t->server, &t->unasked) < 0 &&
        (t->unasked.kind == ERR_USAGE || t->args->dry_run))
        die_err(&t->unasked);
    if (!t->args->common.quiet)
        server_report(&t->server);
}

/* Reads whether reasoning is shown, and stored. Returns 0, or -1 with *e set. */
static int choose_reasoning(struct chat_session *t, struct err *e)
{
    const struct config *c = &t->choice.config;

    if (config_switch(c, SETTING_REASONING, &t->events.show_reasoning, e) < 0)
        return -1;
    return config_switch(c, SETTING_STORE_REASONING, &t->events.sink.keep_reasoning, e);
}

void chat_session_open(struct chat_session *t, const struct chat_args *args)
{
    struct err e = ERR_INIT;

    t->args = args;
    t->events.held = args->extract;
    t->events.out.whole = !args->stream && !t->events.out.terminal;
    if (args->schema) {
        t->schema = schema_option_read(args->schema, &e);
        if (!t->schema)
            die_err(&e);
        if (*schema_unchecked(t->schema) && !args->common.quiet)
            warnf("schema '%s': sent to the server, but not checked here: %s", args->schema,
                  schema_unchecked(t->schema));
    }
    t->choice.common = args->common;
    t->history = choose_open(&t->choice, &(struct choose_want){.use = CHOOSE_STORE_IF_ANY});
    t->store.args = args;
    t->store.history = t->history;
    t->store.session = &t->session;
    t->store.events = &t->events;
    /* A bad file of prices is reported before anything is sent. */
    if (args->usage || args->common.json) {
        if (config_prices(&t->choice.config, NULL, &t->prices, &e) < 0)
            die_err(&e);
        t->events.prices = &t->prices;
    }
    choose_server(t);
    if (choose_reasoning(t, &e) < 0)
        die_err(&e);
    t->consent.all = args->yes;
    t->consent.allowed = t->choice.config.value[SETTING_ALLOW_TOOLS];
}

void chat_session_close(struct chat_session *t)
{
    resume_release(&t->session);
    events_release(&t->events);
    buf_release(&t->consent.always);
    toolbox_release(&t->toolbox);
    mcp_servers_close(&t->mcp, false);
    server_release(&t->server);
    http_pool_close(t->pool);
    request_settings_release(&t->settings);
    option_set_release(&t->options);
    choose_release(&t->choice);
    providers_release(&t->known);
    schema_free(t->schema);
    prices_release(&t->prices);
    turn_store_release(&t->store);
    err_release(&t->unasked);
}

/* ---- requests ---- */

/* All requests of a conversation share connections. Without a pool, each request opens one. */
static struct http_pool *connection_pool(struct chat_session *t)
{
    if (!t->pool)
        t->pool = http_pool_open();
    return t->pool;
}

/* Fills in everything but the context and the tools. */
static void set_ask(struct chat_session *t, struct ask *ask)
{
    struct server *s = &t->server;

    /* Its values were checked. */
    (void)choose_reasoning(t, NULL);
    *ask = (struct ask){.schema = schema_text(t->schema),
                        .schema_fits = schema_fits(t->schema),
                        .stream = t->args->stream,
                        .once = t->args->once,
                        .show_reasoning = t->events.show_reasoning || t->events.sink.keep_reasoning,
                        .limits = t->limits.http,
                        .retries = t->limits.retries};
    request_settings_fill(&t->settings, ask);
    server_address(&t->server, ask);
    ask->limits.pool = connection_pool(t);
    if (s->base_url && s->model) {
        if (!s->refused.model && t->choice.config.cache_home)
            refusals_load(&s->refused,
                          model_cache_path(t->choice.config.cache_home, "chathist/refused",
                                           s->provider, s->base_url),
                          s->model);
        ask->refused = &s->refused;
    }
    events_show_waiting(&t->events, &ask->limits);
}

void chat_session_choose(struct chat_session *t)
{
    const struct chat_args *a = t->args;

    choose_session(&t->session, a->resume, &t->choice, a->regenerate || a->edit,
                   a->common.quiet || !a->store);
}

void chat_session_open_tools(struct chat_session *t)
{
    bool wanted = t->args->tools.at || t->args->mcp.at || t->choice.config.value[SETTING_TOOLS] ||
                  t->choice.config.value[SETTING_MCP];
    const char *const *secrets;

    if (!wanted || t->mcp.open)
        return;
    secrets = server_secrets(&t->server);
    toolbox_load(&t->toolbox, t->args->tools.at, &t->choice.config, secrets);
    t->mcp.quiet = t->args->common.quiet;
    t->mcp.verbose = t->args->verbose;
    t->mcp.session = &t->session.id;
    mcp_servers_open(&t->mcp, t->args, &t->choice.config, secrets, &t->toolbox);
}

/* Stores what a killed turn of the session has left, so that it is part of the context. A failure
 * is reported when the prompt cannot be stored either. */
static void recover_partial(struct chat_session *t)
{
    struct err e = ERR_INIT;

    if (t->args->store && !t->store.in_memory && !t->args->dry_run && !t->history->unreadable)
        (void)store_recover(t->history, &e);
    err_release(&e);
}

/* ---- how much fits into the model's context ---- */

/* The maximum age of a list of models, and the maximum time for requesting a new one. */
#define CACHED_AGE (24 * 60 * 60 * TIME_SECOND)
#define CACHED_SECONDS 4
/* A context of fewer earlier messages than this fits into any model, so it is not worth a request.
 */
#define LEARN_FROM 10
/* The same for the bytes of the prompt and the context, of which a token has about this many. */
#define LEARN_FROM_BYTES 3072
#define LEARN_TOKEN_BYTES 4
#define LEARN_MS 2000

/* The bytes of this turn and its tools, before the context. */
static size_t turn_bytes(const struct turn *turn)
{
    return turn->prompt.n + turn->system.n + turn->messages.n + ask_tools_bytes(&turn->ask);
}

/* Returns whether the context and the turn are so short that they fit into any model. */
static bool is_short(const struct chat_session *t, const struct turn *turn)
{
    struct context_estimate f = {0};
    struct err e = ERR_INIT;

    if (t->store.in_memory)
        f.tokens = t->store.memory.len / LEARN_TOKEN_BYTES;
    else if (!t->session.fresh && !t->history->unreadable &&
             context_estimate(&f, &t->choice.config, t->history, turn->session, &e) < 0)
        err_release(&e); /* turn_prepare reports it */
    return f.messages < LEARN_FROM &&
           turn_bytes(turn) + f.tokens * LEARN_TOKEN_BYTES < LEARN_FROM_BYTES;
}

/* Before the first request that could exceed a window, gets the list of models, which may have it,
 * at most once a day. If that fails, the old list is stored again, or an empty one, so that it is
 * not tried again on that day. */
static void learn_windows(const struct chat_session *t, const struct turn *turn)
{
    const struct server *s = &t->server;
    struct ask ask = turn->ask;
    struct model_list list = {0};
    struct err e = ERR_INIT;
    char *path =
        model_cache_path(t->choice.config.cache_home, MODEL_CACHE_DIR, s->provider, s->base_url);

    if (path && s->model && s->provider->models && !s->provider->window[0].request &&
        !t->args->dry_run && !model_cache_is_fresh(path, CACHED_AGE) && !is_short(t, turn)) {
        ask.limits.connect_ms = ask.limits.idle_ms = ask.limits.whole_ms = LEARN_MS;
        if (model_list_load(&list, s->provider, &ask, &e) < 0) {
            err_release(&e);
            model_list_release(&list);
            model_cache_load(path, INT64_MAX, &list);
        }
        if (model_cache_store(path, &list, &e) < 0)
            hintf(t->args->verbose, "%s", err_text(&e));
        model_list_release(&list);
    }
    err_release(&e);
    free(path);
}

/* Finds out how many tokens the context of the model can hold. A server with a question for it is
 * asked, as far as the answer matters (`small`: the turn fits into any context); of other servers
 * the cache is read (learn_windows). */
static void learn_window(const struct chat_session *t, const struct ask *ask, bool small,
                         struct model_window *w)
{
    const struct server *s = &t->server;
    struct model_list list;
    char *path;

    *w = (struct model_window){0};
    if (!s->base_url || !s->model)
        return;
    if (s->provider->window[0].request) {
        if (!t->args->dry_run && (!small || s->provider->window[1].request))
            model_window_load(s->provider, ask, !small, w);
        return;
    }
    path = model_cache_path(t->choice.config.cache_home, MODEL_CACHE_DIR, s->provider, s->base_url);
    if (model_cache_load(path, INT64_MAX, &list))
        w->most = model_list_window(&list, s->model);
    model_list_release(&list);
    free(path);
}

/* Chooses what the context of the turn may hold. */
static int choose_limits(struct chat_session *t, struct turn *turn, struct err *e)
{
    struct context_limits *l = &turn->limits;
    struct ask *ask = &turn->ask;

    learn_windows(t, turn);
    /* The first turn of a session may be so short that it fits into any model. */
    learn_window(t, ask, t->session.fresh && turn_bytes(turn) < LEARN_FROM_BYTES, &ask->window);
    if (context_limits_choose(l, &t->choice.config, (size_t)ask->window.most, ask->max_tokens, e) <
        0)
        return -1;
    ask->answer_room = (int64_t)l->answer;
    ask->input_limit = l->tokens == CONTEXT_ALL ? 0 : (int64_t)l->tokens;
    l->tools = ask_tools_bytes(ask) + t->mcp.instructions.len;
    return 0;
}

size_t chat_session_window(const struct chat_session *t)
{
    struct ask ask = {.limits = t->limits.http};
    struct context_limits limits = CONTEXT_LIMITS_NONE;
    struct err e = ERR_INIT;

    server_address(&t->server, &ask);
    learn_window(t, &ask, false, &ask.window);
    if (context_limits_choose(&limits, &t->choice.config, (size_t)ask.window.most, 0, &e) < 0)
        err_release(&e);
    return limits.tokens == CONTEXT_ALL ? 0 : limits.tokens;
}

/* Adds what MCP servers say about their tools to the system prompt of the request. It is not
 * stored, because it is not the user's and belongs to servers that a later turn may not have. */
static void add_instructions(const struct chat_session *t, struct context *c)
{
    struct str instructions = buf_str(&t->mcp.instructions);
    struct buf system = BUF_INIT(SIZE_MAX);

    if (instructions.n == 0)
        return;
    buf_add(&system, c->system, c->system_len);
    if (system.len > 0)
        buf_add_c(&system, "\n\n");
    buf_add_str(&system, instructions);
    context_set_system(c, buf_str(&system));
    buf_release(&system);
}

/* Names the attachments of earlier messages that the model does not get again. */
static void report_unsent(const struct chat_session *t, const struct turn *turn)
{
    bool one = turn->unsent_count == 1;

    if (turn->unsent_count > 0 && !t->args->common.quiet)
        warnf("%s of an earlier message %s not sent again; attach %s with %s", buf_c(&turn->unsent),
              one ? "is" : "are", one ? "it" : "them", t->events.interactive ? "/file" : "-f");
}

int chat_session_prepare(struct chat_session *t, struct turn *turn, struct err *e)
{
    if (!t->args->dry_run && server_load_key(&t->server, e) < 0)
        return -1;
    turn->provider = t->server.provider;
    turn->session = buf_str(&t->session.id);
    turn->max_rounds = t->limits.rounds;
    turn->tool_timeout_ms = t->limits.tool_ms;
    if (request_settings_load(&t->settings, &t->choice.config, t->args, &t->options, &t->known,
                              t->server.provider, e) < 0)
        return -1;
    set_ask(t, &turn->ask);
    turn->ask.conversation = hash_fnv(turn->session);
    recover_partial(t);
    chat_session_open_tools(t);
    turn->ask.tools = t->toolbox.at;
    turn->ask.tools_count = t->toolbox.count;
    turn->ask.tools_flag = t->args->tools.at ? "-T" : t->args->mcp.at ? "--mcp" : NULL;
    if (choose_limits(t, turn, e) < 0)
        return -1;
    turn->cut_noted = t->cut_noted;
    if (turn_prepare(turn, t->history, t->store.in_memory ? &t->store.memory : NULL, e) < 0)
        return -1;
    buf_clear(&t->store.seen);
    if (!t->store.in_memory && !turn->is_new && !turn->messages.p)
        choose_tell_news(t->history, turn->session, &t->store.own, &t->store.seen);
    add_instructions(t, &turn->context);
    start_report_bad(t->history, turn->bad_lines, t->args->common.quiet);
    start_report_entries(t->args->messages, turn->bad_entries,
                         turn->bad_entries > 0 && messages_too_deep(turn->messages),
                         t->args->common.quiet);
    if (turn->bad_entries > 0 && turn->before == 0)
        return strcmp(t->args->messages, "-") == 0
                   ? err_set(e, ERR_USAGE, "no usable message on standard input")
                   : err_set(e, ERR_USAGE, "no usable message in '%s'", t->args->messages);
    report_unsent(t, turn);
    events_context(&t->events, turn);
    for (size_t i = 0; t->args->verbose && i < t->toolbox.count; i++)
        notef("tool=%s", t->toolbox.at[i]->name);
    return 0;
}

int chat_session_check(struct chat_session *t, const struct turn *turn, bool print, struct err *e)
{
    struct http_request request;
    int result;

    http_request_init(&request);
    result = provider_check(t->server.provider, &turn->ask, e);
    if (result == 0)
        result = refusals_request(t->server.provider, &turn->ask, &request, e);
    if (result == 0 && print)
        out_json_line(&t->events.out, buf_str(&request.body));
    http_request_release(&request);
    return result;
}

/* ---- one turn ---- */

/* Prints the call and asks whether it may be run. Returns false if no more questions should
 * follow. */
static bool ask_consent(struct chat_session *t, struct tool_job *job)
{
    enum consent_answer answer;

    events_call(&t->events, job);
    if (job->done) {
        events_call_line(&t->events, job, false);
        return true;
    }
    answer = consent_ask(&t->consent, buf_str(&job->call->name), job->args);
    events_call_line(&t->events, job, answer == CONSENT_YES || answer == CONSENT_NO);
    if (answer == CONSENT_NO)
        tool_fail(job, "the user refused to have the tool run");
    if (answer != CONSENT_NOBODY)
        return answer != CONSENT_CANCELLED;
    tool_fail(job, "the tool was not run: it is not allowed, and there is no terminal to ask the "
                   "user on");
    if (!t->refusal_warned && !t->args->common.quiet)
        warnf(
            "tool calls are refused: there is no terminal to ask on (--yes, or allow_tools in the "
            "user configuration)");
    t->refusal_warned = true;
    return true;
}

static void end_call(void *arg, struct tool_job *job)
{
    struct chat_session *t = arg;

    events_result(&t->events, job);
    (void)turn_store_result(&t->store, job);
}

static void show_calls(void *arg, const struct tool_job *jobs, size_t count)
{
    struct chat_session *t = arg;

    events_running(&t->events, jobs, count);
}

/* Runs a round of calls. All questions are asked before any call is run. Returns 0, or -1 if it was
 * interrupted. */
static int run_calls(struct chat_session *t, struct turn *turn, struct err *e)
{
    const struct tool_watch watch = {end_call, show_calls, t};
    bool going = true;
    int result;

    events_end_text(&t->events);
    round_begin(turn);
    for (size_t i = 0; i < turn->answer.calls_count; i++)
        if (going)
            going = ask_consent(t, &turn->calls[i]);
        else
            events_call(&t->events, &turn->calls[i]);
    result = round_run(turn, &watch, e);
    progress_end();
    round_end(turn);
    /* No answer follows that names the edited files. */
    if (result < 0 && turn->edits.len > 0) {
        response_set_finish(&turn->answer, STR("interrupted"));
        (void)turn_store_answer(&t->store);
    }
    return result;
}

/* Updates the tools of the next request. */
static void renew_tools(struct chat_session *t, struct turn *turn)
{
    if (!mcp_servers_renew(&t->mcp, &t->toolbox, t->history->cancel_fd))
        return;
    /* A name may now mean another tool. */
    buf_clear(&t->consent.always);
    turn->ask.tools = t->toolbox.at;
    turn->ask.tools_count = t->toolbox.count;
    if (!t->args->common.quiet)
        hintf(t->args->verbose, "tools have changed: the model may call %zu now", t->toolbox.count);
}

/* Stores the prompt, sends requests and stores answers as long as the model calls tools. *e is set
 * by a failed request. */
static void exchange_rounds(struct chat_session *t, struct turn *turn, struct err *e)
{
    bool more;

    /* Before the history is locked, because a server of tools may want to write to it. */
    renew_tools(t, turn);
    turn_store_prompt(&t->store);
    do {
        turn->calling = false;
        if (t->unasked.kind != ERR_NONE)
            err_set(e, t->unasked.kind, "%s", err_text(&t->unasked));
        else
            turn_ask(turn, &t->events.sink, e);
        (void)turn_store_answer(&t->store);
        more = turn->calling && run_calls(t, turn, e) == 0;
        if (more)
            renew_tools(t, turn);
    } while (more);
    t->cut_noted = turn->cut_noted;
}

/* Prints how the turn ended. Returns the exit code. */
static int conclude_turn(struct chat_session *t, struct turn *turn, struct err *e)
{
    int status = 0;

    if (turn->finished && turn->answer.text.len + turn->answer.images.len == 0)
        events_notice(&t->events, turn->answer.reasoned
                                      ? "the answer is empty: the model only reasoned"
                                      : "the answer is empty");
    if (t->args->extract && turn->finished)
        events_code(&t->events, &turn->answer, e);
    if (turn->finished && t->schema && schema_check(t->schema, buf_str(&turn->answer.text), e) < 0)
        err_set(e, ERR_FAILURE, "answer does not match '%s': %s", t->args->schema, err_text(e));
    if (e->kind == ERR_NONE)
        events_done(&t->events, turn);
    else
        status = interrupt_signal() ? 128 + interrupt_signal() : exit_code(e->kind);
    if (status != 0)
        events_spent(&t->events, turn);
    if (t->args->usage && (turn->answer.finished || usage_known(&turn->usage)))
        events_usage(&t->events, turn);
    if (status == 0 && t->store.unsaved.kind != ERR_NONE)
        status = exit_code(ERR_UNSAVED);
    if (status != 0)
        events_error(&t->events, e->kind != ERR_NONE ? e : &t->store.unsaved, status);
    return status;
}

void chat_session_check_history(struct chat_session *t)
{
    const struct chat_args *a = t->args;
    struct err e = ERR_INIT;
    bool needed = a->regenerate || a->edit || a->resume.last || a->dry_run;

    /* Before anything is asked: the answer could not be stored. */
    if ((a->store || a->dry_run) && store_check(t->history, &e) < 0)
        die_err(&e);
    t->history->unreadable =
        a->once || (!needed && (a->store || a->messages) && history_forbidden(t->history));
}

int chat_session_run(struct chat_session *t, struct turn *turn)
{
    struct err e = ERR_INIT, unstored = ERR_INIT;
    int status;

    t->history->cancel_fd = interrupt_begin(&e);
    if (t->history->cancel_fd < 0)
        die_err(&e);
    line_signals_raise();
    turn->ask.limits.cancel_fd = t->events.out.cancel_fd = t->history->cancel_fd;
    t->consent.cancel_fd = t->history->cancel_fd;
    turn_store_claim(&t->store, turn);
    t->events.partial = &turn->partial;
    events_session(&t->events, turn->session);
    exchange_rounds(t, turn, &e);
    turn_store_mark(&t->store);
    /* A failure only means that the next program finds it out again. */
    if (refusals_store(&t->server.refused, &unstored) < 0)
        hintf(t->args->verbose, "%s", err_text(&unstored));
    err_release(&unstored);
    status = conclude_turn(t, turn, &e);
    out_flush(&t->events.out);
    if (!interrupt_signal() && e.kind != ERR_NONE && !turn->answer.sink_failed)
        warn_err(&e);
    err_release(&e);
    if (interrupt_signal())
        status = 128 + interrupt_signal();
    interrupt_end();
    t->history->cancel_fd = t->events.out.cancel_fd = t->consent.cancel_fd = -1;
    t->events.partial = NULL;
    return status;
}

/* ---- models ---- */

void chat_session_seek_model(struct chat_session *t)
{
    if (t->unasked.kind == ERR_NONE)
        return;
    err_release(&t->unasked);
    server_choose_model(&t->server, &t->unasked);
}

int chat_session_change_model(struct chat_session *t, const char *name, struct err *e)
{
    struct config tried = t->choice.config;
    struct server server = {0};
    struct buf full = BUF_INIT(BUF_SMALL);
    const struct provider *provider;
    const char *model;
    bool same;
    int result;

    provider_split(&t->known, name, &provider, &model);
    if (!provider || (provider != t->server.provider &&
                      server_has_whole_name(&t->server, &t->choice.config, name))) {
        provider = t->server.provider;
        model = name;
    }
    /* The same name can be another provider at another base URL. */
    same = strcmp(provider->name, t->first->name) == 0;
    buf_addf(&full, "%s:%s", provider->name, model);
    tried.value[SETTING_MODEL] = full.data;
    tried.from[SETTING_MODEL] = CONFIG_FLAG;
    tried.value[SETTING_PROVIDER] = NULL;
    /* --base-url was given for the first server. */
    if (!same && tried.from[SETTING_BASE_URL] == CONFIG_FLAG) {
        tried.value[SETTING_BASE_URL] = NULL;
        tried.from[SETTING_BASE_URL] = CONFIG_DEFAULT;
    }
    /* --header was given for the first server, too. */
    result = server_choose(&server, &t->known, &tried, t->args->headers,
                           same ? t->args->headers_count : 0, e);
    if (result == 0)
        result = server_need_key(&server, &tried, e);
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
            clean_env_more(t->toolbox.env, server_secrets(&t->server));
        err_release(&t->unasked);
    } else {
        server_release(&server);
    }
    buf_release(&full);
    return result;
}

/* ---- what there is ---- */

int chat_session_load_models(struct chat_session *t, const struct http_limits *limits,
                             struct model_list *list, struct err *e)
{
    struct ask ask = {.limits = *limits};

    /* The beginning of an answer may be waited for longer than a list. */
    ask.limits.first_byte_ms = HTTP_AS_IDLE;
    *list = (struct model_list){0};
    if (server_load_key(&t->server, e) < 0)
        return -1;
    server_address(&t->server, &ask);
    ask.limits.pool = connection_pool(t);
    return model_list_load(list, t->server.provider, &ask, e);
}

int chat_session_list_models(struct chat_session *t)
{
    const struct server *s = &t->server;
    char *path =
        model_cache_path(t->choice.config.cache_home, MODEL_CACHE_DIR, s->provider, s->base_url);
    struct model_list list;
    struct err e = ERR_INIT;

    if (!t->args->cached || !model_cache_load(path, CACHED_AGE, &list)) {
        /* A shell waits for the list while it completes a name; it must not wait long. */
        if (t->args->cached)
            die_after(CACHED_SECONDS);
        if (chat_session_load_models(t, &t->limits.http, &list, &e) < 0)
            die_err(&e);
        if (path && model_cache_store(path, &list, &e) < 0)
            hintf(t->args->verbose, "%s", err_text(&e));
        err_release(&e);
    }
    free(path);
    for (size_t i = 0; i < list.count; i++)
        events_model(&t->events, t->server.provider->name, list.at[i]);
    if (list.count == 0 && !t->args->cached)
        warnf("the server lists no models");
    model_list_release(&list);
    return 0;
}
