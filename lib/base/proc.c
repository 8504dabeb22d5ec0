#include "base/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/pipe.h"
#include "base/spawn.h"

static const int terminal_signals[] = {SIGINT, SIGQUIT};
#define SIGNALS (sizeof terminal_signals / sizeof *terminal_signals)

/* What was caught or not ignored comes to the child as the default; what somebody ignored for us
 * stays ignored. */
static void ignore_signals(struct sigaction before[SIGNALS], sigset_t *reset)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&ignore.sa_mask);
    sigemptyset(reset);
    /* Ignored by programs of ours for their own sake (cli/die, turn/interrupt). */
    sigaddset(reset, SIGPIPE);
    sigaddset(reset, SIGXFSZ);
    for (size_t i = 0; i < SIGNALS; i++) {
        sigaction(terminal_signals[i], &ignore, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaddset(reset, terminal_signals[i]);
    }
}

static int wait_for(pid_t pid, const char *name, struct err *e)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, errno, "cannot wait for '%s'", name);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* `printed` (may be NULL) gets what comes through the pipe of `from` and `out`, both closed here. */
static int run(char *const argv[], int out, int from, struct buf *printed, struct err *e)
{
    struct spawn s = {.argv = argv, .fd = {printed ? SPAWN_NULL : SPAWN_OURS, out, SPAWN_OURS}};
    struct sigaction before[SIGNALS];
    pid_t pid;
    int failed, result, unread = 0;

    ignore_signals(before, &s.reset);
    failed = spawn(&pid, &s);
    if (printed) {
        /* Its end is the child's alone now. */
        close(out);
        if (!failed && io_read_all(from, printed) < 0)
            unread = errno;
        /* One that goes on printing is ended by SIGPIPE. */
        close(from);
    }
    if (failed)
        result = err_sys(e, failed, "cannot run '%s'", argv[0]);
    else
        result = wait_for(pid, argv[0], e);
    if (result >= 0 && unread)
        result = err_sys(e, unread, "cannot read what '%s' prints", argv[0]);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(terminal_signals[i], &before[i], NULL);
    return result;
}

int proc_run(char *const argv[], int out, struct err *e)
{
    return run(argv, out < 0 ? SPAWN_OURS : out, -1, NULL, e);
}

int proc_read(char *const argv[], struct buf *out, struct err *e)
{
    int ends[2];

    if (pipe_open(ends) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    return run(argv, ends[1], ends[0], out, e);
}
