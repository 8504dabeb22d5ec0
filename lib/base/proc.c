#include "base/proc.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

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

/* 0, or an errno. */
static int start(pid_t *pid, char *const argv[], int out, const sigset_t *reset)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);

    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    failed = posix_spawnattr_setsigdefault(&attributes, reset);
    if (!failed)
        failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    if (!failed && out >= 0)
        failed = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (!failed)
        failed = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static int wait_for(pid_t pid, const char *name, struct err *e)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, errno, "cannot wait for '%s'", name);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int proc_run(char *const argv[], int out, struct err *e)
{
    struct sigaction before[SIGNALS];
    sigset_t reset;
    pid_t pid;
    int failed, result;

    ignore_signals(before, &reset);
    failed = start(&pid, argv, out, &reset);
    if (failed)
        result = err_sys(e, failed, "cannot run '%s'", argv[0]);
    else
        result = wait_for(pid, argv[0], e);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(terminal_signals[i], &before[i], NULL);
    return result;
}
