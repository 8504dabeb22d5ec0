/*
 * spawn - the start of a program, without a shell; what it is started for is the caller's
 * (base/proc, base/child, cli/pager).
 */
#ifndef CHATHIST_BASE_SPAWN_H
#define CHATHIST_BASE_SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Instead of a descriptor: ours, and /dev/null. */
#define SPAWN_OURS (-1)
#define SPAWN_NULL (-2)

/* All borrowed for the call. */
struct spawn {
    char *const *argv; /* ends with NULL; argv[0] is looked for in PATH unless it has a slash */
    char *const *env;  /* NULL: ours */
    const char *cwd;   /* its working directory; NULL: ours */
    int fd[3];         /* what its standard streams are */
    sigset_t reset;    /* the signals that it finds with their default action */
    bool apart;        /* in a session and process group of its own: it has no controlling terminal;
                        * and with no signal blocked */
};

/* Returns 0, or an errno: there is no such program or directory, or no process. With `cwd`, relative
 * directories in PATH mean those below it, and PWD and OLDPWD are left out of the environment. */
int spawn(pid_t *pid, const struct spawn *s);

#endif
