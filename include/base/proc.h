/*
 * proc - child processes.
 */
#ifndef CHATHIST_BASE_PROC_H
#define CHATHIST_BASE_PROC_H

#include "base/buf.h"
#include "base/err.h"

/* Runs a program that shares the terminal with us, such as an editor, and waits for its end. argv
 * ends with NULL; argv[0] is looked for in PATH. `out` becomes its standard output, -1: ours.
 * SIGINT and SIGQUIT are the child's meanwhile: this process ignores them, as system(3) does, so it
 * is nothing for a process with threads. Returns its exit status, or 128 + N when signal N ended
 * it; -1 with *e when it could not be started. */
int proc_run(char *const argv[], int out, struct err *e);
/* The same for one that is asked for something: its standard input is /dev/null, and what it prints
 * is added to `out`. -1 also when that is more than the maximum of `out`; the program has ended
 * then, too. */
int proc_read(char *const argv[], struct buf *out, struct err *e);

#endif
