#include "chathist/chat/repl.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chat/conversation.h"
#include "chat/input_history.h"
#include "chat/line_editor.h"
#include "chat/repl_commands.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/chat_session.h"
#include "chathist/chat/input.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/output.h"
#include "chathist/cli/sessions.h"
#include "chathist/cli/show.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"
#include "chathist/history/session.h"
#include "chathist/llm/models.h"

/* What TAB completes: commands, and the sessions, models or files that they take. */
struct repl_complete {
    struct conversation *conversation;
    struct model_list models; /* of that provider's server, once they were requested */
    const struct provider *provider;
};

/* An interactive conversation. */
struct repl {
    struct conversation conversation;
    struct repl_complete complete;
    struct line *line;
    struct out *out;
    char **listed; /* session ids of the last numbered list */
    size_t listed_count, listed_cap;
    int signal; /* the signal that ends the program; 0: none */
    bool leave;
};

/* ---- completion ---- */

/* The maximum number of sessions that are offered, the newest. */
#define SESSIONS_MAX 40
/* The minimum length of an end of an id that names it (history/session). */
#define SUFFIX_LEAST 4
/* Completion does not wait longer for a slow server. */
#define MODELS_MS 2000

static void offer_if(struct line_words *words, struct str typed, struct str word)
{
    if (str_starts(word, typed))
        line_offer(words, word);
}

/* ---- commands ---- */

static void offer_commands(struct line_words *words, struct str typed, const char *before)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    for (const struct repl_command *c = repl_commands(); c->name; c++) {
        buf_clear(&name);
        buf_addf(&name, "%s%s", before, c->name);
        offer_if(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

/* ---- sessions ---- */

static void offer_sessions(const struct conversation *d, struct line_words *words, struct str typed)
{
    struct session_list list;
    size_t i;

    if (session_list_newest(&list, &d->chat->history, SIZE_MAX, NULL) < 0)
        return;
    for (i = 0; i < list.count && words->count < SESSIONS_MAX; i++)
        offer_if(words, typed, (struct str){list.at[i].id, list.at[i].id_len});
    if (words->count == 0 && typed.n >= SUFFIX_LEAST)
        for (i = 0; i < list.count && words->count < SESSIONS_MAX; i++)
            if (str_ends((struct str){list.at[i].id, list.at[i].id_len}, typed))
                line_offer(words, (struct str){list.at[i].id, list.at[i].id_len});
    session_list_release(&list);
}

/* ---- models ---- */

static int repl_complete_models(struct repl_complete *c, const struct http_limits *limits,
                                struct err *e)
{
    struct chat_session *chat = c->conversation->chat;
    struct http_limits own = *limits;

    if (c->provider == chat->server.provider && c->models.count > 0)
        return 0;
    model_list_release(&c->models);
    c->provider = chat->server.provider;
    own.cancel_fd = line_signals_fd();
    if (chat_session_load_models(chat, &own, &c->models, e) == 0)
        return 0;
    model_list_release(&c->models);
    c->models = (struct model_list){0};
    return -1;
}

static void offer_models(struct repl_complete *c, struct line_words *words, struct str typed)
{
    struct http_limits limits = {.connect_ms = MODELS_MS, .idle_ms = MODELS_MS};
    struct buf name = BUF_INIT(BUF_SMALL);

    repl_complete_models(c, &limits, NULL);
    for (size_t i = 0; i < c->models.count; i++) {
        struct str bare = str_of(c->models.at[i]);

        buf_clear(&name);
        buf_addf(&name, "%s:%s", c->provider->name, c->models.at[i]);
        if (typed.n > 0 && str_starts(bare, typed))
            line_offer(words, bare);
        else
            offer_if(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

static void repl_complete_release(struct repl_complete *c)
{
    model_list_release(&c->models);
}

/* ---- files ---- */

static char *repl_file_name(const struct conversation *d, struct str name)
{
    struct buf path = BUF_INIT(BUF_SMALL);

    if (str_starts(name, STR("~/")) && d->chat->config.home) {
        buf_add_c(&path, d->chat->config.home);
        name.p++;
        name.n--;
    }
    buf_add_str(&path, name);
    return buf_detach(&path);
}

static void offer_entry(struct line_words *words, const char *dir, struct str shown,
                        const char *entry)
{
    struct buf word = BUF_INIT(BUF_SMALL);
    char *path = path_join(dir, entry);
    struct stat st;

    buf_add_str(&word, shown);
    buf_add_c(&word, entry);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        buf_add_byte(&word, '/');
    line_offer(words, buf_str(&word));
    buf_release(&word);
    free(path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void offer_files(const struct conversation *d, struct line_words *words, struct str typed)
{
    size_t n = typed.n;
    struct str shown, start;
    struct dirent *entry;
    char *dir;
    DIR *stream;

    while (n > 0 && typed.p[n - 1] != '/')
        n--;
    shown = (struct str){typed.p, n};
    start = (struct str){typed.p + n, typed.n - n};
    dir = repl_file_name(d, n > 0 ? shown : STR("."));
    stream = opendir(dir);
    while (stream && (entry = readdir(stream))) {
        bool hidden = entry->d_name[0] == '.';

        /* Hidden files are offered after a typed dot. */
        if (str_starts(str_of(entry->d_name), start) && (!hidden || start.n > 0) &&
            strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            offer_entry(words, dir, shown, entry->d_name);
    }
    if (stream)
        closedir(stream);
    if (words->count > 1)
        qsort(words->at, words->count, sizeof *words->at, by_name);
    free(dir);
}

/* ---- all of them ---- */

static void offer_argument(struct repl_complete *c, enum repl_takes takes, struct str typed,
                           struct line_words *words)
{
    switch (takes) {
    case REPL_TAKES_SESSION:
        offer_sessions(c->conversation, words, typed);
        break;
    case REPL_TAKES_MODEL:
        offer_models(c, words, typed);
        break;
    case REPL_TAKES_FILE:
        offer_files(c->conversation, words, typed);
        break;
    case REPL_TAKES_COMMAND:
        offer_commands(words, typed, "");
        break;
    case REPL_TAKES_NOTHING:
    case REPL_TAKES_TEXT:
        break;
    }
}

static void repl_complete(void *arg, struct str before, struct line_words *words)
{
    struct repl_complete *c = arg;
    const struct repl_command *command;
    struct str typed = before, name;

    if (!str_starts(before, STR("/")) || str_find(before, STR("\n")))
        return;
    name = str_cut(&typed, ' ');
    if (!typed.p) {
        offer_commands(words, before, "/");
        return;
    }
    command = repl_command_find((struct str){name.p + 1, name.n - 1});
    if (!command)
        return;
    while (str_starts(typed, STR(" ")) ||
           (command->does == REPL_SAVE && str_starts(typed, STR("-a ")))) {
        size_t n = typed.p[0] == ' ' ? 1 : 3;

        typed = (struct str){typed.p + n, typed.n - n};
    }
    words->from = (size_t)(typed.p - before.p);
    offer_argument(c, command->takes, typed, words);
}

/* ---- commands ---- */

/* The number of messages that /load shows. */
#define SHOWN_LAST 4
/* The column of explanations in /help. */
#define HELP_COLUMN 18
/* The default length of lists. */
#define LIST_MAX 20

static void report_error(struct err *e)
{
    warn_err(e);
    err_release(e);
}

__attribute__((format(printf, 2, 3))) static void repl_say(struct repl *r, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_LINE), line = BUF_INIT(BUF_LINE);
    va_list ap;

    if (r->conversation.chat->args->common.quiet)
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

/* Ctrl-C ends only the turn, another signal ends the conversation. */
static void note_interrupt(struct repl *r, int signo)
{
    if (signo == SIGINT)
        repl_say(r, "interrupted");
    else
        r->signal = signo;
}

static void repl_ask(struct repl *r, enum turn_kind kind, struct str text)
{
    int status = conversation_ask(&r->conversation, kind, text);

    if (status > 128)
        note_interrupt(r, status - 128);
    out_byte(r->out, '\n');
}

static void edit_last_prompt(struct repl *r, struct str text)
{
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct err e = ERR_INIT;
    int found = 1;

    if (text.n == 0) {
        found = conversation_last_prompt(&r->conversation, &prompt, &e);
        if (found > 0) {
            line_lend(r->line, true);
            found = editor_edit(&prompt, &e) < 0 ? -1 : 1;
            line_lend(r->line, false);
        }
        text = buf_str(&prompt);
    }
    if (found < 0)
        report_error(&e);
    else if (found == 0)
        warnf("there is no prompt yet to be edited");
    else if (text.n == 0)
        warnf("no prompt: the editor left none");
    else
        repl_ask(r, TURN_EDIT, text);
    buf_release(&prompt);
}

/* ---- sessions ---- */

static void repl_forget_list(struct repl *r)
{
    while (r->listed_count > 0)
        free(r->listed[--r->listed_count]);
    free(r->listed);
    r->listed = NULL;
    r->listed_cap = 0;
}

/* Prints the number of a line in a list, and reduces the width that is left. The caller calls
 * out_measure after the line. */
static void add_list_number(struct repl *r, struct str id)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    r->listed = mem_grow(r->listed, &r->listed_cap, r->listed_count + 1, sizeof *r->listed);
    r->listed[r->listed_count++] = mem_copy(id.p, id.n);
    buf_addf(&text, "%2zu  ", r->listed_count);
    out_raw(r->out, buf_str(&text));
    r->out->columns -= r->out->columns > text.len ? text.len : 0;
    buf_release(&text);
}

/* Reads 1, 2, ... or `all`. Returns 0 for any other text. */
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
    struct history *h = &r->conversation.chat->history;
    size_t most = text.n > 0 ? read_count(text) : LIST_MAX;
    struct session_list list;
    struct err e = ERR_INIT;

    if (most == 0) {
        warnf("bad number '%.*s': try '/sessions 10' or '/sessions all'", (int)text.n, text.p);
        return;
    }
    if (session_list_newest(&list, h, most == SIZE_MAX ? most : most + 1, &e) < 0) {
        report_error(&e);
        return;
    }
    repl_forget_list(r);
    for (size_t i = 0; i < list.count && i < most; i++) {
        add_list_number(r, (struct str){list.at[i].id, list.at[i].id_len});
        list_session(r->out, &list.at[i], &(struct list_form){0});
        out_measure(r->out);
    }
    if (list.count == 0)
        repl_say(r, "there are no sessions yet");
    else
        repl_say(r, "%s/load N continues one",
                 list.count > most ? "/sessions all lists older ones, " : "");
    start_report_bad(h, list.bad_lines, r->conversation.chat->args->common.quiet);
    session_list_release(&list);
}

static void search_history(struct repl *r, struct str text)
{
    struct history *h = &r->conversation.chat->history;
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
        report_error(&e);
        return;
    }
    repl_forget_list(r);
    line_signals_forget();
    while (!line_signals_interrupted() && (found = search_next(&search, &hit, &e)) > 0) {
        if (r->listed_count == LIST_MAX)
            break;
        add_list_number(r, hit.message->session_id);
        hits_print(r->out, &hit, &form);
        out_measure(r->out);
    }
    if (found < 0)
        report_error(&e);
    else if (r->listed_count == 0)
        repl_say(r, "nothing was found");
    else
        repl_say(r, "%s/load N continues the session of one", found > 0 ? "there are more; " : "");
    start_report_bad(h, search.scan.bad, r->conversation.chat->args->common.quiet);
    search_close(&search);
    pattern_release(&pattern);
}

/* Finds the session of /load: a number of the last list, or a name. */
static int resolve_listed(struct repl *r, struct str name, struct buf *id, struct err *e)
{
    size_t n = read_count(name);

    if (n > 0 && n <= r->listed_count) {
        buf_add_c(id, r->listed[n - 1]);
        return 0;
    }
    return sessions_resolve_named(&r->conversation.chat->history, name, id, e);
}

static void load_session(struct repl *r, struct str name)
{
    struct history *h = &r->conversation.chat->history;
    struct show show = {.last = SHOWN_LAST};
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    size_t messages;

    if (name.n == 0) {
        warnf("no session: try '/load ID', or '/load N' behind a list");
    } else if (resolve_listed(r, name, &id, &e) < 0 ||
               conversation_continue(&r->conversation, buf_str(&id), &e) < 0) {
        report_error(&e);
    } else {
        messages = show_session(r->out, h, buf_str(&id), &show);
        start_report_bad(h, show.bad_lines, r->conversation.chat->args->common.quiet);
        if (messages == SHOW_NOT_COUNTED)
            repl_say(r, "session %s", buf_c(&id));
        else
            repl_say(r, "session %s, %zu message%s", buf_c(&id), messages,
                     messages == 1 ? "" : "s");
    }
    buf_release(&id);
}

static void begin_session(struct repl *r, struct str system)
{
    char *text = mem_copy(system.p, system.n);

    conversation_begin(&r->conversation, system.n > 0 ? text : NULL);
    repl_say(r, "session %s", buf_c(&r->conversation.chat->session.id));
    free(text);
}

/* ---- models, prompts, tools ---- */

static void list_models(struct repl *r)
{
    struct chat_session *chat = r->conversation.chat;
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    line_signals_forget();
    if (repl_complete_models(&r->complete, &chat->args->limits, &e) < 0) {
        report_error(&e);
        return;
    }
    for (size_t i = 0; i < r->complete.models.count; i++) {
        const char *model = r->complete.models.at[i];
        bool present = chat->server.model && strcmp(model, chat->server.model) == 0;

        buf_clear(&name);
        buf_addf(&name, "%s %s:%s\n", present ? "*" : " ", chat->server.provider->name, model);
        out_text(r->out, buf_str(&name));
    }
    out_text_end(r->out);
    buf_release(&name);
}

static void change_model(struct repl *r, struct str name)
{
    struct chat_session *chat = r->conversation.chat;
    struct err e = ERR_INIT;
    char *copy;
    int result;

    if (name.n == 0) {
        list_models(r);
        return;
    }
    copy = mem_copy(name.p, name.n);
    /* The command that prints the key may use the terminal. */
    line_lend(r->line, true);
    result = chat_session_change_model(chat, copy, &e);
    line_lend(r->line, false);
    if (result < 0 && e.kind == ERR_SIGNAL)
        note_interrupt(r, interrupt_signal());
    else if (result < 0)
        report_error(&e);
    else
        repl_say(r, "model %s:%s", chat->server.provider->name, chat->server.model);
    err_release(&e);
    free(copy);
}

static void set_system(struct repl *r, struct str text)
{
    struct buf present = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;
    int found;

    if (text.n > 0) {
        conversation_set_system(&r->conversation, str_eq_c(text, "\"\"") ? STR("") : text);
        repl_say(r, "from the next prompt on");
        return;
    }
    found = conversation_system(&r->conversation, &present, &e);
    if (found < 0) {
        report_error(&e);
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
    const struct toolbox *box = &r->conversation.chat->toolbox;
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

static void attach_or_list(struct repl *r, struct str name)
{
    struct conversation *d = &r->conversation;
    struct err e = ERR_INIT;

    if (str_eq_c(name, "-")) {
        conversation_detach_files(d);
    } else if (name.n > 0) {
        char *file = repl_file_name(d, name);

        if (conversation_attach(d, file, &e) < 0)
            report_error(&e);
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
    file = repl_file_name(&r->conversation, name);
    result = conversation_format(&r->conversation, answer, &text, &e);
    if (result == 0) {
        warnf("there is nothing yet to be saved");
    } else if (result > 0) {
        result = conversation_write_file(file, buf_str(&text), false, &e);
        if (result == 0 && confirmed(r, file))
            result = conversation_write_file(file, buf_str(&text), true, &e);
        repl_say(r, result > 0 ? "%s: saved" : "%s: not saved", file);
    }
    if (result < 0)
        report_error(&e);
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

static void print_commands(struct repl *r, struct str name)
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

static void repl_act(struct repl *r, const struct repl_command *command, struct str rest)
{
    switch (command->does) {
    case REPL_NEW:
        begin_session(r, rest);
        break;
    case REPL_LOAD:
        load_session(r, rest);
        break;
    case REPL_SEARCH:
        search_history(r, rest);
        break;
    case REPL_SESSIONS:
        list_sessions(r, rest);
        break;
    case REPL_REGENERATE:
        repl_ask(r, TURN_AGAIN, STR_NONE);
        break;
    case REPL_EDIT:
        edit_last_prompt(r, rest);
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
        attach_or_list(r, rest);
        break;
    case REPL_SAVE:
        save(r, rest);
        break;
    case REPL_HELP:
        print_commands(r, rest);
        break;
    case REPL_QUIT:
        r->leave = true;
        break;
    }
}

/* ---- the conversation ---- */

/* The maximum width of the names of model and session in the prompt. */
#define NAME_COLUMNS 20
/* The length of the end of a generated id; it is enough to name the session. */
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

/* Adds the prompt, `model session> `, with only the end of a generated id. */
static void add_repl_prompt(struct buf *out, const struct repl *r)
{
    const struct server *server = &r->conversation.chat->server;
    struct str id = conversation_session(&r->conversation);

    if (str_starts(id, STR("sess_")) && id.n > ID_END)
        id = (struct str){id.p + id.n - ID_END, ID_END};
    add_name(out, str_of(server->model ? server->model : server->provider->name));
    buf_add_byte(out, ' ');
    add_name(out, id);
    buf_add_c(out, "> ");
}

/* ---- typed text ---- */

/* A backslash at the end continues the line, unless another backslash precedes it. */
static bool is_continued(const struct buf *text)
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

/* ---- earlier prompts ---- */

static void recall(void *arg, struct str text)
{
    line_remember(arg, text);
}

/* Returns the file with earlier prompts, or NULL if there is no place for it or nothing is
 * stored. */
static char *recall_path(const struct chat_session *chat)
{
    if (!chat->args->store || !chat->config.state_home)
        return NULL;
    return path_join(chat->config.state_home, "chathist/prompts");
}

static void keep_prompt(struct repl *r, char **path, struct str text)
{
    struct err e = ERR_INIT;

    if (!line_remember(r->line, text) || !*path || input_history_add(*path, text, &e) == 0)
        return;
    /* The error is reported only once. */
    warn_err(&e);
    err_release(&e);
    free(*path);
    *path = NULL;
}

/* ---- the conversation ---- */

static void take_typed(struct repl *r, struct str text)
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

static void hold_conversation(struct repl *r, char **path)
{
    struct buf text = BUF_INIT(PROMPT_MAX);
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
        keep_prompt(r, path, trimmed);
        take_typed(r, trimmed);
    }
    buf_release(&text);
}

static void lend(void *arg, bool lent)
{
    line_lend(arg, lent);
}

/* The key is loaded before the editor takes the terminal, because its command may use it. */
static void prepare_terminal(struct repl *r, struct chat_session *chat)
{
    struct line_setup setup = {repl_complete, &r->complete, chat->events.out.color};
    struct err e = ERR_INIT;

    conversation_open(&r->conversation, chat);
    r->complete.conversation = &r->conversation;
    if (server_load_key(&chat->server, &e) < 0 || chat_session_open_tools(chat, &e) < 0 ||
        line_open(&r->line, &setup, &e) < 0) {
        mcp_servers_close(&chat->mcp, false);
        die_err(&e);
    }
    chat->events.interactive = true;
    chat->consent.lend = lend;
    chat->consent.lend_arg = r->line;
}

int repl_run(struct chat_session *chat)
{
    struct repl r = {.out = &chat->events.out};
    struct err e = ERR_INIT;
    char *path = recall_path(chat);

    prepare_terminal(&r, chat);
    if (path && input_history_load(path, recall, r.line, &e) < 0) {
        warn_err(&e);
        err_release(&e);
    }
    repl_say(&r, "/help lists the commands, Ctrl-D leaves");
    hold_conversation(&r, &path);
    chat->consent.lend = NULL;
    line_close(r.line);
    repl_forget_list(&r);
    repl_complete_release(&r.complete);
    conversation_close(&r.conversation);
    free(path);
    if (r.signal > 0)
        return 128 + r.signal;
    return chat->in_memory ? exit_code(ERR_UNSAVED) : 0;
}
