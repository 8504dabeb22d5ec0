/*
 * browse_child - the other programs that hist-browse runs: with their output taken, with the
 * terminal lent to them, or with a text for them.
 */
#ifndef CHATHIST_BROWSE_BROWSE_CHILD_H
#define CHATHIST_BROWSE_BROWSE_CHILD_H

#include <stdatomic.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* Runs one without a terminal and waits for it; what it prints is added to `out` and `said`, its
 * standard error. *cancel, set by another thread, ends it. Its status, 128 + N when signal N ended
 * it; -1 with *e when it could not be started. */
int browse_child_run(char *const argv[], struct buf *out, struct buf *said,
                     const atomic_bool *cancel, struct err *e);
/* Gives a text to a program that keeps it: 0; -1 when there is no such program, or it does not take
 * it all. One that does not go on to read it for BROWSE_CHILD_GIVE_MS is ended, as it is when
 * *cancel is set; one that has read it may stay as long as it likes. */
#define BROWSE_CHILD_GIVE_MS ((int64_t)2000)
int browse_child_give(char *const argv[], struct str text, const atomic_bool *cancel);

#endif
