#include "chathist/terminal/clipboard.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/cli/config.h"

/* A program that does not read the text for this time is ended. */
#define COPY_MS ((int64_t)2000)
/* GNU screen passes the content of a device control string on to the terminal, up to this size. */
#define SCREEN_PIECE ((size_t)240)

struct clipboard_program {
    struct words argv;
    struct child child;
    bool started;
    size_t written; /* bytes of the text that it got */
    int unread;     /* bytes of these that it has not read yet */
    int64_t until;  /* when it is ended, unless it reads */
    struct clipboard_program *next;
};

static void drop_program(struct clipboard *c)
{
    struct clipboard_program *p = c->programs;

    c->programs = p->next;
    words_release(&p->argv);
    free(p);
}

static void add_program(struct clipboard *c, const char *command)
{
    struct clipboard_program *p = mem_zalloc(sizeof *p), **end = &c->programs;

    p->child = (struct child)CHILD_INIT;
    if (words_split(&p->argv, str_of(command), NULL) < 0) {
        words_release(&p->argv);
        free(p);
        return;
    }
    while (*end)
        end = &(*end)->next;
    *end = p;
}

/* ---- the terminal ---- */

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

static bool start_program(struct clipboard_program *p)
{
    struct err e = ERR_INIT;
    int result;

    p->started = true;
    p->until = time_ticks() + COPY_MS;
    result = child_start(&p->child, p->argv.at, NULL, NULL, &e);
    err_release(&e);
    return result == 0;
}

/* Writes on. Returns false if the program does not read. */
static bool feed_program(struct clipboard_program *p, struct str text)
{
    struct pollfd to = {.fd = p->child.in, .events = 0};
    struct str rest = {text.p + p->written, text.n - p->written};
    size_t taken = rest.n == 0 ? 0 : child_write(&p->child.in, rest);
    int unread = 0;

    p->written += taken;
    /* 0 where the system cannot say. */
    if (p->child.in < 0 || ioctl(p->child.in, FIONREAD, &unread) < 0)
        unread = 0;
    if (taken > 0 || unread < p->unread)
        p->until = time_ticks() + COPY_MS;
    p->unread = unread;
    if (p->written == text.n && unread == 0) {
        child_close(&p->child.in);
        p->until = time_ticks() + COPY_MS;
        return true;
    }
    /* The reader has closed its end. */
    if (p->child.in < 0 || (poll(&to, 1, 0) > 0 && to.revents & POLLERR))
        return false;
    return time_ticks() < p->until;
}

/* Starts a program, or gives it the text. Returns true when it is known whether it has accepted
 * it. */
static bool step_program(struct clipboard_program *p, struct str text, bool *kept)
{
    *kept = false;
    if (!p->started && !start_program(p))
        return true;
    child_close(&p->child.out);
    child_close(&p->child.err);
    if (p->child.in >= 0) {
        if (feed_program(p, text))
            return false;
        child_end(&p->child, 0);
        return true;
    }
    if (!child_ended(&p->child) && time_ticks() < p->until)
        return false;
    /* A program that still runs owns the clipboard, or what it has left running, so that its group
     * is not ended. */
    *kept = !child_ended(&p->child) || p->child.status == 0;
    if (child_ended(&p->child))
        (void)waitpid(p->child.pid, NULL, 0);
    return true;
}

/* ---- a text ---- */

void clipboard_start(struct clipboard *c, struct str text, int fd)
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

    clipboard_stop(c);
    c->text.max = SIZE_MAX;
    buf_add_str(&c->text, text);
    c->sent = send_to_terminal(fd, text);
    c->kept = false;
    c->copying = true;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (programs[i].at_hand)
            add_program(c, programs[i].command);
}

static void add_result(const struct clipboard *c, struct buf *said)
{
    if (c->kept)
        buf_add_c(said, "copied");
    else if (c->sent)
        buf_add_c(said, "sent to the terminal");
    else if (c->text.len > CLIPBOARD_TERMINAL_MAX)
        buf_addf(said,
                 "cannot copy %zu bytes: terminals take %zu, and there is no wl-copy, xclip, xsel "
                 "or pbcopy",
                 c->text.len, CLIPBOARD_TERMINAL_MAX);
    else
        buf_add_c(said, "cannot copy: no wl-copy, xclip, xsel or pbcopy, and the terminal cannot");
}

bool clipboard_step(struct clipboard *c, struct buf *said)
{
    bool kept;

    if (!c->copying)
        return false;
    while (c->programs && step_program(c->programs, buf_str(&c->text), &kept)) {
        bool is_tmux = strcmp(c->programs->argv.at[0], "tmux") == 0;

        c->kept = c->kept || kept;
        drop_program(c);
        /* The text goes to tmux and to the desktop. */
        while (kept && !is_tmux && c->programs)
            drop_program(c);
    }
    if (c->programs)
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
    return c->programs && c->programs->written < c->text.len ? c->programs->child.in : -1;
}

void clipboard_stop(struct clipboard *c)
{
    if (c->programs && c->programs->started) {
        child_term(&c->programs->child);
        child_end(&c->programs->child, 0);
    }
    while (c->programs)
        drop_program(c);
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
