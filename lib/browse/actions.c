#include "browse/actions.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"

void browse_act_init(struct browse_act *a, const struct history *histories, const char *self)
{
    *a = (struct browse_act){.histories = histories};
    if (strchr(self, '/')) {
        char *parent = path_parent(self);

        a->dir = path_real(parent, NULL);
        free(parent);
    }
}

void browse_act_release(struct browse_act *a)
{
    free(a->dir);
}

/* ---- commands ---- */

static void push(struct words *w, const char *text, size_t n)
{
    w->at = mem_grow(w->at, &w->cap, w->count + 2, sizeof *w->at);
    w->at[w->count++] = mem_copy(text, n);
    w->at[w->count] = NULL;
}

static void push_c(struct words *w, const char *text)
{
    push(w, text, strlen(text));
}

/* Adds the command for a program of the suite. It runs in the directory of a history that is not
 * the user's current one, so that it finds that history by the same rules, with its pointer and
 * index. */
static void push_program(struct words *w, const struct browse_act *a, const char *name,
                         size_t history)
{
    const struct history *h = &a->histories[history];
    char *path = a->dir ? path_join(a->dir, name) : mem_copy(name, strlen(name));
    bool elsewhere = history > 0 && h->kind != HISTORY_EXPLICIT && h->dir;

    if (elsewhere) {
        char *parent = path_parent(h->dir);

        push_c(w, "sh");
        push_c(w, "-c");
        push_c(w,
               "cd -- \"$1\" && shift && unset CHAT_HISTORY GIT_DIR GIT_COMMON_DIR && exec \"$@\"");
        push_c(w, "sh");
        push_c(w, parent);
        free(parent);
    }
    push_c(w, path);
    if (h->kind == HISTORY_EXPLICIT) {
        push_c(w, "--history");
        push_c(w, h->path);
    }
    free(path);
}

/* Adds the id as a JSON string; readers never interpret that as a prefix, a suffix or `last`. */
static void push_session(struct words *w, struct str id)
{
    struct buf quoted = BUF_INIT(8 * BUF_LINE);

    json_add_string(&quoted, id);
    push_c(w, "--");
    push(w, quoted.data, quoted.len);
    buf_release(&quoted);
}

/* Adds a file name, made absolute because the program may run in another directory. */
static void push_file(struct words *w, struct str name)
{
    char *given = mem_copy(name.p, name.n);
    char *here = getcwd(NULL, 0);
    char *path = path_join(here ? here : "", given);

    push_c(w, path);
    free(path);
    free(here);
    free(given);
}

void browse_act_settle_name(struct browse *b)
{
    struct str typed = buf_str(&b->name.text);
    const char *home = config_env("HOME");
    struct buf name = BUF_INIT(BUF_LINE);
    struct stat st;

    if (home && (str_starts(typed, STR("~/")) || str_eq_c(typed, "~"))) {
        buf_add_c(&name, home);
        typed = (struct str){typed.p + 1, typed.n - 1};
    }
    buf_add_str(&name, typed);
    if (stat(buf_c(&name), &st) == 0 && S_ISDIR(st.st_mode)) {
        if (!str_ends(buf_str(&name), STR("/")))
            buf_add_byte(&name, '/');
        browse_add_file_name(&name, b);
    }
    browse_edit_set(&b->name, buf_str(&name));
    buf_release(&name);
}

bool browse_act_overwrites(const struct browse *b)
{
    struct stat st;

    return stat(buf_c(&b->name.text), &st) == 0 && S_ISREG(st.st_mode);
}

bool browse_act_command(const struct browse_act *a, const struct browse *b,
                        enum browse_command command, struct words *argv)
{
    const struct message *m = browse_message(b);
    size_t history = b->subject.history;
    struct str id = buf_str(&b->subject.id);

    *argv = (struct words){0};
    if (command == BROWSE_FORK && !browse_chosen(b, &history, &id))
        return false;
    if (command == BROWSE_EXPORT) {
        push_program(argv, a, "hist-export", history);
        push_c(argv, "-q");
        push_c(argv, "-o");
        push_file(argv, buf_str(&b->name.text));
    } else if (command == BROWSE_DELETE) {
        push_program(argv, a, "hist-delete", history);
        push_c(argv, "--force");
    } else {
        push_program(argv, a, "hist-fork", history);
        push_c(argv, "-q");
        push_c(argv, "--detached");
        if (m) {
            push_c(argv, "--at");
            push(argv, m->id.p, m->id.n);
        }
    }
    push_session(argv, id);
    return true;
}

/* ---- pager and editor ---- */

/* PAGER and EDITOR are shell commands, so a shell runs them. $1 is the file. */
static const char pager_script[] = "exec </dev/tty >/dev/tty 2>&1\n"
                                   "case ${PAGER-} in '' | cat) PAGER='less -+F' ;; esac\n"
                                   "cat -- \"$1\" | eval \"$PAGER\"";
static const char editor_script[] =
    "exec </dev/tty >/dev/tty 2>&1; file=$1; eval \"${VISUAL:-${EDITOR:-vi}} \\\"\\$file\\\"\"";

/* Makes a file that only the user can read. Returns its descriptor, or -1. */
static int make_file(char **file, struct err *e)
{
    const char *dir = config_env("TMPDIR");
    int fd;

    *file = path_join(dir ? dir : "/tmp", "hist-browse.XXXXXX");
    fd = mkstemp(*file);
    if (fd < 0)
        err_sys(e, errno, "cannot write '%s'", *file);
    return fd;
}

/* Writes text with its control characters made visible, because some pagers (more, less -r) and
 * editors pass them to the terminal. */
static int put_visible(int fd, struct vis *vis, struct str text, bool last)
{
    struct buf visible = BUF_INIT(SIZE_MAX);
    int result;

    vis_feed(vis, text, &visible);
    if (last)
        vis_end(vis, &visible);
    result = file_write_all(fd, buf_c(&visible), visible.len);
    buf_release(&visible);
    return result;
}

static int put_message(int fd, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = message_content(m, &scratch);
    struct vis vis = {0};
    int result = put_visible(fd, &vis, text, true);

    if (result == 0 && !str_ends(text, STR("\n")))
        result = file_write_all(fd, "\n", 1);
    buf_release(&scratch);
    return result;
}

/* Writes the output of hist-show. Returns 0, the status of hist-show, or -1 with *e set. */
static int put_session(int fd, const struct browse_act *a, size_t history, struct str id,
                       struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct words argv = {0};
    struct vis vis = {0};
    int status;

    push_program(&argv, a, "hist-show", history);
    push_c(&argv, "--no-pager");
    push_session(&argv, id);
    status = process_read(argv.at, NULL, &text, -1, e);
    if (status == 0 && put_visible(fd, &vis, buf_str(&text), true) < 0)
        status = err_sys(e, errno, "cannot write a temporary file");
    words_release(&argv);
    buf_release(&text);
    return status;
}

int browse_act_open(const struct browse_act *a, const struct browse *b, enum browse_command command,
                    struct err *e)
{
    const struct message *m = b->focus == BROWSE_TEXT ? browse_message(b) : NULL;
    const char *what = command == BROWSE_PAGER ? "the pager" : "the editor";
    struct words argv = {0};
    size_t history;
    struct str id;
    char *file;
    int fd, status;

    if (!browse_chosen(b, &history, &id))
        return err_set(e, ERR_ABSENT, "there is nothing to open");
    fd = make_file(&file, e);
    status = fd < 0 ? -1 : m ? put_message(fd, m) : put_session(fd, a, history, id, e);
    if (fd >= 0 && m && status < 0)
        err_sys(e, errno, "cannot write '%s'", file);
    if (fd >= 0)
        close(fd);
    if (status > 0)
        what = "hist-show";
    if (status == 0) {
        push_c(&argv, "sh");
        push_c(&argv, "-c");
        push_c(&argv, command == BROWSE_PAGER ? pager_script : editor_script);
        push_c(&argv, "hist-browse");
        push_c(&argv, file);
        status = process_run(argv.at, -1, e);
    }
    if (fd >= 0)
        unlink(file);
    if (status == 127)
        status = err_set(e, ERR_FAILURE, "%s was not found", what);
    else if (status > 0)
        status = err_set(e, ERR_FAILURE, "%s failed with status %d", what, status);
    words_release(&argv);
    free(file);
    return status;
}

/* ---- programs that run in order ---- */

/* How long a program that is stopped may take to end. */
#define GRACE_MS 2000
/* A program that does not read the text for so long is ended. */
#define COPY_MS ((int64_t)2000)

static void add_job(struct browse_job **end, enum browse_command about, struct str name,
                    struct words *argv)
{
    struct browse_job *job = mem_zalloc(sizeof *job);

    job->about = about;
    job->argv = *argv;
    job->child = (struct child)CHILD_INIT;
    buf_init(&job->name, BUF_LINE);
    buf_init(&job->out, BUF_LINE);
    buf_init(&job->said, BUF_SMALL);
    buf_add_str(&job->name, name);
    *argv = (struct words){0};
    while (*end)
        end = &(*end)->next;
    *end = job;
}

void browse_jobs_run(struct browse_jobs *j, enum browse_command about, struct str name,
                     struct words *argv)
{
    add_job(&j->first, about, name, argv);
}

static void drop_job(struct browse_job **first)
{
    struct browse_job *job = *first;

    *first = job->next;
    words_release(&job->argv);
    buf_release(&job->name);
    buf_release(&job->out);
    buf_release(&job->said);
    free(job);
}

/* Ends a program, and forgets all of the list. */
static void stop_jobs(struct browse_job **first, int64_t grace_ms)
{
    if (*first && (*first)->started) {
        child_term(&(*first)->child);
        child_end(&(*first)->child, grace_ms);
    }
    while (*first)
        drop_job(first);
}

static bool start_job(struct browse_job *job)
{
    struct err e = ERR_INIT;

    job->started = true;
    job->until = time_ticks() + COPY_MS;
    if (child_start(&job->child, job->argv.at, NULL, NULL, &e) == 0)
        return true;
    buf_add_c(&job->said, err_text(&e));
    err_release(&e);
    job->child.status = -1;
    return false;
}

/* Starts a program, or reads what it prints. Returns true when it has ended. */
static bool step_job(struct browse_job *job)
{
    bool ended;

    if (!job->started && !start_job(job))
        return true;
    child_close(&job->child.in);
    /* What a program has printed before its end is there when it has ended. */
    ended = child_ended(&job->child);
    while (child_read(&job->child.out, &job->out) || child_read(&job->child.err, &job->said))
        continue;
    if (ended)
        child_end(&job->child, 0);
    return ended;
}

/* Chooses the new session when the list has been read again. That is requested here because the
 * list may already contain the session, and then the file does not change any more. */
static void choose_fork(struct browse *b, struct str id)
{
    size_t place = browse_sessions_find(&b->sessions, BROWSE_ANY_HISTORY, id);

    if (b->searching)
        return;
    if (place != SIZE_MAX) {
        browse_choose(b, place);
        return;
    }
    buf_clear(&b->back.session);
    buf_add_str(&b->back.session, id);
    b->back.row = 0;
    b->back.list = true;
    b->back.text = false;
    browse_want_sessions(b);
}

static void report_job(const struct browse_job *job, struct browse *b, struct buf *failures)
{
    struct str said = str_trim(buf_str(&job->said)), id = str_trim(buf_str(&job->out));
    struct buf text = BUF_INIT(BUF_LINE);

    if (job->child.status != 0) {
        buf_add_str(&text, said);
        if (said.n == 0)
            buf_addf(&text, "failed with status %d", job->child.status);
        if (failures)
            buf_addf(failures, "%s%s", failures->len > 0 ? "; " : "", buf_c(&text));
    } else if (job->about == BROWSE_EXPORT) {
        buf_addf(&text, "exported to '%s'", buf_c(&job->name));
    } else if (job->about == BROWSE_DELETE) {
        buf_add_c(&text, "deleted");
    } else {
        buf_addf(&text, "forked: '%.*s'", (int)id.n, id.p ? id.p : "");
        choose_fork(b, id);
    }
    browse_say(b, buf_c(&text));
    buf_release(&text);
}

/* ---- the clipboard ---- */

/* GNU screen passes the content of a device control string on to the terminal, up to this size. */
#define SCREEN_PIECE ((size_t)240)

static void wrap_for_screen(struct buf *out, struct str sequence)
{
    while (sequence.n > 0) {
        size_t n = sequence.n < SCREEN_PIECE ? sequence.n : SCREEN_PIECE;

        buf_add_c(out, "\033P");
        buf_add(out, sequence.p, n);
        buf_add_c(out, "\033\\");
        sequence = (struct str){sequence.p + n, sequence.n - n};
    }
}

/* Sends the text to the terminal, which does not answer. Returns false if it is known to ignore
 * it. */
static bool send_to_terminal(int fd, struct str text)
{
    const char *term = config_env("TERM");
    struct buf sequence = BUF_INIT(SIZE_MAX), wrapped = BUF_INIT(SIZE_MAX), *sent = &sequence;
    int result;

    if (text.n > BROWSE_CLIPBOARD_MAX || config_env("TMUX") || (term && strcmp(term, "linux") == 0))
        return false;
    buf_add_c(&sequence, "\033]52;c;");
    buf_add_base64(&sequence, text);
    buf_add_c(&sequence, "\a");
    if (config_env("STY")) {
        wrap_for_screen(&wrapped, buf_str(&sequence));
        sent = &wrapped;
    }
    result = file_write_all(fd, sent->data, sent->len);
    buf_release(&sequence);
    buf_release(&wrapped);
    return result == 0;
}

/* Writes on. Returns false if the program does not read. */
static bool feed_copier(struct browse_job *job, struct str text)
{
    struct pollfd to = {.fd = job->child.in, .events = 0};
    size_t taken = job->written == text.n
                       ? 0
                       : child_write(&job->child.in,
                                     (struct str){text.p + job->written, text.n - job->written});
    int unread = 0;

    job->written += taken;
    /* 0 where the system cannot say. */
    if (job->child.in < 0 || ioctl(job->child.in, FIONREAD, &unread) < 0)
        unread = 0;
    if (taken > 0 || unread < job->unread)
        job->until = time_ticks() + COPY_MS;
    job->unread = unread;
    if (job->written == text.n && unread == 0) {
        child_close(&job->child.in);
        job->until = time_ticks() + COPY_MS;
        return true;
    }
    /* The reader has closed its end. */
    if (job->child.in < 0 || (poll(&to, 1, 0) > 0 && to.revents & POLLERR))
        return false;
    return time_ticks() < job->until;
}

/* Starts a program, or gives it the text. Returns true when it is known whether it has accepted
 * it. */
static bool step_copier(struct browse_job *job, struct str text, bool *kept)
{
    *kept = false;
    if (!job->started && !start_job(job))
        return true;
    child_close(&job->child.out);
    child_close(&job->child.err);
    if (job->child.in >= 0) {
        if (feed_copier(job, text))
            return false;
        child_end(&job->child, 0);
        return true;
    }
    if (!child_ended(&job->child) && time_ticks() < job->until)
        return false;
    /* A program that still runs owns the clipboard, or what it has left running, so that its group
     * is not ended. */
    *kept = !child_ended(&job->child) || job->child.status == 0;
    if (child_ended(&job->child))
        (void)waitpid(job->child.pid, NULL, 0);
    return true;
}

static void report_copy(struct browse_jobs *j, struct browse *b)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    if (j->kept)
        buf_add_c(&text, "copied");
    else if (j->sent)
        buf_add_c(&text, "sent to the terminal");
    else if (j->text.len > BROWSE_CLIPBOARD_MAX)
        buf_addf(&text,
                 "cannot copy %zu bytes: terminals take %zu, and there is no wl-copy, xclip, xsel "
                 "or pbcopy",
                 j->text.len, BROWSE_CLIPBOARD_MAX);
    else
        buf_add_c(&text, "cannot copy: no wl-copy, xclip, xsel or pbcopy, and the terminal cannot");
    browse_say(b, buf_c(&text));
    buf_release(&text);
}

void browse_jobs_copy(struct browse_jobs *j, struct str text, int fd)
{
    const struct {
        const char *at_hand; /* is its desktop or server present? */
        const char *command;
    } programs[] = {
        {config_env("TMUX"), "tmux load-buffer -w -"},
        {config_env("WAYLAND_DISPLAY"), "wl-copy"},
        {config_env("DISPLAY"), "xclip -selection clipboard"},
        {config_env("DISPLAY"), "xsel --clipboard --input"},
        {"", "pbcopy"},
    };

    stop_jobs(&j->copiers, 0);
    j->text.max = SIZE_MAX;
    buf_clear(&j->text);
    buf_add_str(&j->text, text);
    j->sent = send_to_terminal(fd, text);
    j->kept = false;
    j->copying = true;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct words argv = {0};

        if (programs[i].at_hand && words_split(&argv, str_of(programs[i].command), NULL) == 0)
            add_job(&j->copiers, BROWSE_COPY, STR_NONE, &argv);
    }
}

static void step_copy(struct browse_jobs *j, struct browse *b)
{
    bool kept;

    while (j->copiers && step_copier(j->copiers, buf_str(&j->text), &kept)) {
        bool is_tmux = strcmp(j->copiers->argv.at[0], "tmux") == 0;

        j->kept = j->kept || kept;
        drop_job(&j->copiers);
        /* The text goes to tmux and to the desktop. */
        while (kept && !is_tmux && j->copiers)
            drop_job(&j->copiers);
    }
    if (j->copiers)
        return;
    j->copying = false;
    report_copy(j, b);
    buf_release(&j->text);
}

/* ---- both ---- */

bool browse_jobs_busy(const struct browse_jobs *j)
{
    return j->first || j->copying;
}

int browse_jobs_fd(const struct browse_jobs *j)
{
    return j->copiers && j->copiers->written < j->text.len ? j->copiers->child.in : -1;
}

void browse_jobs_step(struct browse_jobs *j, struct browse *b, struct buf *failures)
{
    if (j->copying)
        step_copy(j, b);
    while (j->first && step_job(j->first)) {
        report_job(j->first, b, failures);
        drop_job(&j->first);
        j->changed = true;
    }
}

void browse_jobs_stop(struct browse_jobs *j)
{
    stop_jobs(&j->copiers, 0);
    stop_jobs(&j->first, GRACE_MS);
    buf_release(&j->text);
    j->copying = false;
}
