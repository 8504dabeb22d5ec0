#include "chathist/cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/err.h"
#include "chathist/base/pipe.h"
#include "chathist/base/spawn.h"
#include "chathist/base/words.h"
#include "chathist/cli/config.h"
#include "chathist/cli/die.h"

/* What a shell says of a command that it cannot run, or not find. */
#define NOT_RUN 126
#define NOT_FOUND 127

static const int deadly[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM};
#define DEADLY (sizeof deadly / sizeof *deadly)

/* The one that runs. */
static struct {
    volatile pid_t pid; /* 0: none */
    const char *name;
    int out, err; /* the standard streams as they were; -1: not changed */
    struct sigaction before[DEADLY], pipe;
} pager = {.out = -1, .err = -1};

static bool is_dumb(void)
{
    const char *term = config_env("TERM");

    return !term || strcmp(term, "dumb") == 0;
}

/* NULL: none is wanted. */
static const char *wanted(void)
{
    const char *name = getenv("PAGER");

    if (!name)
        return is_dumb() ? NULL : "less";
    return *name == '\0' || strcmp(name, "cat") == 0 ? NULL : name;
}

/* PAGER is a command of the shell, by POSIX. One that needs no shell is run without, for then it is
 * known at once when there is no such program. */
static int take_apart(struct words *w, const char *name, struct err *e)
{
    if (!strpbrk(name, "|&;<>()$`*?[#~=%\n"))
        return words_split(w, str_of(name), e);
    if (words_split(w, STR("sh -c x"), e) < 0)
        return -1;
    free(w->at[2]);
    w->at[2] = strdup(name);
    return w->at[2] ? 0 : err_sys(e, ENOMEM, "cannot run '%s'", name);
}

/* Starts it; gives the end of the pipe that it reads from, or -1. */
static int run(pid_t *pid, char *const argv[], struct err *e)
{
    struct spawn s = {.argv = argv, .fd = {SPAWN_OURS, SPAWN_OURS, SPAWN_OURS}};
    int ends[2], failed;

    if (pipe_open(ends) < 0)
        return err_sys(e, errno, "cannot make a pipe");
    s.fd[0] = ends[0];
    sigemptyset(&s.reset);
    sigaddset(&s.reset, SIGPIPE);
    sigaddset(&s.reset, SIGXFSZ);
    failed = spawn(pid, &s);
    close(ends[0]);
    if (failed) {
        close(ends[1]);
        return err_sys(e, failed, "cannot run '%s'", argv[0]);
    }
    return ends[1];
}

/* ---- signals ---- */

/* The end of its input is what it waits for, and its end is what we wait for: everything here may
 * be called at any moment (POSIX, async-signal-safe). */
static void leave(int signo)
{
    struct sigaction act = {.sa_handler = SIG_DFL};

    close(STDOUT_FILENO);
    if (pager.err >= 0)
        close(STDERR_FILENO);
    while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    sigemptyset(&act.sa_mask);
    sigaction(signo, &act, NULL);
    /* It is blocked here, and comes when this returns. */
    raise(signo);
}

static void catch_signals(void)
{
    struct sigaction act = {.sa_handler = leave}, ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&ignore.sa_mask);
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < DEADLY; i++)
        sigaddset(&act.sa_mask, deadly[i]);
    for (size_t i = 0; i < DEADLY; i++) {
        sigaction(deadly[i], NULL, &pager.before[i]);
        if (pager.before[i].sa_handler != SIG_IGN)
            sigaction(deadly[i], &act, NULL);
    }
    sigaction(SIGPIPE, &ignore, &pager.pipe);
}

static void release_signals(void)
{
    for (size_t i = 0; i < DEADLY; i++)
        sigaction(deadly[i], &pager.before[i], NULL);
    sigaction(SIGPIPE, &pager.pipe, NULL);
}

/* ---- the standard streams ---- */

/* Has a standard stream lead elsewhere; gives what keeps the old one. */
static int divert(int fd, int to)
{
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (kept >= 0)
        dup2(to, fd);
    return kept;
}

static void give_back(int fd, int *kept)
{
    if (*kept < 0)
        return;
    dup2(*kept, fd);
    close(*kept);
    *kept = -1;
}

static void end_at_exit(void)
{
    pager_end();
}

bool pager_start(void)
{
    const char *name = wanted();
    struct words argv = {0};
    struct err e = ERR_INIT;
    pid_t pid = 0;
    int to = -1;

    if (!name || pager.pid)
        return false;
    if (!getenv("LESS"))
        setenv("LESS", "FRX", 1);
    if (take_apart(&argv, name, &e) == 0)
        to = run(&pid, argv.at, &e);
    /* A machine without less is no fault of the user's. */
    if (to < 0 && getenv("PAGER"))
        warn_err(&e);
    words_release(&argv);
    err_release(&e);
    if (to < 0)
        return false;
    pager.pid = pid;
    pager.name = name;
    catch_signals();
    if (isatty(STDERR_FILENO))
        pager.err = divert(STDERR_FILENO, to);
    pager.out = divert(STDOUT_FILENO, to);
    close(to);
    atexit(end_at_exit);
    return true;
}

int pager_end(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    int status = 0;

    if (!pager.pid)
        return 0;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    give_back(STDOUT_FILENO, &pager.out);
    give_back(STDERR_FILENO, &pager.err);
    while (waitpid(pager.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    pager.pid = 0;
    release_signals();
    if (!WIFEXITED(status) || WEXITSTATUS(status) < NOT_RUN || WEXITSTATUS(status) > NOT_FOUND)
        return 0;
    warnf("pager '%s' failed with status %d", pager.name, WEXITSTATUS(status));
    return -1;
}
