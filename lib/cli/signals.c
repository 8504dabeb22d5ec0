#include "chathist/cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

#include "chathist/base/process.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int editing_only[] = {SIGTSTP, SIGCONT, SIGWINCH};
#define ENDING (sizeof ending / sizeof *ending)
#define EDITING_ONLY (sizeof editing_only / sizeof *editing_only)

/* A signal handler can reach only static variables: these of interrupt_..., */
static volatile sig_atomic_t first_signal;
static int interrupt_pipe[2] = {-1, -1};
static struct sigaction before_interrupt[ENDING];
/* and these of line_signals_.... */
static volatile sig_atomic_t interrupted, fatal, is_editing;
static atomic_bool cancel;
static int line_pipe[2] = {-1, -1};
static struct sigaction before_lines[ENDING], before_editing[EDITING_ONLY];

static void catch_signals(const int *signals, struct sigaction *saved, size_t count,
                          void (*handler)(int signo))
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigemptyset(&act.sa_mask);
    /* If the program is in the background then, changing the terminal would stop it. */
    sigaddset(&act.sa_mask, SIGTTOU);
    for (size_t i = 0; i < count; i++) {
        sigaction(signals[i], NULL, &saved[i]);
        if (saved[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
    }
}

static void restore_signals(const int *signals, const struct sigaction *saved, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sigaction(signals[i], &saved[i], NULL);
}

static void close_pipe(int *ends)
{
    close(ends[0]);
    close(ends[1]);
    ends[0] = ends[1] = -1;
}

/* ---- during a turn ---- */

static void handle_interrupt(int signo)
{
    int saved = errno;

    if (!first_signal) {
        first_signal = signo;
        /* The pipe is empty, so one byte always fits. */
        if (write(interrupt_pipe[1], "", 1) < 0)
            first_signal = signo;
    }
    errno = saved;
}

int interrupt_begin(struct err *e)
{
    first_signal = 0;
    if (pipe_open(interrupt_pipe) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    catch_signals(ending, before_interrupt, ENDING, handle_interrupt);
    return interrupt_pipe[0];
}

int interrupt_signal(void)
{
    return (int)first_signal;
}

void interrupt_end(void)
{
    restore_signals(ending, before_interrupt, ENDING);
    close_pipe(interrupt_pipe);
}

/* ---- while lines are typed ---- */

/* If Ctrl-S has stopped the terminal, the program could not print its last words. The
 * output continues when Ctrl-S has no meaning any more (tcflow undoes only its own stop). The line
 * editor restores the modes later. */
static void restart_terminal(void)
{
    struct termios modes;
    int fd = STDIN_FILENO;

    while (fd <= STDERR_FILENO && tcgetattr(fd, &modes) < 0)
        fd++;
    if (fd > STDERR_FILENO || tcgetpgrp(fd) != getpgrp() || !(modes.c_iflag & IXON))
        return;
    modes.c_iflag &= ~(tcflag_t)IXON;
    (void)tcsetattr(fd, TCSANOW, &modes);
}

static void handle_line_signal(int signo)
{
    int saved = errno;
    char c = (char)signo;

    if (signo == SIGINT) {
        interrupted = 1;
    } else if (signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT) {
        fatal = signo;
        if (is_editing)
            restart_terminal();
    }
    if (interrupted || fatal)
        atomic_store(&cancel, true);
    /* A full pipe is readable as well. */
    if (write(line_pipe[1], &c, 1) < 0)
        errno = saved;
    errno = saved;
}

int line_signals_begin(struct err *e)
{
    if (pipe_open_wake(line_pipe) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    interrupted = fatal = 0;
    catch_signals(ending, before_lines, ENDING, handle_line_signal);
    return 0;
}

void line_signals_end(void)
{
    restore_signals(ending, before_lines, ENDING);
    close_pipe(line_pipe);
}

void line_signals_edit(bool editing)
{
    is_editing = editing;
    if (editing)
        catch_signals(editing_only, before_editing, EDITING_ONLY, handle_line_signal);
    else
        restore_signals(editing_only, before_editing, EDITING_ONLY);
}

int line_signals_fd(void)
{
    return line_pipe[0];
}

int line_signals_next(void)
{
    char c;

    return read(line_pipe[0], &c, 1) == 1 ? c : 0;
}

void line_signals_stop(void)
{
    struct sigaction act = {.sa_handler = SIG_DFL}, ours;

    sigemptyset(&act.sa_mask);
    sigaction(SIGTSTP, &act, &ours);
    /* The terminal also stops every process in the foreground. */
    kill(0, SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
}

void line_signals_forget(void)
{
    while (line_signals_next())
        continue;
    interrupted = 0;
    atomic_store(&cancel, false);
    if (fatal)
        atomic_store(&cancel, true);
}

const atomic_bool *line_signals_cancel(void)
{
    return &cancel;
}

int line_signals_fatal(void)
{
    return (int)fatal;
}

void line_signals_raise(void)
{
    if (fatal)
        raise((int)fatal);
    else if (interrupted)
        raise(SIGINT);
}
