#include "chathist/cli/line_signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

#include "chathist/base/pipe.h"

static const int always[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int editing_only[] = {SIGTSTP, SIGCONT, SIGWINCH};
#define ALWAYS (sizeof always / sizeof *always)
#define EDITING_ONLY (sizeof editing_only / sizeof *editing_only)

static struct sigaction former[ALWAYS], former_editing[EDITING_ONLY];
static volatile sig_atomic_t interrupted, fatal, edits;
static int wake[2] = {-1, -1};

/* Perhaps Ctrl-S has stopped the terminal, and who is to end waits for it to take what he writes.
 * It goes on when that key means nothing any more (tcflow undoes only what tcflow has done). Only
 * while we have the terminal: who edits a line puts its modes back. */
static void let_terminal_go_on(void)
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

static void note(int signo)
{
    int saved = errno;
    char c = (char)signo;

    if (signo == SIGINT) {
        interrupted = 1;
    } else if (signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT) {
        fatal = signo;
        if (edits)
            let_terminal_go_on();
    }
    /* A full pipe wakes as well. */
    if (write(wake[1], &c, 1) < 0)
        errno = saved;
    errno = saved;
}

static void catch_all(const int *signals, struct sigaction *saved, size_t count)
{
    struct sigaction act = {.sa_handler = note, .sa_flags = SA_RESTART};

    sigemptyset(&act.sa_mask);
    /* By then we may be in the background, and a hand on the terminal would stop us. */
    sigaddset(&act.sa_mask, SIGTTOU);
    for (size_t i = 0; i < count; i++) {
        sigaction(signals[i], NULL, &saved[i]);
        if (saved[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
    }
}

static void put_back(const int *signals, const struct sigaction *saved, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sigaction(signals[i], &saved[i], NULL);
}

int line_signals_begin(struct err *e)
{
    if (pipe_open_wake(wake) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    interrupted = fatal = 0;
    catch_all(always, former, ALWAYS);
    return 0;
}

void line_signals_end(void)
{
    put_back(always, former, ALWAYS);
    close(wake[0]);
    close(wake[1]);
    wake[0] = wake[1] = -1;
}

void line_signals_edit(bool editing)
{
    edits = editing;
    if (editing)
        catch_all(editing_only, former_editing, EDITING_ONLY);
    else
        put_back(editing_only, former_editing, EDITING_ONLY);
}

int line_signals_fd(void)
{
    return wake[0];
}

int line_signals_next(void)
{
    char c;

    return read(wake[0], &c, 1) == 1 ? c : 0;
}

void line_signals_stop(void)
{
    struct sigaction act = {.sa_handler = SIG_DFL}, ours;

    sigemptyset(&act.sa_mask);
    sigaction(SIGTSTP, &act, &ours);
    /* All that run in the foreground with us, as the terminal would. */
    kill(0, SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
}

void line_signals_forget(void)
{
    while (line_signals_next())
        continue;
    interrupted = 0;
}

bool line_signals_interrupted(void)
{
    return interrupted != 0;
}

int line_signals_fatal(void)
{
    return fatal;
}

void line_signals_raise(void)
{
    if (fatal)
        raise(fatal);
    else if (interrupted)
        raise(SIGINT);
}
