#include "chathist/cli/term.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/json.h"
#include "chathist/cli/config.h"
#include "chathist/cli/die.h"
#include "chathist/cli/pager.h"

/* So much is written at once. */
#define PENDING_MAX ((size_t)1 << 16)
/* Of a terminal that does not tell. */
#define ROWS 24
/* As far as a tab can lead. */
#define TAB_COLUMNS 8

static const char *const styles[] = {
    [STYLE_NONE] = "\033[0m",   [STYLE_DIM] = "\033[2m",    [STYLE_ROLE] = "\033[1;36m",
    [STYLE_ID] = "\033[33m",    [STYLE_HIT] = "\033[1;31m", [STYLE_BOLD] = "\033[1m",
    [STYLE_ITALIC] = "\033[3m", [STYLE_CODE] = "\033[36m",  [STYLE_PLOT] = "\033[32m",
};

/* The width as shells tell it: $COLUMNS, else what the terminal says, else 80. */
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

static size_t terminal_rows(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : ROWS;
}

bool term_wants_color(bool terminal, enum color_when when)
{
    const char *term = config_env("TERM");

    if (when != COLOR_AUTO)
        return when == COLOR_ALWAYS;
    return terminal && !config_env("NO_COLOR") && term && strcmp(term, "dumb") != 0;
}

const char *term_style(enum out_style s)
{
    return styles[s];
}

void out_start(struct out *o, enum color_when color)
{
    *o = (struct out){.terminal = isatty(STDOUT_FILENO),
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

/* Waits until standard output takes something. -1: not before the caller wants to be gone. */
static int wait_writable(const struct out *o)
{
    struct pollfd fds[2] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                            {.fd = o->cancel_fd, .events = POLLIN}};

    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return 0; /* the write will tell */
    if (fds[0].revents != 0)
        return 0;
    errno = EINTR;
    return -1;
}

/* What goes without waiting, most often all of it: how much; 0 when that cannot be had. */
static size_t write_now(struct out *o, struct str bytes)
{
    ssize_t n = o->asks ? 0 : io_write_now(STDOUT_FILENO, bytes.p, bytes.n);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        o->asks = true;
    return n > 0 ? (size_t)n : 0;
}

/* When a wait can be cut short, no more at once than what a pipe that is writable takes without
 * one. */
static ssize_t write_some(struct out *o, struct str bytes)
{
    size_t most = bytes.n;

    if (o->cancel_fd >= 0) {
        size_t done = write_now(o, bytes);

        if (done > 0)
            return (ssize_t)done;
        if (wait_writable(o) < 0)
            return -1;
        most = PIPE_BUF;
    }
    for (;;) {
        ssize_t n = write(STDOUT_FILENO, bytes.p, bytes.n < most ? bytes.n : most);

        if (n >= 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
            return n;
        if (wait_writable(o) < 0)
            return -1;
    }
}

/* ---- the pager ---- */

void out_page(struct out *o)
{
    if (o->terminal)
        o->rows = terminal_rows(STDOUT_FILENO);
}

/* The columns that a line takes; its escape sequences are our own styles. Rather one too many. */
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

/* Does it fill the terminal, and leave no row for the prompt that comes next? */
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

/* Is there something to write by now? */
static bool is_due(struct out *o)
{
    if (o->rows > 0 && is_long(o)) {
        o->rows = 0;
        o->paged = pager_start();
    }
    return o->rows == 0;
}

int out_flush(struct out *o)
{
    struct str rest = buf_str(&o->pending);

    if (!is_due(o))
        return 0;
    while (rest.n > 0 && o->error == 0) {
        ssize_t n = write_some(o, rest);

        if (n < 0) {
            o->error = errno;
        } else {
            rest.p += n;
            rest.n -= (size_t)n;
        }
    }
    buf_clear(&o->pending);
    errno = o->error;
    return o->error == 0 ? 0 : -1;
}

/* Takes at most n bytes from the beginning. */
static struct str take_part(struct str *rest, size_t n)
{
    struct str part = {rest->p, rest->n < n ? rest->n : n};

    rest->p += part.n;
    rest->n -= part.n;
    return part;
}

void out_raw(struct out *o, struct str bytes)
{
    while (o->error == 0 && bytes.n > 0) {
        struct str part = take_part(&bytes, PENDING_MAX - o->pending.len);

        buf_add_str(&o->pending, part);
        if (o->pending.len >= PENDING_MAX)
            out_flush(o);
    }
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
        buf_clear(&o->scratch);
        vis_feed(&o->vis, take_part(&text, PENDING_MAX), &o->scratch);
        out_raw(o, buf_str(&o->scratch));
    }
}

void out_text_end(struct out *o)
{
    buf_clear(&o->scratch);
    vis_end(&o->vis, &o->scratch);
    out_raw(o, buf_str(&o->scratch));
}

void out_style(struct out *o, enum out_style s)
{
    if (o->color)
        out_raw(o, str_of(styles[s]));
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
    /* Whatever is held back by now fits. */
    if (!is_due(o))
        o->rows = 0;
    if (o->terminal)
        out_flush(o);
    if (pager_end() < 0)
        o->unseen = true;
}

int out_close(struct out *o, int status, int failure)
{
    int failed;

    out_page_end(o);
    failed = out_flush(o);
    buf_release(&o->scratch);
    buf_release(&o->pending);
    if (o->unseen)
        return failure;
    if (failed == 0 || (o->paged && o->error == EPIPE))
        return status;
    if (o->error == EPIPE)
        die_signal(SIGPIPE);
    warnf("cannot write to standard output: %s", strerror(o->error));
    return failure;
}
