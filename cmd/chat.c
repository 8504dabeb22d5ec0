/* chat - send a prompt to a language model, print the answer, keep both. */
#include <signal.h>
#include <string.h>

#include "cli/die.h"
#include "front/chat_args.h"
#include "front/chat_input.h"
#include "front/events.h"
#include "front/prompt.h"
#include "front/server.h"
#include "front/start.h"
#include "llm/models.h"
#include "turn/interrupt.h"
#include "turn/turn.h"

/* All that one run of the program holds. */
struct chat {
    struct chat_args args;
    struct config config;
    struct history history;
    struct resume session;
    struct server server;
    struct buf prompt;
    struct buf messages; /* text of --messages */
    struct turn turn;
    struct events events;
    struct err unasked; /* why the question cannot be asked */
    struct err unsaved; /* why the history lacks something */
    bool settled;       /* the session's pointer is where it belongs */
};

static void choose_server(struct chat *c)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < SETTING_COUNT; i++)
        config_set(&c->config, (enum setting)i, c->args.setting[i]);
    if (server_choose(&c->server, &c->config, &e) < 0)
        die_err(&e);
    /* A server that cannot be reached is no reason to lose the prompt. */
    if (!c->args.models && server_choose_model(&c->server, &c->unasked) < 0 &&
        (c->unasked.kind == ERR_USAGE || c->args.dry_run))
        die_err(&c->unasked);
    if (!c->args.common.quiet)
        server_tell_found(&c->server);
}

static void set_ask(struct chat *c, struct ask *ask)
{
    *ask = (struct ask){.options = c->args.options,
                        .options_count = c->args.options_count,
                        .stream = c->args.stream,
                        .limits = c->args.limits,
                        .retries = c->args.retries,
                        .watch = &c->events.watch};
    server_address(&c->server, ask);
}

/* chat --models */
static int list_models(struct chat *c)
{
    struct model_list list;
    struct err e = ERR_INIT;
    struct ask ask;

    set_ask(c, &ask);
    if (model_list_load(&list, c->server.provider, &ask, &e) < 0)
        die_err(&e);
    for (size_t i = 0; i < list.count; i++)
        events_model(&c->events, c->server.provider->name, list.at[i]);
    model_list_release(&list);
    return out_close(&c->events.out, 0, exit_code(ERR_FAILURE));
}

static void prepare(struct chat *c)
{
    struct turn *t = &c->turn;
    struct err e = ERR_INIT;
    bool again = c->args.regenerate || c->args.edit;

    start_session(&c->session, &c->args.wish, &c->config, &c->history, again,
                  c->args.common.quiet || !c->args.store);
    if (c->args.edit && c->prompt.len == 0)
        chat_input_edit(&c->prompt, &c->history, buf_str(&c->session.id));
    *t = (struct turn){.kind = c->args.edit ? TURN_EDIT
                               : again      ? TURN_AGAIN
                                            : TURN_NEXT,
                       .history = &c->history,
                       .provider = c->server.provider,
                       .session = buf_str(&c->session.id),
                       .prompt = buf_str(&c->prompt),
                       .system = str_of(c->args.system),
                       .messages = c->args.messages
                                       ? (struct str){buf_c(&c->messages), c->messages.len}
                                       : STR_NONE,
                       .files = c->args.files};
    set_ask(c, &t->ask);
    if (config_max_messages(&c->config, &t->max_messages, &e) < 0 ||
        config_max_bytes(&c->config, &t->max_bytes, &e) < 0 || turn_prepare(t, &e) < 0)
        die_err(&e);
    start_report_bad(&c->history, t->bad_lines, c->args.common.quiet);
    start_report_entries(c->args.messages, t->bad_entries, c->args.common.quiet);
    events_context(&c->events, t);
}

/* The request, for chat --dry-run; otherwise what is wrong with it is found before anything is
 * stored. */
static void try_request(struct chat *c, bool print)
{
    struct http_request request;
    struct err e = ERR_INIT;

    http_request_init(&request);
    if (c->server.provider->request(c->server.provider, &c->turn.ask, &request, &e) < 0)
        die_err(&e);
    if (print)
        out_json_line(&c->events.out, buf_str(&request.body));
    http_request_release(&request);
}

/* What goes wrong with the history is told, and does not keep the question from being asked. */
static bool kept(struct chat *c, int result, struct err *e)
{
    if (result >= 0)
        return true;
    if (strcmp(err_text(e), err_text(&c->unsaved)) != 0)
        warn_err(e);
    err_release(&c->unsaved);
    c->unsaved = *e;
    return false;
}

/* Stores the prompt or the answer; with the first lines a session becomes current. */
static void keep(struct chat *c, int (*store)(struct turn *t, struct err *e))
{
    struct err e = ERR_INIT;

    if (c->args.store && kept(c, store(&c->turn, &e), &e) && !c->settled)
        c->settled = kept(c, resume_settle(&c->session, &c->history, &e), &e);
}

/* Stores, asks, stores. Gives the exit code. */
static int run(struct chat *c)
{
    struct turn *t = &c->turn;
    struct err e = ERR_INIT, asked = ERR_INIT;
    int status = 0;

    c->history.cancel_fd = interrupt_begin(&e);
    if (c->history.cancel_fd < 0)
        die_err(&e);
    t->ask.limits.cancel_fd = c->events.out.cancel_fd = c->history.cancel_fd;
    events_session(&c->events, t->session);
    keep(c, turn_store_prompt);
    if (c->unasked.kind == ERR_NONE)
        turn_ask(t, c->args.extract ? NULL : &c->events.sink, &asked);
    else
        asked = c->unasked;
    keep(c, turn_store_answer);
    if (c->args.extract && t->finished)
        events_code(&c->events, &t->answer, &asked);
    if (asked.kind == ERR_NONE)
        events_done(&c->events, t);
    else
        status = interrupt_signal() ? 128 + interrupt_signal() : exit_code(asked.kind);
    if (c->args.usage && t->answer.finished)
        events_usage(&t->answer);
    if (status == 0 && c->unsaved.kind != ERR_NONE)
        status = exit_code(ERR_UNSAVED);
    if (status != 0)
        events_error(&c->events, asked.kind != ERR_NONE ? &asked : &c->unsaved, status);
    /* What came is printed and stored; now the signal takes its course. */
    if (interrupt_signal()) {
        out_flush(&c->events.out);
        die_signal(interrupt_signal());
    }
    interrupt_end();
    c->history.cancel_fd = c->events.out.cancel_fd = -1;
    if (asked.kind != ERR_NONE && !t->answer.sink_failed)
        warn_err(&asked);
    err_release(&asked);
    err_release(&c->unsaved);
    return out_close(&c->events.out, status, status ? status : exit_code(ERR_FAILURE));
}

int main(int argc, char **argv)
{
    struct chat c = {
        .session = RESUME_INIT, .prompt = BUF_INIT(PROMPT_MAX), .messages = BUF_INIT(MESSAGES_MAX)};
    int status;

    /* A wrong command line is told by an event, too. */
    die_start("chat");
    events_start(&c.events, &(struct opt_common){.json = chat_args_want_json(argc, argv)}, false);
    chat_args_parse(&c.args, argc, argv);
    events_start(&c.events, &c.args.common, c.args.verbose);
    signal(SIGPIPE, SIG_IGN);
    if (!c.args.models && !c.args.regenerate)
        chat_input_prompt(&c.prompt, &c.args);
    if (c.args.messages)
        chat_input_messages(&c.messages, &c.args);
    start_history(&c.config, &c.history, &c.args.common);
    choose_server(&c);
    if (c.args.models) {
        status = list_models(&c);
    } else {
        prepare(&c);
        try_request(&c, c.args.dry_run);
        status = c.args.dry_run ? out_close(&c.events.out, 0, exit_code(ERR_FAILURE)) : run(&c);
        turn_release(&c.turn);
    }
    resume_release(&c.session);
    server_release(&c.server);
    buf_release(&c.prompt);
    buf_release(&c.messages);
    history_release(&c.history);
    config_release(&c.config);
    chat_args_release(&c.args);
    return status;
}
