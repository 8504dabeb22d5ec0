#include "browse/actions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/config.h"
#include "browse/view.h"
#include "browse/worker.h"

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

/* Adds the command for a program of the suite. It runs in the directory of a history that is not the
 * user's current one, so that it finds that history by the same rules, with its pointer and index. */
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

/* Writes the output of hist-show, by means of another temporary file. Returns 0, the status of
 * hist-show, or -1 with *e set. */
static int put_session(int fd, const struct browse_act *a, size_t history, struct str id,
                       struct err *e)
{
    struct words argv = {0};
    struct vis vis = {0};
    char *file, bytes[1 << 16];
    int raw = make_file(&file, e), status = -1;
    ssize_t n = 0;

    if (raw >= 0) {
        unlink(file);
        push_program(&argv, a, "hist-show", history);
        push_c(&argv, "--no-pager");
        push_session(&argv, id);
        status = process_run(argv.at, raw, e);
        if (status == 0 && lseek(raw, 0, SEEK_SET) < 0)
            n = -1;
        while (status == 0 && n >= 0 && (n = read(raw, bytes, sizeof bytes)) > 0)
            if (put_visible(fd, &vis, (struct str){bytes, (size_t)n}, false) < 0)
                n = -1;
        if (status == 0 && (n < 0 || put_visible(fd, &vis, STR(""), true) < 0))
            status = err_sys(e, errno, "cannot write a temporary file");
        close(raw);
    }
    words_release(&argv);
    free(file);
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

/* ---- other programs ---- */

/* How often a program is checked for its end, and how long it may take to end, in milliseconds. */
#define LOOK_MS 20
#define GRACE_MS 2000

int browse_child_run(char *const argv[], struct buf *out, struct buf *said,
                     const atomic_bool *cancel, struct err *e)
{
    struct child c;

    if (child_start(&c, argv, NULL, NULL, e) < 0)
        return -1;
    child_close(&c.in);
    while (!atomic_load(cancel) && (!child_ended(&c) || c.out >= 0 || c.err >= 0)) {
        struct pollfd fds[2] = {{.fd = c.out, .events = POLLIN}, {.fd = c.err, .events = POLLIN}};
        bool ended = child_ended(&c);

        if (poll(fds, 2, LOOK_MS) <= 0 && ended)
            break;
        if (fds[0].revents)
            child_read(&c.out, out);
        if (fds[1].revents)
            child_read(&c.err, said);
    }
    child_term(&c);
    child_end(&c, child_ended(&c) ? 0 : GRACE_MS);
    return c.status;
}

/* Returns how many written bytes the reader has not read yet; 0 where the system cannot say. */
static int unread(int fd)
{
    int count = 0;

    return ioctl(fd, FIONREAD, &count) < 0 ? 0 : count;
}

/* Writes the text and closes the descriptor. Returns false if the reader did not read all of it. */
static bool write_to_child(int fd, struct str text, const atomic_bool *cancel)
{
    int64_t until = time_ticks() + BROWSE_CHILD_GIVE_MS;
    int left = 0;

    while (fd >= 0 && !atomic_load(cancel) && time_ticks() < until) {
        struct pollfd to = {.fd = fd, .events = text.n > 0 ? POLLOUT : 0};
        int ready = poll(&to, 1, LOOK_MS), before = left;
        size_t taken = 0;

        if (ready > 0 && to.revents & POLLERR)
            break; /* the reader has closed its end */
        if (ready > 0)
            taken = child_write(&fd, text);
        text.p += taken;
        text.n -= taken;
        left = unread(fd);
        if (text.n == 0 && left == 0)
            break;
        if (taken > 0 || left < before)
            until = time_ticks() + BROWSE_CHILD_GIVE_MS;
    }
    left = fd < 0 ? 0 : unread(fd);
    child_close(&fd);
    return text.n == 0 && left == 0;
}

/* Returns true if the program succeeded, or still runs, as programs that own the clipboard do. */
static bool has_taken(pid_t pid, const atomic_bool *cancel)
{
    int64_t until = time_ticks() + BROWSE_CHILD_GIVE_MS;
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) <= 0) {
        if (ended < 0 && errno != EINTR)
            return false;
        if (time_ticks() >= until || atomic_load(cancel))
            return true;
        file_wait(-1, LOOK_MS);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int browse_child_give(char *const argv[], struct str text, const atomic_bool *cancel)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_NULL, SPAWN_NULL, SPAWN_NULL}, .apart = true};
    int ends[2], failed;
    pid_t pid;

    if (pipe_open(ends) < 0)
        return -1;
    s.fd[0] = ends[0];
    sigfillset(&s.reset);
    failed = fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0 || spawn(&pid, &s) != 0;
    close(ends[0]);
    if (failed) {
        close(ends[1]);
        return -1;
    }
    if (write_to_child(ends[1], text, cancel))
        return has_taken(pid, cancel) ? 0 : -1;
    kill(-pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return -1;
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

int browse_clipboard_terminal(int fd, struct str text)
{
    const char *term = config_env("TERM");
    struct buf sequence = BUF_INIT(SIZE_MAX), wrapped = BUF_INIT(SIZE_MAX), *sent = &sequence;
    int result;

    if (text.n > BROWSE_CLIPBOARD_MAX || config_env("TMUX") || (term && strcmp(term, "linux") == 0))
        return -1;
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
    return result;
}

int browse_clipboard_programs(struct str text, const atomic_bool *cancel)
{
    const struct {
        bool at_hand; /* is its desktop or server present? */
        const char *command;
    } programs[] = {
        {config_env("TMUX"), "tmux load-buffer -w -"},
        {config_env("WAYLAND_DISPLAY"), "wl-copy"},
        {config_env("DISPLAY"), "xclip -selection clipboard"},
        {config_env("DISPLAY"), "xsel --clipboard --input"},
        {true, "pbcopy"},
    };
    int result = -1;

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct words argv = {0};
        bool kept = programs[i].at_hand && !atomic_load(cancel) &&
                    words_split(&argv, str_of(programs[i].command), NULL) == 0 &&
                    browse_child_give(argv.at, text, cancel) == 0;

        words_release(&argv);
        result = kept ? 0 : result;
        /* The text goes to tmux and to the desktop. */
        if (kept && i > 0)
            break;
    }
    return result;
}
