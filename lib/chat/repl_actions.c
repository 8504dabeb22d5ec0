#include "chat/repl_actions.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/mem.h"
#include "chathist/cli/die.h"
#include "chathist/cli/line_signals.h"
#include "chat/editor.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/listing.h"
#include "chathist/chat/prompt.h"
#include "chat/save.h"
#include "chathist/cli/sessions.h"
#include "chathist/cli/show.h"
#include "chathist/cli/start.h"
#include "chathist/chat/talk_models.h"
#include "chathist/cli/interrupt.h"

/* Of a session that is loaded so many messages are shown. */
#define SHOWN_LAST 4
/* Where in /help a command is explained. */
#define HELP_COLUMN 18
/* How long lists are unless told otherwise. */
#define LIST_MAX 20

static void tell(struct err *e)
{
    warn_err(e);
    err_release(e);
}

void repl_say(struct repl *r, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_LINE), line = BUF_INIT(BUF_LINE);
    va_list ap;

    if (r->dialogue.talk->args->common.quiet)
        return;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    vis_add_line(&line, buf_str(&text), true);
    out_style(r->out, STYLE_DIM);
    out_raw(r->out, buf_str(&line));
    out_style(r->out, STYLE_NONE);
    out_byte(r->out, '\n');
    buf_release(&text);
    buf_release(&line);
}

/* ---- turns ---- */

/* Ctrl-C ends what was going on, another signal the conversation. */
static void interrupted(struct repl *r, int signo)
{
    if (signo == SIGINT)
        repl_say(r, "interrupted");
    else
        r->signal = signo;
}

void repl_ask(struct repl *r, enum turn_kind kind, struct str text)
{
    int status = dialogue_ask(&r->dialogue, kind, text);

    if (status > 128)
        interrupted(r, status - 128);
    out_byte(r->out, '\n');
}

static void edit(struct repl *r, struct str text)
{
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct err e = ERR_INIT;
    int found = 1;

    if (text.n == 0) {
        found = dialogue_last_prompt(&r->dialogue, &prompt, &e);
        if (found > 0) {
            line_lend(r->line, true);
            found = editor_edit(&prompt, &e) < 0 ? -1 : 1;
            line_lend(r->line, false);
        }
        text = buf_str(&prompt);
    }
    if (found < 0)
        tell(&e);
    else if (found == 0)
        warnf("there is no prompt yet to be edited");
    else if (text.n == 0)
        warnf("no prompt: the editor left none");
    else
        repl_ask(r, TURN_EDIT, text);
    buf_release(&prompt);
}

/* ---- sessions ---- */

void repl_forget_list(struct repl *r)
{
    while (r->listed_count > 0)
        free(r->listed[--r->listed_count]);
    free(r->listed);
    r->listed = NULL;
    r->listed_cap = 0;
}

/* Begins a line of a numbered list. The caller gives the columns back. */
static void number(struct repl *r, struct str id)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    r->listed = mem_grow(r->listed, &r->listed_cap, r->listed_count + 1, sizeof *r->listed);
    r->listed[r->listed_count++] = mem_copy(id.p, id.n);
    buf_addf(&text, "%2zu  ", r->listed_count);
    out_raw(r->out, buf_str(&text));
    r->out->columns -= r->out->columns > text.len ? text.len : 0;
    buf_release(&text);
}

/* 1, 2, … or `all`; 0 for anything else. */
static size_t read_count(struct str text)
{
    size_t n = 0;

    if (str_eq_c(text, "all"))
        return SIZE_MAX;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || n > SIZE_MAX / 100)
            return 0;
        n = n * 10 + (size_t)(text.p[i] - '0');
    }
    return n;
}

static void list_sessions(struct repl *r, struct str text)
{
    struct history *h = &r->dialogue.talk->history;
    size_t most = text.n > 0 ? read_count(text) : LIST_MAX;
    struct session_list list;
    struct err e = ERR_INIT;

    if (most == 0) {
        warnf("bad number '%.*s': try '/sessions 10' or '/sessions all'", (int)text.n, text.p);
        return;
    }
    if (session_list_newest(&list, h, most == SIZE_MAX ? most : most + 1, &e) < 0) {
        tell(&e);
        return;
    }
    repl_forget_list(r);
    for (size_t i = 0; i < list.count && i < most; i++) {
        number(r, (struct str){list.at[i].id, list.at[i].id_len});
        list_session(r->out, &list.at[i], false);
        out_measure(r->out);
    }
    if (list.count == 0)
        repl_say(r, "there are no sessions yet");
    else
        repl_say(r, "%s/load N continues one",
                 list.count > most ? "/sessions all lists older ones, " : "");
    start_report_bad(h, list.bad_lines, r->dialogue.talk->args->common.quiet);
    session_list_release(&list);
}

static void search(struct repl *r, struct str text)
{
    struct history *h = &r->dialogue.talk->history;
    struct hits_form form = {0};
    struct pattern pattern;
    struct search search;
    struct hit hit;
    struct err e = ERR_INIT;
    int found = 0;

    if (text.n == 0) {
        warnf("no text: try '/search TEXT'");
        return;
    }
    pattern_init(&pattern);
    if (pattern_add(&pattern, text, &e) < 0 ||
        search_open(&search, h->dir_fd, h->path, &pattern, NULL, SCAN_BACKWARD, &e) < 0) {
        pattern_release(&pattern);
        tell(&e);
        return;
    }
    repl_forget_list(r);
    line_signals_forget();
    while (!line_signals_interrupted() && (found = search_next(&search, &hit, &e)) > 0) {
        if (r->listed_count == LIST_MAX)
            break;
        number(r, hit.message->session_id);
        hits_print(r->out, &hit, &form);
        out_measure(r->out);
    }
    if (found < 0)
        tell(&e);
    else if (r->listed_count == 0)
        repl_say(r, "nothing was found");
    else
        repl_say(r, "%s/load N continues the session of one", found > 0 ? "there are more; " : "");
    start_report_bad(h, search.scan.bad, r->dialogue.talk->args->common.quiet);
    search_close(&search);
    pattern_release(&pattern);
}

/* What /load names: a number of the last list, or a session. */
static int resolve(struct repl *r, struct str name, struct buf *id, struct err *e)
{
    size_t n = read_count(name);

    if (n > 0 && n <= r->listed_count) {
        buf_add_c(id, r->listed[n - 1]);
        return 0;
    }
    return sessions_resolve_named(&r->dialogue.talk->history, name, id, e);
}

static void load(struct repl *r, struct str name)
{
    struct history *h = &r->dialogue.talk->history;
    struct show show = {.last = SHOWN_LAST};
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    size_t messages;

    if (name.n == 0) {
        warnf("no session: try '/load ID', or '/load N' behind a list");
    } else if (resolve(r, name, &id, &e) < 0 ||
               dialogue_continue(&r->dialogue, buf_str(&id), &e) < 0) {
        tell(&e);
    } else {
        messages = show_session(r->out, h, buf_str(&id), &show);
        start_report_bad(h, show.bad_lines, r->dialogue.talk->args->common.quiet);
        if (messages == SHOW_NOT_COUNTED)
            repl_say(r, "session %s", buf_c(&id));
        else
            repl_say(r, "session %s, %zu message%s", buf_c(&id), messages,
                     messages == 1 ? "" : "s");
    }
    buf_release(&id);
}

static void begin(struct repl *r, struct str system)
{
    char *text = mem_copy(system.p, system.n);

    dialogue_begin(&r->dialogue, system.n > 0 ? text : NULL);
    repl_say(r, "session %s", buf_c(&r->dialogue.talk->session.id));
    free(text);
}

/* ---- models, prompts, tools ---- */

static void list_models(struct repl *r)
{
    struct talk *talk = r->dialogue.talk;
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    line_signals_forget();
    if (repl_complete_models(&r->complete, &talk->args->limits, &e) < 0) {
        tell(&e);
        return;
    }
    for (size_t i = 0; i < r->complete.models.count; i++) {
        const char *model = r->complete.models.at[i];
        bool present = talk->server.model && strcmp(model, talk->server.model) == 0;

        buf_clear(&name);
        buf_addf(&name, "%s %s:%s\n", present ? "*" : " ", talk->server.provider->name, model);
        out_text(r->out, buf_str(&name));
    }
    out_text_end(r->out);
    buf_release(&name);
}

static void change_model(struct repl *r, struct str name)
{
    struct talk *talk = r->dialogue.talk;
    struct err e = ERR_INIT;
    char *copy;
    int result;

    if (name.n == 0) {
        list_models(r);
        return;
    }
    copy = mem_copy(name.p, name.n);
    /* A command for its key may ask for something. */
    line_lend(r->line, true);
    result = talk_change_model(talk, copy, &e);
    line_lend(r->line, false);
    if (result < 0 && e.kind == ERR_SIGNAL)
        interrupted(r, interrupt_signal());
    else if (result < 0)
        tell(&e);
    else
        repl_say(r, "model %s:%s", talk->server.provider->name, talk->server.model);
    err_release(&e);
    free(copy);
}

static void set_system(struct repl *r, struct str text)
{
    struct buf present = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    int found;

    if (text.n > 0) {
        dialogue_set_system(&r->dialogue, str_eq_c(text, "\"\"") ? STR("") : text);
        repl_say(r, "from the next prompt on");
        return;
    }
    found = dialogue_system(&r->dialogue, &present, &e);
    if (found < 0) {
        tell(&e);
    } else if (found == 0) {
        repl_say(r, "there is no system prompt");
    } else {
        out_text(r->out, buf_str(&present));
        out_text_end(r->out);
        out_byte(r->out, '\n');
    }
    buf_release(&present);
}

static void list_tools(struct repl *r)
{
    const struct toolbox *box = &r->dialogue.talk->toolbox;
    struct buf line = BUF_INIT(BUF_SMALL);

    for (size_t i = 0; i < box->count; i++) {
        buf_clear(&line);
        vis_add_line(&line, str_of(box->at[i]->name), true);
        buf_add_c(&line, "  ");
        vis_add_line(&line, str_of(box->at[i]->description), true);
        buf_add_byte(&line, '\n');
        out_raw(r->out, buf_str(&line));
    }
    if (box->count == 0)
        repl_say(r, "no tools were given to the model");
    buf_release(&line);
}

/* ---- files ---- */

static void attach(struct repl *r, struct str name)
{
    struct dialogue *d = &r->dialogue;
    struct err e = ERR_INIT;

    if (str_eq_c(name, "-")) {
        dialogue_detach_files(d);
    } else if (name.n > 0) {
        char *file = repl_file_name(d, name);

        if (dialogue_attach(d, file, &e) < 0)
            tell(&e);
        free(file);
    }
    for (size_t i = 0; i < d->files_count; i++)
        repl_say(r, "%s: goes with the next prompt", d->files[i]);
    if (d->files_count == 0)
        repl_say(r, "no file is attached");
}

/* May the file be overwritten? */
static bool confirmed(struct repl *r, const char *file)
{
    struct buf question = BUF_INIT(BUF_SMALL), answer = BUF_INIT(BUF_LINE);
    bool yes;

    vis_add_line(&question, str_of(file), true);
    buf_add_c(&question, " is there: overwrite it? [y/N] ");
    out_flush(r->out);
    yes = line_read(r->line, buf_str(&question), &answer) == LINE_TEXT && answer.len > 0 &&
          (answer.data[0] == 'y' || answer.data[0] == 'Y');
    buf_release(&question);
    buf_release(&answer);
    return yes;
}

static void save(struct repl *r, struct str rest)
{
    struct str name = rest, flag = str_cut(&name, ' ');
    bool answer = str_eq_c(flag, "-a");
    struct buf text = BUF_INIT((size_t)-1);
    struct err e = ERR_INIT;
    char *file;
    int result;

    name = answer ? str_trim(name) : rest;
    if (name.n == 0) {
        warnf("no file: try '/save FILE', or '/save -a FILE' for the last answer alone");
        return;
    }
    file = repl_file_name(&r->dialogue, name);
    result = save_format(&r->dialogue, answer, &text, &e);
    if (result == 0) {
        warnf("there is nothing yet to be saved");
    } else if (result > 0) {
        result = save_write(file, buf_str(&text), false, &e);
        if (result == 0 && confirmed(r, file))
            result = save_write(file, buf_str(&text), true, &e);
        repl_say(r, result > 0 ? "%s: saved" : "%s: not saved", file);
    }
    if (result < 0)
        tell(&e);
    free(file);
    buf_release(&text);
}

/* ---- help ---- */

static void help_line(struct repl *r, const struct repl_command *c)
{
    struct buf line = BUF_INIT(BUF_SMALL);
    size_t width;

    buf_addf(&line, "/%s %s", c->name, c->args);
    width = line.len;
    out_style(r->out, STYLE_BOLD);
    out_raw(r->out, buf_str(&line));
    out_style(r->out, STYLE_NONE);
    buf_clear(&line);
    buf_addf(&line, "%*s  %s\n", width < HELP_COLUMN ? (int)(HELP_COLUMN - width) : 0, "", c->help);
    out_raw(r->out, buf_str(&line));
    buf_release(&line);
}

static void help(struct repl *r, struct str name)
{
    const struct repl_command *c = repl_commands();

    if (str_starts(name, STR("/")))
        name = (struct str){name.p + 1, name.n - 1};
    if (name.n > 0) {
        c = repl_command_find(name);
        if (c)
            help_line(r, c);
        else
            warnf("there is no command '/%.*s'", (int)name.n, name.p);
        return;
    }
    for (; c->name; c++)
        help_line(r, c);
    out_raw(
        r->out,
        STR("\nAlt-Enter, Shift-Enter or Ctrl-J begins a new line, as \\ does at the end of one;\n"
            "\"\"\" begins and ends a text of several. //x sends /x.\n"
            "exit, quit and :q alone leave, help and ? show this; a blank before them sends them.\n"
            "Ctrl-C stops an answer, Ctrl-R looks for an earlier prompt.\n"));
}

void repl_act(struct repl *r, const struct repl_command *command, struct str rest)
{
    switch (command->does) {
    case REPL_NEW:
        begin(r, rest);
        break;
    case REPL_LOAD:
        load(r, rest);
        break;
    case REPL_SEARCH:
        search(r, rest);
        break;
    case REPL_SESSIONS:
        list_sessions(r, rest);
        break;
    case REPL_REGENERATE:
        repl_ask(r, TURN_AGAIN, STR_NONE);
        break;
    case REPL_EDIT:
        edit(r, rest);
        break;
    case REPL_MODEL:
        change_model(r, rest);
        break;
    case REPL_SYSTEM:
        set_system(r, rest);
        break;
    case REPL_TOOLS:
        list_tools(r);
        break;
    case REPL_FILE:
        attach(r, rest);
        break;
    case REPL_SAVE:
        save(r, rest);
        break;
    case REPL_HELP:
        help(r, rest);
        break;
    case REPL_QUIT:
        r->leave = true;
        break;
    }
}
