#include "chathist/repl/repl.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/path.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/chat_session.h"
#include "chathist/chat/input.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/wide.h"
#include "chathist/history/scan.h"
#include "chathist/terminal/input_history.h"
#include "repl/commands.h"
#include "repl/sessions.h"

/* ---- typed text ---- */

/* The maximum width of the names of model and session in the prompt. */
#define NAME_COLUMNS 20
/* The length of the end of a generated id; it is enough to name the session. */
#define ID_END 6

#define BLOCK STR("\"\"\"")

static void add_shown_name(struct buf *out, struct str name)
{
    struct buf safe = BUF_INIT(BUF_SMALL);

    vis_add_line(&safe, name, true);
    wide_add_fitted(out, buf_str(&safe), NAME_COLUMNS);
    buf_release(&safe);
}

/* Adds the prompt, `model session> `, with only the end of a generated id. */
static void add_repl_prompt(struct buf *out, const struct repl *r)
{
    const struct server *server = &r->chat->server;
    struct str id = buf_str(&r->chat->session.id);

    if (str_starts(id, STR("sess_")) && id.n > ID_END)
        id = (struct str){id.p + id.n - ID_END, ID_END};
    add_shown_name(out, str_of(server->model ? server->model : server->provider->name));
    buf_add_byte(out, ' ');
    add_shown_name(out, id);
    buf_add_c(out, "> ");
}

/* A backslash at the end continues the line, unless another backslash precedes it. */
static bool ends_in_backslash(const struct buf *text)
{
    size_t n = 0;

    while (n < text->len && text->data[text->len - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

/* Reads the lines after the first one: up to the quotes that end a block, or while lines are
 * continued. */
static enum line_came read_rest(struct repl *r, struct buf *text, bool block)
{
    struct buf line = BUF_INIT(PROMPT_MAX);
    enum line_came came = LINE_TEXT;

    while (came == LINE_TEXT &&
           (block ? !str_ends(buf_str(text), BLOCK) : ends_in_backslash(text))) {
        if (!block)
            buf_truncate(text, text->len - 1);
        came = line_read(r->line, STR("... "), &line);
        if (came == LINE_CLEARED || came == LINE_SIGNAL)
            break;
        if (came == LINE_TEXT) {
            buf_add_byte(text, '\n');
            buf_add_str(text, buf_str(&line));
        }
    }
    buf_release(&line);
    /* Ctrl-D ends the text, not the program. */
    return came == LINE_END ? LINE_TEXT : came;
}

/* Reads a text of one or several lines. */
static enum line_came read_typed(struct repl *r, struct buf *text)
{
    struct buf prompt = BUF_INIT(BUF_SMALL);
    enum line_came came;
    bool block;

    add_repl_prompt(&prompt, r);
    came = line_read(r->line, buf_str(&prompt), text);
    buf_release(&prompt);
    if (came == LINE_CLEARED && text->len == 0)
        repl_say(r, "Ctrl-D or /quit leaves");
    if (came != LINE_TEXT)
        return came;
    block = str_starts(buf_str(text), BLOCK);
    if (block)
        buf_consume(text, BLOCK.n);
    came = read_rest(r, text, block);
    if (block && str_ends(buf_str(text), BLOCK))
        buf_truncate(text, text->len - BLOCK.n);
    return came;
}

/* Removes newlines at both ends of a block. */
static struct str trim_lines(struct str text)
{
    while (text.n > 0 && text.p[0] == '\n')
        text = (struct str){text.p + 1, text.n - 1};
    while (text.n > 0 && text.p[text.n - 1] == '\n')
        text.n--;
    return text;
}

/* Finds the command for a word that leaves other interactive programs. A blank before the word
 * makes it a prompt. */
static const struct repl_command *find_bare(struct str text)
{
    static const struct {
        const char *word, *name;
    } words[] = {
        {"exit", "quit"}, {"quit", "quit"}, {":q", "quit"}, {"help", "help"}, {"?", "help"},
    };

    while (text.n > 0 && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
        text.n--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq_c(text, words[i].word))
            return repl_find_command(str_of(words[i].name));
    return NULL;
}

/* Does what a typed text says: `/word ...` is a command, `//...` the prompt `/...`. A word with
 * another slash in it, such as a path, and a slash alone begin a prompt. */
static void run_typed(struct repl *r, struct str text)
{
    const struct repl_command *command = find_bare(text);
    struct str name = {text.p + 1, 0}, rest;

    r->chat->history->now = time_now();
    if (command) {
        command->run(r, STR(""));
        return;
    }
    while (name.n + 1 < text.n && !strchr(" \t\r\n/", name.p[name.n]))
        name.n++;
    rest = (struct str){name.p + name.n, text.n - name.n - 1};
    if (text.p[0] != '/' || name.n == 0 || str_starts(rest, STR("/"))) {
        if (str_starts(text, STR("//")))
            text = (struct str){text.p + 1, text.n - 1};
        repl_ask(r, TURN_NEXT, text);
        return;
    }
    command = repl_find_command(name);
    if (command)
        command->run(r, str_trim(rest));
    else
        repl_report_unknown(name);
}

/* ---- earlier prompts ---- */

static void recall(void *arg, struct str text)
{
    line_remember(arg, text);
}

/* ---- the conversation ---- */

static void hold_conversation(struct repl *r, char **path)
{
    struct buf text = BUF_INIT(PROMPT_MAX);
    struct err e = ERR_INIT;
    enum line_came came;
    struct str trimmed;

    while (!r->leave && r->signal == 0) {
        out_measure(r->out);
        r->signal = line_signals_fatal();
        if (out_flush(r->out) < 0 || r->signal)
            break;
        came = read_typed(r, &text);
        if (came == LINE_END)
            break;
        if (came == LINE_SIGNAL)
            r->signal = line_signals_fatal();
        trimmed = trim_lines(buf_str(&text));
        if (came != LINE_TEXT || str_trim(trimmed).n == 0)
            continue;
        if (line_remember(r->line, trimmed) && *path && input_history_add(*path, trimmed, &e) < 0) {
            /* The error is reported only once. */
            warn_err(&e);
            err_release(&e);
            free(*path);
            *path = NULL;
        }
        run_typed(r, trimmed);
    }
    buf_release(&text);
}

static void lend(void *arg, bool lent)
{
    line_lend(arg, lent);
}

/* Chooses the session as the command line says, and attaches its files. */
static void open_conversation(struct repl *r)
{
    struct chat_session *chat = r->chat;
    struct history *h = chat->history;
    struct err e = ERR_INIT;
    struct scan scan;

    chat_session_check_history(chat);
    /* A file that cannot be a history ends the program before the first prompt. */
    if (chat->args->store && !h->unreadable) {
        if (scan_open(&scan, h->dir_fd, h->path, &e) < 0)
            die_err(&e);
        scan_close(&scan);
    }
    chat_session_choose(chat);
    chat->store.in_memory = !chat->args->store;
    if (chat->store.in_memory && repl_copy_to_memory(chat, &e) < 0)
        die_err(&e);
    if (chat->args->system)
        repl_set_system(r, str_of(chat->args->system));
    for (size_t i = 0; i < chat->args->files.count; i++)
        if (repl_attach(r, chat->args->files.at[i], &e) < 0)
            die_err(&e);
}

static bool edit_draft(void *arg, struct buf *text)
{
    struct err e = ERR_INIT;

    (void)arg;
    if (editor_edit(text, &e) == 0)
        return true;
    repl_report(&e);
    return false;
}

/* The key is loaded before the editor takes the terminal, because its command may use it. */
static void prepare_terminal(struct repl *r, struct chat_session *chat)
{
    struct line_setup setup = {
        .complete = repl_complete, .edit = edit_draft, .arg = r, .color = chat->events.out.color};
    struct err e = ERR_INIT;

    if (server_load_key(&chat->server, &e) < 0)
        die_err(&e);
    chat_session_open_tools(chat);
    if (line_open(&r->line, &setup, &e) < 0) {
        mcp_servers_close(&chat->mcp, false);
        die_err(&e);
    }
    chat->events.interactive = true;
    chat->consent.lend = lend;
    chat->consent.lend_arg = r->line;
}

int repl_run(struct chat_session *chat)
{
    struct repl r = {.chat = chat, .out = &chat->events.out, .system = BUF_INIT(BUF_LINE)};
    struct err e = ERR_INIT;
    char *path = NULL;

    /* The file with earlier prompts. If nothing is stored, they are neither read nor added. */
    if (chat->args->store && chat->choice.config.state_home)
        path = path_join(chat->choice.config.state_home, "chathist/prompts");
    open_conversation(&r);
    prepare_terminal(&r, chat);
    if (path && input_history_load(path, recall, r.line, &e) < 0)
        repl_report(&e);
    repl_show_last(&r);
    repl_say(&r, "/help lists the commands, Ctrl-D leaves");
    hold_conversation(&r, &path);
    events_spent_in_all(&chat->events);
    chat->consent.lend = NULL;
    line_close(r.line);
    words_release(&r.listed);
    words_release(&r.files);
    model_list_release(&r.models);
    buf_release(&r.system);
    free(path);
    if (r.signal > 0)
        return 128 + r.signal;
    return chat->store.in_memory && chat->args->store ? exit_code(ERR_UNSAVED) : 0;
}
