#include "chathist/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/error.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/process.h"
#include "chathist/cli/config.h"
#include "chathist/cli/diagnostics.h"
#include "chathist/cli/progress.h"

/* Exit statuses of a shell whose command cannot be run, or is not found. */
#define NOT_RUN 126
#define NOT_FOUND 127

static const int deadly[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM};
#define DEADLY (sizeof deadly / sizeof *deadly)

/* The pager that runs. */
static struct {
    volatile pid_t pid; /* 0: no pager runs */
    const char *name;
    int out, err; /* copies of the former standard streams; -1: not changed */
    struct sigaction before[DEADLY], pipe;
} pager = {.out = -1, .err = -1};

static int pager_end(void);

bool term_is_dumb(void)
{
    const char *term = config_env("TERM");

    return !term || strcmp(term, "dumb") == 0;
}

/* POSIX says that PAGER is a shell command. A simple command is run without a shell, so that a
 * missing program is noticed at once. */
static int split_pager_command(struct words *w, const char *name, struct err *e)
{
    if (!strpbrk(name, "|&;<>()$`*?[#~=%\n"))
        return words_split(w, str_of(name), e);
    words_add(w, STR("sh"));
    words_add(w, STR("-c"));
    words_add(w, str_of(name));
    return 0;
}

/* Starts the pager. Returns the writing end of its input, or -1 with *e set. */
static int run_pager(pid_t *pid, char *const argv[], struct err *e)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_OURS, SPAWN_OURS, SPAWN_OURS}};
    int ends[2], failed;

    if (pipe_open(ends) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    s.fd[0] = ends[0];
    sigemptyset(&s.reset);
    sigaddset(&s.reset, SIGPIPE);
    sigaddset(&s.reset, SIGXFSZ);
    failed = spawn(pid, &s);
    close(ends[0]);
    if (failed) {
        close(ends[1]);
        return err_sys(e, failed, "cannot run '%s'", argv[0]);
    }
    return ends[1];
}

/* ---- signals ---- */

/* Closes the input of the pager, which ends it, waits for it, and then takes the signal. Every call
 * here is async-signal-safe. */
static void end_pager_and_die(int signo)
{
    struct sigaction act = {.sa_handler = SIG_DFL};

    close(STDOUT_FILENO);
    if (pager.err >= 0)
        close(STDERR_FILENO);
    while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    sigemptyset(&act.sa_mask);
    sigaction(signo, &act, NULL);
    /* The signal is blocked in its handler; it arrives when the handler returns. */
    raise(signo);
}

static void catch_pager_signals(void)
{
    struct sigaction act = {.sa_handler = end_pager_and_die}, ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&ignore.sa_mask);
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < DEADLY; i++)
        sigaddset(&act.sa_mask, deadly[i]);
    for (size_t i = 0; i < DEADLY; i++) {
        sigaction(deadly[i], NULL, &pager.before[i]);
        if (pager.before[i].sa_handler != SIG_IGN)
            sigaction(deadly[i], &act, NULL);
    }
    sigaction(SIGPIPE, &ignore, &pager.pipe);
}

/* ---- the standard streams ---- */

/* Redirects a standard stream. Returns a copy of the former one. */
static int redirect_stream(int fd, int to)
{
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (kept >= 0)
        dup2(to, fd);
    return kept;
}

static void restore_stream(int fd, int *kept)
{
    if (*kept < 0)
        return;
    dup2(*kept, fd);
    close(*kept);
    *kept = -1;
}

static void end_at_exit(void)
{
    pager_end();
}

static bool pager_start(void)
{
    const char *name = getenv("PAGER");
    struct words argv = {0};
    struct err e = ERR_INIT;
    pid_t pid = 0;
    int to = -1;

    if (!name && !term_is_dumb())
        name = "less";
    if (!name || *name == '\0' || strcmp(name, "cat") == 0 || pager.pid)
        return false;
    if (!getenv("LESS"))
        setenv("LESS", "FRX", 1);
    if (split_pager_command(&argv, name, &e) == 0)
        to = run_pager(&pid, argv.at, &e);
    /* If less is missing, the user did not ask for it. */
    if (to < 0 && getenv("PAGER"))
        warn_err(&e);
    words_release(&argv);
    err_release(&e);
    if (to < 0)
        return false;
    pager.pid = pid;
    pager.name = name;
    catch_pager_signals();
    if (isatty(STDERR_FILENO))
        pager.err = redirect_stream(STDERR_FILENO, to);
    pager.out = redirect_stream(STDOUT_FILENO, to);
    close(to);
    atexit(end_at_exit);
    return true;
}

static int pager_end(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    int status = 0;

    if (!pager.pid)
        return 0;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    restore_stream(STDOUT_FILENO, &pager.out);
    restore_stream(STDERR_FILENO, &pager.err);
    while (waitpid(pager.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    pager.pid = 0;
    for (size_t i = 0; i < DEADLY; i++)
        sigaction(deadly[i], &pager.before[i], NULL);
    sigaction(SIGPIPE, &pager.pipe, NULL);
    if (!WIFEXITED(status) || WEXITSTATUS(status) < NOT_RUN || WEXITSTATUS(status) > NOT_FOUND)
        return 0;
    warnf("pager '%s' failed with status %d", pager.name, WEXITSTATUS(status));
    return -1;
}

/* ---- the output ---- */

/* The maximum size of one write. */
#define PENDING_MAX ((size_t)1 << 16)
/* The height of a terminal that does not report it. */
#define ROWS 24
/* The maximum width of a tab. */
#define TAB_COLUMNS 8

/* The terminal's colours; -1: not known yet. */
static struct {
    enum background background;
    int colors;
} seen = {.colors = -1};

static void find_colors(void)
{
    if (seen.colors >= 0)
        return;
    seen.colors = palette_colors(config_env("TERM"), config_env("COLORTERM"));
    if (seen.background == BACKGROUND_UNKNOWN)
        seen.background = palette_background(config_env("COLORFGBG"));
}

enum background term_background(void)
{
    find_colors();
    return seen.background;
}

void term_set_background(enum background b)
{
    seen.background = b;
}

size_t term_columns(int fd)
{
    const char *set = config_env("COLUMNS");
    unsigned long n = set ? strtoul(set, NULL, 10) : 0;
    struct winsize size;

    if (n > 0 && n < 10000)
        return n;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

bool term_wants_color(bool terminal, enum color_when when)
{
    if (when != COLOR_AUTO)
        return when == COLOR_ALWAYS;
    return terminal && !config_env("NO_COLOR") && !term_is_dumb();
}

void term_add_style(struct buf *out, enum style s)
{
    find_colors();
    palette_add(out, s, seen.background, seen.colors);
}

void out_start(struct out *o, enum color_when color)
{
    struct stat st;

    *o = (struct out){.terminal = isatty(STDOUT_FILENO),
                      .file = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode),
                      .cancel_fd = -1,
                      .scratch = BUF_INIT(8 * BUF_LINE),
                      .pending = BUF_INIT(SIZE_MAX)};
    o->color = term_wants_color(o->terminal, color);
    out_measure(o);
}

void out_measure(struct out *o)
{
    o->columns = o->terminal ? term_columns(STDOUT_FILENO) : 0;
}

/* Waits until standard output can be written. Returns -1 with EINTR if cancel_fd becomes readable
 * first. */
static int wait_writable(const struct out *o)
{
    struct pollfd fds[2] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                            {.fd = o->cancel_fd, .events = POLLIN}};

    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return 0; /* the write will report the error */
    if (fds[0].revents != 0)
        return 0;
    errno = EINTR;
    return -1;
}

/* If a wait must be interruptible, one write has only as much as is accepted without waiting. */
static ssize_t write_some(struct out *o, struct str bytes)
{
    bool now = o->cancel_fd >= 0 && !o->file;

    for (;;) {
        ssize_t n = now ? file_write_now(STDOUT_FILENO, bytes.p, bytes.n)
                        : write(STDOUT_FILENO, bytes.p, bytes.n);

        if (n >= 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
            return n;
        if (wait_writable(o) < 0)
            return -1;
    }
}

/* ---- the pager ---- */

void out_page(struct out *o)
{
    struct winsize size;

    if (!o->terminal)
        return;
    o->rows = ROWS;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        o->rows = size.ws_row;
}

/* Returns the width of a line, at least. Escape sequences in it are styles. */
static size_t columns_of(struct str line)
{
    size_t columns = 0;

    while (line.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(line, &cp);

        if (cp == '\033') {
            (void)str_cut(&line, 'm');
            continue;
        }
        columns += cp == '\t' ? TAB_COLUMNS : cp < 0 ? 1 : (size_t)utf8_width(cp);
        n = n > 0 ? n : line.n;
        line.p += n;
        line.n -= n;
    }
    return columns;
}

/* Returns whether the output fills the terminal and leaves no row for the next shell prompt. */
static bool is_long(const struct out *o)
{
    struct str rest = buf_str(&o->pending);
    size_t width = o->columns > 0 ? o->columns : 1, rows = 0;

    if (rest.n >= PENDING_MAX)
        return true;
    while (rest.n > 0 && rows < o->rows) {
        size_t columns = columns_of(str_cut(&rest, '\n'));

        rows += columns > width ? (columns - 1) / width + 1 : 1;
    }
    return rows >= o->rows;
}

/* Returns whether the output is to be written now. Starts the pager if the output is long. */
static bool should_write(struct out *o)
{
    if (o->rows > 0 && is_long(o)) {
        o->rows = 0;
        o->paged = pager_start();
    }
    return o->rows == 0;
}

static void write_rest(struct out *o, struct str rest)
{
    if (o->terminal && rest.n > 0)
        progress_erase();
    while (rest.n > 0 && o->error == 0) {
        ssize_t n = write_some(o, rest);

        if (n < 0)
            o->error = errno;
        else
            rest = str_skip(rest, (size_t)n);
    }
}

int out_flush(struct out *o)
{
    if (!should_write(o))
        return 0;
    write_rest(o, buf_str(&o->pending));
    buf_clear(&o->pending);
    errno = o->error;
    return o->error == 0 ? 0 : -1;
}

void out_raw(struct out *o, struct str bytes)
{
    /* A large text is not copied. */
    if (!o->whole && bytes.n >= PENDING_MAX && o->rows == 0 && out_flush(o) == 0) {
        write_rest(o, bytes);
        return;
    }
    if (o->error == 0)
        buf_add_str(&o->pending, bytes);
    if (!o->whole && o->pending.len >= PENDING_MAX)
        out_flush(o);
}

void out_byte(struct out *o, char c)
{
    out_raw(o, (struct str){&c, 1});
}

void out_number(struct out *o, uint64_t n)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    buf_add_number(&line, n);
    buf_add_byte(&line, '\n');
    out_raw(o, buf_str(&line));
    buf_release(&line);
}

void out_text(struct out *o, struct str text)
{
    if (!o->terminal) {
        out_raw(o, text);
        return;
    }
    while (text.n > 0) {
        struct str part = {text.p, text.n < PENDING_MAX ? text.n : PENDING_MAX};

        buf_clear(&o->scratch);
        vis_feed(&o->vis, part, &o->scratch);
        out_raw(o, buf_str(&o->scratch));
        text = str_skip(text, part.n);
    }
}

void out_text_end(struct out *o)
{
    buf_clear(&o->scratch);
    vis_end(&o->vis, &o->scratch);
    out_raw(o, buf_str(&o->scratch));
}

void out_style(struct out *o, enum style s)
{
    if (!o->color)
        return;
    buf_clear(&o->scratch);
    term_add_style(&o->scratch, s);
    out_raw(o, buf_str(&o->scratch));
}

/* The consoles would show a part of the sequence. */
static bool has_links(void)
{
    static const char *const without[] = {"dumb", "linux", "vt", "screen", "ansi", "cygwin", "sun"};
    const char *term = config_env("TERM");

    for (size_t i = 0; term && i < sizeof without / sizeof *without; i++)
        if (strncmp(term, without[i], strlen(without[i])) == 0)
            return false;
    return term != NULL;
}

void out_link(struct out *o, struct str address)
{
    if (!o->color || !o->terminal || o->rows > 0 || o->paged || !has_links())
        return;
    out_raw(o, STR("\033]8;;"));
    out_raw(o, address);
    out_raw(o, STR("\033\\"));
}

void out_json_line(struct out *o, struct str line)
{
    if (o->terminal) {
        buf_clear(&o->scratch);
        json_add_visible(&o->scratch, line);
        line = buf_str(&o->scratch);
    }
    out_raw(o, line);
    out_byte(o, '\n');
}

void out_page_end(struct out *o)
{
    /* All output fits the terminal. */
    if (!should_write(o))
        o->rows = 0;
    if (o->terminal)
        out_flush(o);
    if (pager_end() < 0)
        o->unseen = true;
}

int out_close(struct out *o, int status)
{
    int failed;

    progress_end();
    out_page_end(o);
    failed = out_flush(o);
    buf_release(&o->scratch);
    buf_release(&o->pending);
    if (o->unseen)
        return exit_code(ERR_FAILURE);
    if (failed == 0 || (o->paged && o->error == EPIPE))
        return status;
    if (o->error == EPIPE)
        die_signal(SIGPIPE);
    warnf("cannot write to standard output: %s", strerror(o->error));
    return exit_code(ERR_FAILURE);
}
