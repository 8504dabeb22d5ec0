#include "cli/term.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/config.h"
#include "cli/die.h"

/* So much is written at once. */
#define PENDING_MAX ((size_t)1 << 16)

static const char *const styles[] = {
    [STYLE_NONE] = "\033[0m", [STYLE_DIM] = "\033[2m",    [STYLE_ROLE] = "\033[1;36m",
    [STYLE_ID] = "\033[33m",  [STYLE_HIT] = "\033[1;31m",
};

/* The width as shells tell it: $COLUMNS, else what the terminal says, else 80. */
static size_t terminal_columns(void)
{
    const char *set = config_env("COLUMNS");
    unsigned long n = set ? strtoul(set, NULL, 10) : 0;
    struct winsize size;

    if (n > 0 && n < 10000)
        return n;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

static bool wants_color(bool terminal, enum color_when when)
{
    const char *term = config_env("TERM");

    if (when != COLOR_AUTO)
        return when == COLOR_ALWAYS;
    return terminal && !config_env("NO_COLOR") && term && strcmp(term, "dumb") != 0;
}

void out_start(struct out *o, enum color_when color)
{
    *o = (struct out){.terminal = isatty(STDOUT_FILENO),
                      .cancel_fd = -1,
                      .scratch = BUF_INIT(8 * BUF_LINE),
                      .pending = BUF_INIT(SIZE_MAX)};
    o->color = wants_color(o->terminal, color);
    o->columns = o->terminal ? terminal_columns() : 0;
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

/* When a wait can be cut short, no more at once than what a pipe that is writable takes without
 * one. */
static ssize_t write_some(const struct out *o, struct str bytes)
{
    size_t most = o->cancel_fd >= 0 ? PIPE_BUF : bytes.n;

    if (o->cancel_fd >= 0 && wait_writable(o) < 0)
        return -1;
    for (;;) {
        ssize_t n = write(STDOUT_FILENO, bytes.p, bytes.n < most ? bytes.n : most);

        if (n >= 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
            return n;
        if (wait_writable(o) < 0)
            return -1;
    }
}

int out_flush(struct out *o)
{
    struct str rest = buf_str(&o->pending);

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

void out_raw(struct out *o, struct str bytes)
{
    if (o->error != 0)
        return;
    buf_add_str(&o->pending, bytes);
    if (o->pending.len >= PENDING_MAX)
        out_flush(o);
}

void out_byte(struct out *o, char c)
{
    out_raw(o, (struct str){&c, 1});
}

void out_text(struct out *o, struct str text)
{
    if (!o->terminal) {
        out_raw(o, text);
        return;
    }
    buf_clear(&o->scratch);
    vis_feed(&o->vis, text, &o->scratch);
    out_raw(o, buf_str(&o->scratch));
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

int out_close(struct out *o, int status, int failure)
{
    int failed = out_flush(o);

    buf_release(&o->scratch);
    buf_release(&o->pending);
    if (failed == 0)
        return status;
    if (o->error == EPIPE)
        die_signal(SIGPIPE);
    warnf("cannot write to standard output: %s", strerror(o->error));
    return failure;
}
