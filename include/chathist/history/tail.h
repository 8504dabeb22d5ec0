/*
 * tail - the end of a session's thread (history/thread), read backwards from its last line.
 *
 * Only later lines affect a line: `replaces` names earlier lines, and a reset drops the lines
 * before it. So a reader that begins at the end knows for each line whether it counts, and only the
 * requested lines are in memory. The prompt of an answer, which comes before it, is searched for.
 */
#ifndef CHATHIST_HISTORY_TAIL_H
#define CHATHIST_HISTORY_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/history/location.h"
#include "chathist/history/thread.h"

/* How much to read: this many messages or bytes of lines, whichever comes first. */
struct tail_wish {
    size_t messages, bytes;
    bool raw;    /* every line, in file order, as in thread_find */
    bool system; /* also read the newest system line, if it is not among them */
};

struct tail {
    /* The last messages, in the order of the thread. `all` and `bad_lines` count only lines that
     * were read. */
    struct thread thread;
    bool whole; /* `thread` is complete */
    /* The newest system line, if it was requested and precedes the lines of `thread`. */
    struct thread system;
};

/* Returns 0, or -1 with *e set and nothing to release. */
int tail_load(struct tail *t, const struct history *h, struct str session_id,
              const struct tail_wish *wish, struct err *e);
void tail_release(struct tail *t);

#endif
