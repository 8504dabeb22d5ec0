#include "chathist/chat/repl.h"

#include <stdlib.h>

#include "chathist/base/path.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/die.h"
#include "chathist/cli/line_signals.h"
#include "chat/recall.h"
#include "chathist/chat/prompt.h"
#include "chat/repl_actions.h"

/* Columns of a model's and a session's name in the prompt. */
#define NAME_COLUMNS 20
/* The end of a session's id that we made: enough to name it. */
#define ID_END 6

#define BLOCK STR("\"\"\"")

/* ---- the prompt ---- */

static void add_name(struct buf *out, struct str name)
{
    struct buf safe = BUF_INIT(BUF_SMALL);
    struct str fits;

    vis_add_line(&safe, name, true);
    fits = utf8_fit(buf_str(&safe), NAME_COLUMNS);
    buf_add_str(out, fits);
    if (fits.n < safe.len)
        buf_add_c(out, "\xe2\x80\xa6");
    buf_release(&safe);
}

/* `model session> `: of an id that was made here only its random end. */
static void add_prompt(struct buf *out, const struct repl *r)
{
    const struct server *server = &r->dialogue.talk->server;
    struct str id = dialogue_session(&r->dialogue);

    if (str_starts(id, STR("sess_")) && id.n > ID_END)
        id = (struct str){id.p + id.n - ID_END, ID_END};
    add_name(out, str_of(server->model ? server->model : server->provider->name));
    buf_add_byte(out, ' ');
    add_name(out, id);
    buf_add_c(out, "> ");
}

/* ---- what is typed ---- */

/* A backslash at the end, itself not behind another one, continues the line. */
static bool is_continued(const struct buf *text)
{
    size_t n = 0;

    while (n < text->len && text->data[text->len - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

/* Reads what follows the first line: up to the quotes that end a block, or while lines are
 * continued. */
static enum line_came read_rest(struct repl *r, struct buf *text, bool block)
{
    struct buf line = BUF_INIT(PROMPT_MAX);
    enum line_came came = LINE_TEXT;

    while (came == LINE_TEXT && (block ? !str_ends(buf_str(text), BLOCK) : is_continued(text))) {
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

/* A text of one line or several. */
static enum line_came read_text(struct repl *r, struct buf *text)
{
    struct buf prompt = BUF_INIT(BUF_SMALL);
    enum line_came came;
    bool block;

    add_prompt(&prompt, r);
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

/* What stands round a block's text is no part of it. */
static struct str trim_lines(struct str text)
{
    while (text.n > 0 && text.p[0] == '\n')
        text = (struct str){text.p + 1, text.n - 1};
    while (text.n > 0 && text.p[text.n - 1] == '\n')
        text.n--;
    return text;
}

/* ---- what was typed before ---- */

static void recall(void *arg, struct str text)
{
    line_remember(arg, text);
}

/* NULL when there is no place for it, or nothing is to be stored. */
static char *recall_path(const struct talk *talk)
{
    if (!talk->args->store || !talk->config.state_home)
        return NULL;
    return path_join(talk->config.state_home, "chathist/prompts");
}

static void keep(struct repl *r, char **path, struct str text)
{
    struct err e = ERR_INIT;

    if (!line_remember(r->line, text) || !*path || recall_add(*path, text, &e) == 0)
        return;
    /* Told once. */
    warn_err(&e);
    err_release(&e);
    free(*path);
    *path = NULL;
}

/* ---- the conversation ---- */

static void take(struct repl *r, struct str text)
{
    const struct repl_command *command = NULL, *nearest;
    struct str rest;

    switch (repl_read_input(text, &command, &rest)) {
    case REPL_PROMPT:
        repl_ask(r, TURN_NEXT, rest);
        break;
    case REPL_COMMAND:
        repl_act(r, command, rest);
        break;
    case REPL_UNKNOWN:
        nearest = repl_command_nearest(rest);
        if (nearest)
            warnf("unknown command '/%.*s': did you mean /%s? ('//%.*s' sends it)", (int)rest.n,
                  rest.p, nearest->name, (int)rest.n, rest.p);
        else
            warnf("unknown command '/%.*s' (/help lists them, '//%.*s' sends it)", (int)rest.n,
                  rest.p, (int)rest.n, rest.p);
        break;
    }
}

static void converse(struct repl *r, char **path)
{
    struct buf text = BUF_INIT(PROMPT_MAX);
    enum line_came came;
    struct str trimmed;

    while (!r->leave && r->signal == 0) {
        out_measure(r->out);
        r->signal = line_signals_fatal();
        if (out_flush(r->out) < 0 || r->signal)
            break;
        came = read_text(r, &text);
        if (came == LINE_END)
            break;
        if (came == LINE_SIGNAL)
            r->signal = line_signals_fatal();
        trimmed = trim_lines(buf_str(&text));
        if (came != LINE_TEXT || str_trim(trimmed).n == 0)
            continue;
        keep(r, path, trimmed);
        take(r, trimmed);
    }
    buf_release(&text);
}

static void lend(void *arg, bool lent)
{
    line_lend(arg, lent);
}

/* Before the terminal is the line's: a command for the key may ask for something on it. */
static void get_ready(struct repl *r, struct talk *talk)
{
    struct line_setup setup = {repl_complete, &r->complete, talk->events.out.color};
    struct err e = ERR_INIT;

    dialogue_open(&r->dialogue, talk);
    r->complete.dialogue = &r->dialogue;
    if (server_load_key(&talk->server, &e) < 0 || talk_open_tools(talk, &e) < 0 ||
        line_open(&r->line, &setup, &e) < 0) {
        mcp_servers_close(&talk->mcp, false);
        die_err(&e);
    }
    talk->events.interactive = true;
    talk->consent.lend = lend;
    talk->consent.lend_arg = r->line;
}

int repl_run(struct talk *talk)
{
    struct repl r = {.out = &talk->events.out};
    struct err e = ERR_INIT;
    char *path = recall_path(talk);

    get_ready(&r, talk);
    if (path && recall_load(path, recall, r.line, &e) < 0) {
        warn_err(&e);
        err_release(&e);
    }
    repl_say(&r, "/help lists the commands, Ctrl-D leaves");
    converse(&r, &path);
    talk->consent.lend = NULL;
    line_close(r.line);
    repl_forget_list(&r);
    repl_complete_release(&r.complete);
    dialogue_close(&r.dialogue);
    free(path);
    if (r.signal > 0)
        return 128 + r.signal;
    return talk->in_memory ? exit_code(ERR_UNSAVED) : 0;
}
