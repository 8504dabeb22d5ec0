#include "chathist/chat/repl.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chat/input_history.h"
#include "chat/line_editor.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/chat/chat_session.h"
#include "chathist/chat/context_window.h"
#include "chathist/chat/input.h"
#include "chathist/chat/prompt.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/listing.h"
#include "chathist/cli/options.h"
#include "chathist/cli/output.h"
#include "chathist/cli/show.h"
#include "chathist/cli/signals.h"
#include "chathist/cli/start.h"
#include "chathist/convert/export.h"
#include "chathist/history/scan.h"
#include "chathist/history/session.h"
#include "chathist/history/thread.h"
#include "chathist/llm/models.h"

/* An interactive conversation. If nothing is stored (--no-store, or the history could not be
 * written), chat->memory has the lines of its session, so that the model still gets them. */
struct repl {
    struct chat_session *chat;
    struct line *line;
    struct out *out;
    struct buf system; /* becomes the system prompt with the next turn */
    bool has_system;
    struct line_words files;  /* attached to the next prompt */
    struct line_words listed; /* session ids of the last numbered list */
    struct model_list models; /* of that provider's server, once they were requested */
    const struct provider *models_of;
    int signal; /* the signal that ends the program; 0: none */
    bool leave;
};

/* The argument of a command; completion offers values of this kind. */
enum repl_takes {
    REPL_TAKES_TEXT,
    REPL_TAKES_SESSION,
    REPL_TAKES_MODEL,
    REPL_TAKES_FILE,
    REPL_TAKES_COMMAND,
};

struct repl_command {
    const char *name; /* without its slash; NULL ends the table */
    const char *args; /* as help shows them; "" for no argument */
    enum repl_takes takes;
    const char *help;
    /* `rest` is the argument without blanks around it */
    void (*run)(struct repl *r, struct str rest);
};

/* Returns the first command of the table at the end of this file. */
static const struct repl_command *first_command(void);

static const struct repl_command *find_command(struct str name)
{
    for (const struct repl_command *c = first_command(); c->name; c++)
        if (str_eq_c(name, c->name))
            return c;
    return NULL;
}

static void report_error(struct err *e)
{
    warn_err(e);
    err_release(e);
}

__attribute__((format(printf, 2, 3))) static void repl_say(struct repl *r, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_LINE), line = BUF_INIT(BUF_LINE);
    va_list ap;

    if (r->chat->args->common.quiet)
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

/* ---- the session ---- */

/* Loads the thread of the session. The caller releases it. Returns 0, or -1 with *e set. */
static int load_thread(const struct repl *r, struct thread *t, struct err *e)
{
    struct chat_session *chat = r->chat;

    if (!chat->in_memory)
        return thread_find(t, &chat->history, buf_str(&chat->session.id), false, e);
    context_window_parse(t, &chat->memory);
    return 0;
}

/* Copies the lines of the session from the history. Returns 0, or -1 with *e set. */
static int copy_to_memory(struct chat_session *chat, struct err *e)
{
    struct thread t;

    buf_clear(&chat->memory);
    if (thread_find(&t, &chat->history, buf_str(&chat->session.id), true, e) < 0)
        return -1;
    for (size_t i = 0; i < t.count; i++) {
        buf_add_str(&chat->memory, t.at[i].line);
        buf_add_byte(&chat->memory, '\n');
    }
    thread_release(&t);
    return 0;
}

/* The history could not be written, so the conversation is kept in memory from now on. */
static void go_on_in_memory(struct chat_session *chat, struct turn *turn)
{
    struct err e = ERR_INIT;

    chat->in_memory = true;
    if (copy_to_memory(chat, &e) < 0)
        report_error(&e);
    if (turn_remember(turn, &chat->memory, &e) < 0)
        report_error(&e);
    warnf("nothing is stored from now on: the conversation goes on in memory");
}

static void set_next_system(struct repl *r, struct str text)
{
    buf_clear(&r->system);
    buf_add_str(&r->system, text);
    r->has_system = true;
}

static void forget_system(struct repl *r)
{
    buf_clear(&r->system);
    r->has_system = false;
}

/* Ends the program if the file cannot be a history, before the first prompt. */
static void check_history(struct chat_session *chat)
{
    struct err e = ERR_INIT;
    struct scan scan;

    chat_session_look_at_history(chat);
    if (!chat->args->store || chat->history.unreadable)
        return;
    if (scan_open(&scan, chat->history.dir_fd, chat->history.path, SCAN_FORWARD, &e) < 0)
        die_err(&e);
    scan_close(&scan);
}

/* ---- turns ---- */

/* Attaches a file to the next prompt. Returns 0, or -1 with *e set. */
static int attach(struct repl *r, const char *file, struct err *e)
{
    struct buf tried = BUF_INIT(PROMPT_MAX);
    struct attachment_list attachments = {0};
    int result;

    /* The file is read now and with its prompt; a FIFO would be empty the second time. */
    if (file_check_regular(file, e) < 0) {
        e->kind = ERR_USAGE;
        return -1;
    }
    result = attach_file(&tried, &attachments, file, e);
    attachment_list_release(&attachments);
    buf_release(&tried);
    if (result == 0)
        line_offer(&r->files, str_of(file));
    return result;
}

static int add_files(const struct repl *r, struct buf *prompt, struct attachment_list *attachments,
                     struct err *e)
{
    for (size_t i = 0; i < r->files.count; i++)
        if (attach_file(prompt, attachments, r->files.at[i], e) < 0)
            return -1;
    return prompt->overflow
               ? err_set(e, ERR_USAGE, "prompt is too long: over %zu MiB", PROMPT_MAX >> 20)
               : 0;
}

/* Ctrl-C ends only the turn, another signal ends the conversation. */
static void note_interrupt(struct repl *r, int signo)
{
    if (signo == SIGINT)
        repl_say(r, "interrupted");
    else
        r->signal = signo;
}

static void run_turn(struct repl *r, struct turn *turn)
{
    struct chat_session *chat = r->chat;
    struct err e = ERR_INIT;
    int status;

    chat_session_seek_model(chat);
    if (chat_session_prepare(chat, turn, &e) < 0 || chat_session_check(chat, turn, false, &e) < 0) {
        report_error(&e);
        return;
    }
    status = chat_session_run(chat, turn);
    if (turn->files)
        line_words_release(&r->files);
    if (turn->prompt_stored || turn->unstored_count > 0)
        forget_system(r);
    if (turn->unstored_count > 0)
        go_on_in_memory(chat, turn);
    if (status > 128)
        note_interrupt(r, status - 128);
}

/* Runs one turn; TURN_AGAIN needs no text. */
static void repl_ask(struct repl *r, enum turn_kind kind, struct str text)
{
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct attachment_list attachments = {0};
    struct err e = ERR_INIT;
    struct turn turn = {.kind = kind,
                        .system = r->has_system ? (struct str){buf_c(&r->system), r->system.len}
                                                : STR_NONE,
                        .attachments = &attachments};

    if (kind != TURN_AGAIN) {
        buf_add_str(&prompt, text);
        turn.files = (const char *const *)r->files.at;
    }
    if (kind != TURN_AGAIN && add_files(r, &prompt, &attachments, &e) < 0) {
        report_error(&e);
    } else {
        turn.prompt = buf_str(&prompt);
        run_turn(r, &turn);
        turn_release(&turn);
    }
    attachment_list_release(&attachments);
    buf_release(&prompt);
    out_byte(r->out, '\n');
}

static void regenerate(struct repl *r, struct str rest)
{
    (void)rest;
    repl_ask(r, TURN_AGAIN, STR_NONE);
}

static void edit_last_prompt(struct repl *r, struct str text)
{
    struct buf prompt = BUF_INIT(PROMPT_MAX);
    struct err e = ERR_INIT;
    int found = 1;

    if (text.n == 0) {
        found = turn_last_prompt(&r->chat->history, r->chat->in_memory ? &r->chat->memory : NULL,
                                 buf_str(&r->chat->session.id), &prompt, &e);
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

/* The number of messages that /load shows. */
#define SHOWN_LAST 4
/* The default length of lists. */
#define LIST_MAX 20

/* Prints the number of a line in a list, and reduces the width that is left. The caller calls
 * out_measure after the line. */
static void add_list_number(struct repl *r, struct str id)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    line_offer(&r->listed, id);
    buf_addf(&text, "%2zu  ", r->listed.count);
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
    struct history *h = &r->chat->history;
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
    line_words_release(&r->listed);
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
    start_report_bad(h, list.bad_lines, r->chat->args->common.quiet);
    session_list_release(&list);
}

static void search_history(struct repl *r, struct str text)
{
    struct history *h = &r->chat->history;
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
    line_words_release(&r->listed);
    line_signals_forget();
    while (!line_signals_interrupted() && (found = search_next(&search, &hit, &e)) > 0) {
        if (r->listed.count == LIST_MAX)
            break;
        add_list_number(r, hit.message->session_id);
        hits_print(r->out, &hit, &form);
        out_measure(r->out);
    }
    if (found < 0)
        report_error(&e);
    else if (r->listed.count == 0)
        repl_say(r, "nothing was found");
    else
        repl_say(r, "%s/load N continues the session of one", found > 0 ? "there are more; " : "");
    start_report_bad(h, search.scan.bad, r->chat->args->common.quiet);
    search_close(&search);
    pattern_release(&pattern);
}

/* Finds the session of /load: a number of the last list, or a name. */
static int resolve_listed(struct repl *r, struct str name, struct buf *id, struct err *e)
{
    size_t n = read_count(name);

    if (n > 0 && n <= r->listed.count) {
        buf_add_c(id, r->listed.at[n - 1]);
        return 0;
    }
    return start_resolve_named(&r->chat->history, name, id, e);
}

/* Continues a session of the history. The system prompt for the next turn is dropped, attached
 * files are kept. Returns 0, or -1 with *e set. */
static int continue_session(struct repl *r, const struct buf *id, struct err *e)
{
    struct chat_session *chat = r->chat;

    if (!chat->in_memory && start_try_current(&chat->config, &chat->history, buf_str(id),
                                              chat->args->common.quiet, e) < 0)
        return -1;
    buf_clear(&chat->session.id);
    buf_add_str(&chat->session.id, buf_str(id));
    chat->session.fresh = chat->session.make_current = false;
    forget_system(r);
    return chat->in_memory ? copy_to_memory(chat, e) : 0;
}

static void load_session(struct repl *r, struct str name)
{
    struct history *h = &r->chat->history;
    const struct filter every = {0};
    struct show show = {.last = SHOWN_LAST, .filter = &every};
    struct buf id = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    size_t messages;

    if (name.n == 0) {
        warnf("no session: try '/load ID', or '/load N' after a list");
    } else if (resolve_listed(r, name, &id, &e) < 0 || continue_session(r, &id, &e) < 0) {
        report_error(&e);
    } else {
        messages = show_session(r->out, h, buf_str(&id), &show);
        start_report_bad(h, show.bad_lines, r->chat->args->common.quiet);
        if (messages == SHOW_NOT_COUNTED)
            repl_say(r, "session %s", buf_c(&id));
        else
            repl_say(r, "session %s, %zu message%s", buf_c(&id), messages,
                     messages == 1 ? "" : "s");
    }
    buf_release(&id);
}

/* Begins a new session with a system prompt, by default the one of the command line. */
static void begin_session(struct repl *r, struct str system)
{
    struct chat_session *chat = r->chat;
    struct resume_wish wish = {.fresh = true};

    start_session(&chat->session, &wish, &chat->config, &chat->history, false, true);
    chat->settled = false;
    buf_clear(&chat->memory);
    forget_system(r);
    if (system.n > 0)
        set_next_system(r, system);
    else if (chat->args->system)
        set_next_system(r, str_of(chat->args->system));
    repl_say(r, "session %s", buf_c(&chat->session.id));
}

/* ---- models, prompts, tools ---- */

/* Requests the models of the present server, unless they are known. Returns 0, or -1 with *e
 * set. */
static int load_models(struct repl *r, const struct http_limits *limits, struct err *e)
{
    struct http_limits own = *limits;

    if (r->models_of == r->chat->server.provider && r->models.count > 0)
        return 0;
    model_list_release(&r->models);
    r->models_of = r->chat->server.provider;
    own.cancel_fd = line_signals_fd();
    if (chat_session_load_models(r->chat, &own, &r->models, e) == 0)
        return 0;
    model_list_release(&r->models);
    r->models = (struct model_list){0};
    return -1;
}

static void list_models(struct repl *r)
{
    struct chat_session *chat = r->chat;
    struct buf name = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    line_signals_forget();
    if (load_models(r, &chat->args->limits, &e) < 0) {
        report_error(&e);
        return;
    }
    for (size_t i = 0; i < r->models.count; i++) {
        const char *model = r->models.at[i];
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
    struct chat_session *chat = r->chat;
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

/* Returns the text without the quotation marks around all of it. */
static struct str unquoted(struct str text)
{
    bool quoted = text.n >= 2 && text.p[0] == '"' && text.p[text.n - 1] == '"' &&
                  !memchr(text.p + 1, '"', text.n - 2);

    return quoted ? (struct str){text.p + 1, text.n - 2} : text;
}

static void set_system(struct repl *r, struct str text)
{
    struct buf present = BUF_INIT(BUF_LINE), scratch = BUF_INIT(BUF_LINE);
    struct thread t = {0};
    struct err e = ERR_INIT;

    if (text.n > 0) {
        set_next_system(r, unquoted(text));
        repl_say(r, "from the next prompt on");
        return;
    }
    buf_add_str(&present, buf_str(&r->system));
    if (!r->has_system && load_thread(r, &t, &e) < 0) {
        report_error(&e);
        return;
    }
    for (size_t i = t.count; i > 0 && !r->has_system; i--)
        if (t.at[i - 1].role == ROLE_SYSTEM) {
            buf_add_str(&present, message_content(&t.at[i - 1], &scratch));
            break;
        }
    if (present.len == 0) {
        repl_say(r, "there is no system prompt");
    } else {
        out_text(r->out, buf_str(&present));
        out_text_end(r->out);
        out_byte(r->out, '\n');
    }
    thread_release(&t);
    buf_release(&present);
    buf_release(&scratch);
}

static void list_tools(struct repl *r, struct str rest)
{
    const struct toolbox *box = &r->chat->toolbox;
    struct buf line = BUF_INIT(BUF_SMALL);

    (void)rest;
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

/* Returns the path that a typed name means. The caller frees it. */
static char *file_of(const struct repl *r, struct str name)
{
    struct buf path = BUF_INIT(BUF_SMALL);

    if (str_starts(name, STR("~/")) && r->chat->config.home) {
        buf_add_c(&path, r->chat->config.home);
        name.p++;
        name.n--;
    }
    buf_add_str(&path, name);
    return buf_detach(&path);
}

static void attach_or_list(struct repl *r, struct str name)
{
    struct err e = ERR_INIT;
    char *file = file_of(r, name);

    if (str_eq_c(name, "-"))
        line_words_release(&r->files);
    else if (name.n > 0 && attach(r, file, &e) < 0)
        report_error(&e);
    for (size_t i = 0; i < r->files.count; i++)
        repl_say(r, "%s: goes with the next prompt", r->files.at[i]);
    if (r->files.count == 0)
        repl_say(r, "no file is attached");
    free(file);
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

static int add_bytes(void *arg, struct str bytes, struct err *e)
{
    (void)e;
    buf_add_str(arg, bytes);
    return 0;
}

/* Adds the conversation as Markdown. Returns 0, or -1 with *e set. */
static int add_markdown(const struct thread *t, struct buf *out, struct err *e)
{
    struct export x;
    int result = export_begin(&x, &export_md, add_bytes, out, e);

    if (result == 0)
        result = export_session(&x, t->at, t->count, e);
    if (result == 0)
        result = export_end(&x, e);
    export_release(&x);
    return result;
}

/* Adds the text of the last answer that has one. */
static void add_last_answer(const struct thread *t, struct buf *out)
{
    struct buf scratch = BUF_INIT(BUF_LINE);

    for (size_t i = t->count; i > 0 && out->len == 0; i--)
        if (t->at[i - 1].role == ROLE_ASSISTANT)
            buf_add_str(out, message_content(&t->at[i - 1], &scratch));
    if (out->len > 0 && !str_ends(buf_str(out), STR("\n")))
        buf_add_byte(out, '\n');
    buf_release(&scratch);
}

/* Writes a new file (mode 0600), or replaces one after a question. Returns 1, 0 if the user
 * refuses, or -1 with *e set. */
static int write_file(struct repl *r, const char *path, struct str text, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), result;

    if (fd < 0 && errno == EEXIST) {
        if (file_check_regular(path, e) < 0)
            return -1;
        if (!confirmed(r, path))
            return 0;
        return file_replace(path, text, e) < 0 ? -1 : 1;
    }
    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    result = file_write_all(fd, text.p, text.n);
    if (close(fd) < 0 || result < 0)
        return err_sys(e, errno, "cannot write '%s'", path);
    return 1;
}

static void save(struct repl *r, struct str rest)
{
    struct str name = rest, flag = str_cut(&name, ' ');
    bool answer = str_eq_c(flag, "-a");
    struct buf text = BUF_INIT(SIZE_MAX);
    struct thread t = {0};
    struct err e = ERR_INIT;
    char *file;
    int result;

    name = answer ? str_trim(name) : rest;
    if (name.n == 0) {
        warnf("no file: try '/save FILE', or '/save -a FILE' for the last answer alone");
        return;
    }
    file = file_of(r, name);
    result = load_thread(r, &t, &e);
    if (result == 0 && answer)
        add_last_answer(&t, &text);
    else if (result == 0 && t.count > 0)
        result = add_markdown(&t, &text, &e);
    if (result == 0 && text.len == 0) {
        warnf("there is nothing yet to be saved");
    } else if (result == 0) {
        result = write_file(r, file, buf_str(&text), &e);
        repl_say(r, result > 0 ? "%s: saved" : "%s: not saved", file);
    }
    if (result < 0)
        report_error(&e);
    thread_release(&t);
    free(file);
    buf_release(&text);
}

/* ---- help ---- */

/* The column of explanations in /help. */
#define HELP_COLUMN 18

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
    const struct repl_command *c = first_command();

    if (str_starts(name, STR("/")))
        name = (struct str){name.p + 1, name.n - 1};
    if (name.n > 0) {
        c = find_command(name);
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

static void leave(struct repl *r, struct str rest)
{
    (void)rest;
    r->leave = true;
}

static const struct repl_command *first_command(void)
{
    static const struct repl_command commands[] = {
        {"new", "[SYSTEM]", REPL_TAKES_TEXT, "start a new session", begin_session},
        {"load", "SESSION|N", REPL_TAKES_SESSION,
         "continue a past session, or the Nth of the last list", load_session},
        {"search", "TEXT", REPL_TAKES_TEXT, "search all messages, the newest first",
         search_history},
        {"sessions", "[N|all]", REPL_TAKES_TEXT, "list the sessions, the last used first",
         list_sessions},
        {"regenerate", "", REPL_TAKES_TEXT, "answer the last prompt again", regenerate},
        {"edit", "[TEXT]", REPL_TAKES_TEXT, "replace the last prompt, without TEXT in the editor",
         edit_last_prompt},
        {"model", "[NAME]", REPL_TAKES_MODEL, "ask another model, or list them", change_model},
        {"system", "[TEXT]", REPL_TAKES_TEXT, "set the system prompt (\"\": none), or show it",
         set_system},
        {"tools", "", REPL_TAKES_TEXT, "list the tools that the model may call", list_tools},
        {"file", "[FILE|-]", REPL_TAKES_FILE,
         "attach a file to the next prompt (-: none), or list them", attach_or_list},
        {"save", "[-a] FILE", REPL_TAKES_FILE,
         "write the conversation, or (-a) the last answer, to a file", save},
        {"help", "[COMMAND]", REPL_TAKES_COMMAND, "list the commands", print_commands},
        {"quit", "", REPL_TAKES_TEXT, "leave, as Ctrl-D does", leave},
        {"exit", "", REPL_TAKES_TEXT, "leave, as Ctrl-D does", leave},
        {0},
    };

    return commands;
}

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

static void offer_commands(struct line_words *words, struct str typed, const char *before)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    for (const struct repl_command *c = first_command(); c->name; c++) {
        buf_clear(&name);
        buf_addf(&name, "%s%s", before, c->name);
        offer_if(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

static void offer_sessions(const struct repl *r, struct line_words *words, struct str typed)
{
    struct session_list list;
    size_t i;

    if (session_list_newest(&list, &r->chat->history, SIZE_MAX, NULL) < 0)
        return;
    for (i = 0; i < list.count && words->count < SESSIONS_MAX; i++)
        offer_if(words, typed, (struct str){list.at[i].id, list.at[i].id_len});
    if (words->count == 0 && typed.n >= SUFFIX_LEAST)
        for (i = 0; i < list.count && words->count < SESSIONS_MAX; i++)
            if (str_ends((struct str){list.at[i].id, list.at[i].id_len}, typed))
                line_offer(words, (struct str){list.at[i].id, list.at[i].id_len});
    session_list_release(&list);
}

static void offer_models(struct repl *r, struct line_words *words, struct str typed)
{
    struct http_limits limits = {.connect_ms = MODELS_MS, .idle_ms = MODELS_MS};
    struct buf name = BUF_INIT(BUF_SMALL);

    load_models(r, &limits, NULL);
    for (size_t i = 0; i < r->models.count; i++) {
        struct str bare = str_of(r->models.at[i]);

        buf_clear(&name);
        buf_addf(&name, "%s:%s", r->models_of->name, r->models.at[i]);
        if (typed.n > 0 && str_starts(bare, typed))
            line_offer(words, bare);
        else
            offer_if(words, typed, buf_str(&name));
    }
    buf_release(&name);
}

static bool is_dot(struct str path)
{
    return str_eq_c(path, "./") || str_eq_c(path, "../") || str_ends(path, STR("/./")) ||
           str_ends(path, STR("/../"));
}

/* Offers files whose names begin with the typed text; hidden ones after a typed dot. */
static void offer_files(const struct repl *r, struct line_words *words, struct str typed)
{
    struct buf pattern = BUF_INIT(BUF_SMALL), word = BUF_INIT(BUF_SMALL);
    char *path = file_of(r, typed);
    bool below_home = str_starts(typed, STR("~/")) && path[0] != '~';
    size_t home = below_home ? strlen(path) - typed.n + 1 : 0;
    glob_t found;

    for (const char *c = path; *c; c++)
        buf_addf(&pattern, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
    buf_add_byte(&pattern, '*');
    if (glob(buf_c(&pattern), GLOB_MARK, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            buf_clear(&word);
            buf_addf(&word, "%s%s", below_home ? "~" : "", found.gl_pathv[i] + home);
            if (!is_dot(buf_str(&word)))
                line_offer(words, buf_str(&word));
        }
        globfree(&found);
    }
    free(path);
    buf_release(&pattern);
    buf_release(&word);
}

/* Offers commands, and the sessions, models or files that they take. */
static void complete_command(void *arg, struct str before, struct line_words *words)
{
    struct repl *r = arg;
    const struct repl_command *command;
    struct str typed = before, name;

    if (!str_starts(before, STR("/")) || str_find(before, STR("\n")))
        return;
    name = str_cut(&typed, ' ');
    if (!typed.p) {
        offer_commands(words, before, "/");
        return;
    }
    command = find_command((struct str){name.p + 1, name.n - 1});
    if (!command)
        return;
    while (str_starts(typed, STR(" ")) || (command->run == save && str_starts(typed, STR("-a ")))) {
        size_t n = typed.p[0] == ' ' ? 1 : 3;

        typed = (struct str){typed.p + n, typed.n - n};
    }
    words->from = (size_t)(typed.p - before.p);
    if (command->takes == REPL_TAKES_SESSION)
        offer_sessions(r, words, typed);
    if (command->takes == REPL_TAKES_MODEL)
        offer_models(r, words, typed);
    if (command->takes == REPL_TAKES_FILE)
        offer_files(r, words, typed);
    if (command->takes == REPL_TAKES_COMMAND)
        offer_commands(words, typed, "");
}

/* ---- typed text ---- */

/* The maximum width of the names of model and session in the prompt. */
#define NAME_COLUMNS 20
/* The length of the end of a generated id; it is enough to name the session. */
#define ID_END 6

#define BLOCK STR("\"\"\"")

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
    const struct server *server = &r->chat->server;
    struct str id = buf_str(&r->chat->session.id);

    if (str_starts(id, STR("sess_")) && id.n > ID_END)
        id = (struct str){id.p + id.n - ID_END, ID_END};
    add_name(out, str_of(server->model ? server->model : server->provider->name));
    buf_add_byte(out, ' ');
    add_name(out, id);
    buf_add_c(out, "> ");
}

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

/* A longer word is similar to no command. */
#define NAME_MAX_LEN 16

/* Returns the command that was probably meant, or NULL. */
static const struct repl_command *nearest_command(struct str name)
{
    char typed[NAME_MAX_LEN + 1] = {0};
    struct nearest meant = {.typed = typed};

    if (name.n > NAME_MAX_LEN)
        return NULL;
    memcpy(typed, name.p, name.n);
    for (const struct repl_command *c = first_command(); c->name; c++) {
        if (str_starts(str_of(c->name), name))
            return c;
        nearest_offer(&meant, c->name);
    }
    return meant.name ? find_command(str_of(meant.name)) : NULL;
}

static void report_unknown_command(struct str name)
{
    const struct repl_command *nearest = nearest_command(name);
    int n = (int)name.n;

    if (nearest)
        warnf("unknown command '/%.*s': did you mean /%s? ('//%.*s' sends it)", n, name.p,
              nearest->name, n, name.p);
    else
        warnf("unknown command '/%.*s' (/help lists them, '//%.*s' sends it)", n, name.p, n,
              name.p);
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
            return find_command(str_of(words[i].name));
    return NULL;
}

/* Does what a typed text says: `/word ...` is a command, `//...` the prompt `/...`. A word with
 * another slash in it, such as a path, and a slash alone begin a prompt. */
static void take_typed(struct repl *r, struct str text)
{
    const struct repl_command *command = find_bare(text);
    struct str name = {text.p + 1, 0}, rest;

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
    command = find_command(name);
    if (command)
        command->run(r, str_trim(rest));
    else
        report_unknown_command(name);
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

/* Chooses the session as the command line says, and attaches its files. */
static void open_conversation(struct repl *r)
{
    struct chat_session *chat = r->chat;
    struct err e = ERR_INIT;

    check_history(chat);
    chat_session_choose(chat);
    chat->in_memory = !chat->args->store;
    if (chat->in_memory && copy_to_memory(chat, &e) < 0)
        die_err(&e);
    if (chat->args->system)
        set_next_system(r, str_of(chat->args->system));
    for (size_t i = 0; i < chat->args->files.count; i++)
        if (attach(r, chat->args->files.at[i], &e) < 0)
            die_err(&e);
}

/* The key is loaded before the editor takes the terminal, because its command may use it. */
static void prepare_terminal(struct repl *r, struct chat_session *chat)
{
    struct line_setup setup = {complete_command, r, chat->events.out.color};
    struct err e = ERR_INIT;

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
    struct repl r = {.chat = chat, .out = &chat->events.out, .system = BUF_INIT(BUF_LINE)};
    struct err e = ERR_INIT;
    char *path = recall_path(chat);

    open_conversation(&r);
    prepare_terminal(&r, chat);
    if (path && input_history_load(path, recall, r.line, &e) < 0)
        report_error(&e);
    repl_say(&r, "/help lists the commands, Ctrl-D leaves");
    hold_conversation(&r, &path);
    events_spent_in_all(&chat->events);
    chat->consent.lend = NULL;
    line_close(r.line);
    line_words_release(&r.listed);
    line_words_release(&r.files);
    model_list_release(&r.models);
    buf_release(&r.system);
    free(path);
    if (r.signal > 0)
        return 128 + r.signal;
    return chat->in_memory && chat->args->store ? exit_code(ERR_UNSAVED) : 0;
}
