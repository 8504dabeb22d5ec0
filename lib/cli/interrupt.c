#include "chathist/cli/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "chathist/base/pipe.h"

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define CAUGHT (sizeof caught / sizeof caught[0])

/* A signal handler can reach nothing but these. */
static volatile sig_atomic_t came;
static int wake[2] = {-1, -1};
static struct sigaction before[CAUGHT];

static void note(int signo)
{
    int saved = errno;

    if (!came) {
        came = signo;
        /* The pipe is empty, so one byte always fits. */
        if (write(wake[1], "", 1) < 0)
            came = signo;
    }
    errno = saved;
}

int interrupt_begin(struct err *e)
{
    struct sigaction act = {.sa_handler = note, .sa_flags = SA_RESTART};

    came = 0;
    if (pipe_open(wake) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < CAUGHT; i++) {
        sigaction(caught[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(caught[i], &act, NULL);
    }
    return wake[0];
}

int interrupt_signal(void)
{
    return came;
}

void interrupt_end(void)
{
    for (size_t i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &before[i], NULL);
    close(wake[0]);
    close(wake[1]);
    wake[0] = wake[1] = -1;
}
