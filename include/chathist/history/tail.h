/*
 * tail - the end of a session's thread (hist/thread), read backwards from the session's last line.
 *
 * What can change an earlier line stands after it: `replaces` names earlier lines, and a reset
 * empties what is before it. So a reading that begins at the end knows of each line whether it
 * counts, and memory holds only the lines that are asked for. What a line depends on further up, its
 * prompt, is looked for.
 */
#ifndef CHATHIST_HISTORY_TAIL_H
#define CHATHIST_HISTORY_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/history/location.h"
#include "chathist/history/thread.h"

/* How much is read: at least this many messages or bytes of lines, whichever comes first. */
struct tail_wish {
    size_t messages, bytes;
    bool raw;    /* every line, in file order, as in thread_find */
    bool system; /* the newest system line is wanted, also when it is not among them */
};

struct tail {
    /* In the order of the thread, of which these are the last ones. `all` and `bad_lines` count
     * only what was read. */
    struct thread thread;
    bool whole; /* it is all of the thread */
    /* The newest system line, if it was wanted and comes before the lines of `thread`. */
    struct thread system;
};

/* 0; -1: there is nothing to release. */
int tail_load(struct tail *t, const struct history *h, struct str session_id,
              const struct tail_wish *wish, struct err *e);
void tail_release(struct tail *t);

#endif
