#include "chathist/cli/diagnostics.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"
#include "chathist/cli/progress.h"

static char tool[64] = PROGRAM_PREFIX "chathist"; /* the name before each message */
static bool has_many_codes;
static die_fn *last_words;
static void *last_words_arg;

/* One write, so that messages of several programs on one terminal are not mixed. */
static void write_message(const char *before, struct str text)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    buf_addf(&line, "%s%s", before, *before ? ": " : "");
    vis_add_line(&line, text, true);
    buf_add_byte(&line, '\n');
    progress_erase();
    /* An error of stderr cannot be reported. */
    if (file_write_all(STDERR_FILENO, line.data, line.len) < 0)
        errno = 0;
    buf_release(&line);
}

static void print_linef(const char *before, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
static void print_linef(const char *before, const char *fmt, va_list ap)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_vaddf(&text, fmt, ap);
    write_message(before, buf_str(&text));
    buf_release(&text);
}

static void die_of_memory(void)
{
    static const char text[] = ": out of memory\n";

    if (write(STDERR_FILENO, tool, strlen(tool)) > 0 &&
        write(STDERR_FILENO, text, sizeof text - 1) > 0)
        errno = 0;
    _exit(exit_code(ERR_FAILURE));
}

void die_start(const char *name)
{
    snprintf(tool, sizeof tool, PROGRAM_PREFIX "%s", name);
    has_many_codes = strcmp(name, "chat") == 0 || strcmp(name, "hist-sync") == 0;
    mem_on_exhaustion(die_of_memory);
    mem_return_large();
    if (file_fill_std_fds() < 0) {
        warnf("cannot open '/dev/null' in place of a closed descriptor: %s", strerror(errno));
        _exit(2);
    }
    /* A write beyond the file size limit then fails with EFBIG instead of killing the program. */
    signal(SIGXFSZ, SIG_IGN);
    /* If SIGCHLD were ignored, the status of child processes would be lost. */
    signal(SIGCHLD, SIG_DFL);
}

void warn_err(const struct err *e)
{
    write_message(tool, str_of(err_text(e)));
}

void warnf(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_linef(tool, fmt, ap);
    va_end(ap);
}

void warn_message(void *unused, const char *message)
{
    (void)unused;
    write_message(tool, str_of(message));
}

void notef(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_linef("", fmt, ap);
    va_end(ap);
}

void hintf(bool wanted, const char *fmt, ...)
{
    va_list ap;

    if (!wanted && !isatty(STDERR_FILENO))
        return;
    va_start(ap, fmt);
    print_linef(tool, fmt, ap);
    va_end(ap);
}

/* The codes of chat and hist-sync, which have more of them than the other programs. */
static int code_of_many(enum err_kind kind)
{
    switch (kind) {
    case ERR_NONE:
        return 0;
    case ERR_FAILURE:
    case ERR_REQUEST:
    case ERR_SIGNAL:
        return 1;
    case ERR_USAGE:
    case ERR_ABSENT:
        return 2;
    case ERR_AUTH:
        return 3;
    case ERR_NETWORK:
    case ERR_UNTRUSTED:
    case ERR_TIMEOUT:
        return 4;
    case ERR_BUSY:
    case ERR_QUOTA:
        return 5;
    case ERR_REFUSED:
    case ERR_TOO_LONG:
        return 6;
    case ERR_INCOMPLETE:
        return 7;
    case ERR_UNSAVED:
        return 8;
    case ERR_LIMIT:
        return 9;
    }
    return 2;
}

int exit_code(enum err_kind kind)
{
    if (has_many_codes)
        return code_of_many(kind);
    return kind == ERR_NONE ? 0 : kind == ERR_ABSENT ? 1 : 2;
}

void die_before(die_fn *fn, void *arg)
{
    last_words = fn;
    last_words_arg = arg;
}

static void say_last_words(const struct err *e)
{
    if (last_words)
        last_words(last_words_arg, e);
}

void die_err(const struct err *e)
{
    say_last_words(e);
    warn_err(e);
    exit(exit_code(e->kind));
}

void die_usage(const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    err_set(&e, ERR_USAGE, "%s", buf_c(&text));
    say_last_words(&e);
    warnf("%s (see '%s --help')", buf_c(&text), tool);
    err_release(&e);
    buf_release(&text);
    exit(2);
}

static void die_of_timeout(int signo)
{
    (void)signo;
    _exit(exit_code(ERR_TIMEOUT));
}

void die_after(unsigned seconds)
{
    struct sigaction action = {.sa_handler = die_of_timeout};

    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

void die_signal(int signo)
{
    struct sigaction act = {.sa_handler = SIG_DFL};
    sigset_t set;

    progress_erase();
    sigemptyset(&act.sa_mask);
    sigaction(signo, &act, NULL);
    sigemptyset(&set);
    sigaddset(&set, signo);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(signo);
    _exit(128 + signo);
}
