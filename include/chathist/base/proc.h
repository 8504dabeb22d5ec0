/*
 * proc - child processes.
 */
#ifndef CHATHIST_BASE_PROC_H
#define CHATHIST_BASE_PROC_H

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* What has no end is given up after so much, in bytes. */
#define PROC_REST_MAX ((size_t)16 << 20)

/* Keeps the memory and the environment of this process, where keys are, from other processes of the
 * user: on Linux, they can then neither read /proc/PID/environ and /proc/PID/mem nor trace it, and it
 * leaves no core dump (PR_SET_DUMPABLE in prctl(2)). Programs that it starts are not affected. A
 * process of root can still look. Elsewhere this does nothing. */
void proc_hide(void);

/* Runs a program that shares the terminal with us, such as an editor, and waits for its end. argv
 * ends with NULL; argv[0] is looked for in PATH. `out` becomes its standard output, -1: ours.
 * SIGINT and SIGQUIT are the child's meanwhile: this process ignores them, as system(3) does, and
 * so do all of its threads. Others of them, if there are any, must therefore take no signals, and
 * start programs with the default actions (reset of base/spawn). Returns its exit status, or 128 +
 * N when signal N ended it; -1 with *e when it could not be started. */
int proc_run(char *const argv[], int out, struct err *e);
/* Runs a program that is asked for something, and shares the terminal with us all the same: its
 * working directory is `cwd` (NULL: ours), its standard input /dev/null, and what it has printed when it ends is added to `out`, whatever it
 * leaves behind. Signals stay as they are: who catches some ends it by cancel_fd (-1: none), with
 * ERR_SIGNAL, as soon as that becomes readable: with all that it started when there is no terminal,
 * else it alone, and the terminal's signals reach the others, too. Returns as proc_run. What
 * it prints beyond the maximum of `out` is thrown away; -1 when that is more than PROC_REST_MAX,
 * and then it may have been ended for it. */
int proc_read(char *const argv[], const char *cwd, struct buf *out, int cancel_fd, struct err *e);

#endif
