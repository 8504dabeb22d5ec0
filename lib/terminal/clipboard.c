#include "chathist/terminal/clipboard.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "chathist/base/file.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/cli/config.h"

/* A program that does not read the text for this time is ended. */
#define COPY_MS ((int64_t)2000)
/* GNU screen passes the content of a device control string on to the terminal, up to this size. */
#define SCREEN_PIECE ((size_t)240)

/* ---- the terminal ---- */

static void wrap_for_screen(struct buf *out, struct str sequence)
{
    while (sequence.n > 0) {
        size_t n = sequence.n < SCREEN_PIECE ? sequence.n : SCREEN_PIECE;

        buf_add_c(out, "\033P");
        buf_add(out, sequence.p, n);
        buf_add_c(out, "\033\\");
        sequence = str_skip(sequence, n);
    }
}

/* Sends the text to the terminal, which does not answer. Returns false if it is known to ignore
 * it. */
static bool send_to_terminal(int fd, struct str text)
{
    const char *term = config_env("TERM");
    struct buf sequence = BUF_INIT(SIZE_MAX), wrapped = BUF_INIT(SIZE_MAX), *sent = &sequence;
    int result;

    if (text.n > CLIPBOARD_TERMINAL_MAX || config_env("TMUX") ||
        (term && strcmp(term, "linux") == 0))
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

/* ---- programs ---- */

/* Starts the present program. Returns false if that fails. */
static bool start_program(struct clipboard *c)
{
    struct words argv;
    int result;

    c->started = true;
    c->written = 0;
    c->unread = 0;
    c->until = time_ticks() + COPY_MS;
    result = words_split(&argv, str_of(c->commands[c->at]), NULL);
    if (result == 0)
        result = child_start(&c->child, argv.at, NULL, NULL, NULL);
    words_release(&argv);
    return result == 0;
}

/* Writes on. Returns false if the program does not read. */
static bool feed_program(struct clipboard *c)
{
    struct pollfd to = {.fd = c->child.in, .events = 0};
    struct str rest = str_skip(buf_str(&c->text), c->written);
    size_t taken = rest.n == 0 ? 0 : child_write(&c->child.in, rest);
    int unread = 0;

    c->written += taken;
    /* 0 where the system cannot say. */
    if (c->child.in < 0 || ioctl(c->child.in, FIONREAD, &unread) < 0)
        unread = 0;
    if (taken > 0 || unread < c->unread)
        c->until = time_ticks() + COPY_MS;
    c->unread = unread;
    if (c->written == c->text.len && unread == 0) {
        child_close(&c->child.in);
        c->until = time_ticks() + COPY_MS;
        return true;
    }
    /* The reader has closed its end. */
    if (c->child.in < 0 || (poll(&to, 1, 0) > 0 && to.revents & POLLERR))
        return false;
    return time_ticks() < c->until;
}

/* Starts a program, or gives it the text. Returns true when it is known whether it has accepted
 * it. */
static bool step_program(struct clipboard *c, bool *kept)
{
    *kept = false;
    if (!c->started && !start_program(c))
        return true;
    child_close(&c->child.out);
    child_close(&c->child.err);
    if (c->child.in >= 0) {
        if (feed_program(c))
            return false;
        child_end(&c->child, 0);
        return true;
    }
    if (!child_ended(&c->child) && time_ticks() < c->until)
        return false;
    /* A program that still runs owns the clipboard, or what it has left running, so that its group
     * is not ended. */
    *kept = !child_ended(&c->child) || c->child.status == 0;
    if (child_ended(&c->child))
        (void)waitpid(c->child.pid, NULL, 0);
    return true;
}

/* ---- a text ---- */

void clipboard_start(struct clipboard *c, struct str text, int fd)
{
    const struct {
        const char *at_hand; /* not NULL: its desktop or server is present */
        const char *command;
    } programs[] = {
        {config_env("TMUX"), "tmux load-buffer -w -"},
        {config_env("WAYLAND_DISPLAY"), "wl-copy"},
        {config_env("DISPLAY"), "xclip -selection clipboard"},
        {config_env("DISPLAY"), "xsel --clipboard --input"},
        {"", "pbcopy"},
    };

    clipboard_stop(c);
    c->count = c->at = 0;
    c->text.max = SIZE_MAX;
    buf_add_str(&c->text, text);
    c->sent = send_to_terminal(fd, text);
    c->kept = false;
    c->copying = true;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (programs[i].at_hand)
            c->commands[c->count++] = programs[i].command;
}

static void add_result(const struct clipboard *c, struct buf *said)
{
    if (c->kept)
        buf_add_c(said, "copied");
    else if (c->sent)
        buf_add_c(said, "sent to the terminal");
    else if (c->text.len > CLIPBOARD_TERMINAL_MAX)
        buf_addf(said, "cannot copy %zu bytes: terminals take %zu, no wl-copy, xclip, xsel, pbcopy",
                 c->text.len, CLIPBOARD_TERMINAL_MAX);
    else
        buf_add_c(said, "cannot copy: no wl-copy, xclip, xsel or pbcopy, and the terminal cannot");
}

bool clipboard_step(struct clipboard *c, struct buf *said)
{
    bool kept;

    if (!c->copying)
        return false;
    while (c->at < c->count && step_program(c, &kept)) {
        bool is_tmux = str_starts(str_of(c->commands[c->at]), STR("tmux "));

        c->kept = c->kept || kept;
        c->started = false;
        /* The text goes to tmux and to the desktop. */
        c->at = kept && !is_tmux ? c->count : c->at + 1;
    }
    if (c->at < c->count)
        return false;
    c->copying = false;
    add_result(c, said);
    buf_release(&c->text);
    return true;
}

bool clipboard_busy(const struct clipboard *c)
{
    return c->copying;
}

int clipboard_fd(const struct clipboard *c)
{
    return c->started && c->written < c->text.len ? c->child.in : -1;
}

void clipboard_stop(struct clipboard *c)
{
    if (c->started) {
        child_term(&c->child);
        child_end(&c->child, 0);
    }
    c->started = false;
    buf_release(&c->text);
    c->copying = false;
}

void clipboard_copy(struct str text, int fd, int cancel_fd, struct buf *said)
{
    struct clipboard c = {0};
    struct pollfd fds[2] = {{.fd = cancel_fd, .events = POLLIN}, {.events = POLLOUT}};

    clipboard_start(&c, text, fd);
    while (!clipboard_step(&c, said)) {
        fds[1].fd = clipboard_fd(&c);
        /* A pipe that takes more is not waited for. */
        if (poll(fds, 2, CLIPBOARD_STEP_MS) > 0 && fds[0].revents) {
            buf_add_c(said, "not copied");
            break;
        }
    }
    clipboard_stop(&c);
}
