/*
 * mend - taking bad lines out of a history without losing a byte.
 *
 * A bad line goes to the quarantine (hist/rewrite) as it is. When it holds whole messages, as
 * after two writers' lines came onto one, or after a torn line without an end, they become lines of
 * their own and only the rest goes. A valid last line gets the newline that it lacks.
 */
#ifndef CHATHIST_HISTORY_MEND_H
#define CHATHIST_HISTORY_MEND_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/locate.h"

struct mend {
    uint64_t moved;     /* lines, or parts of lines, in the quarantine */
    uint64_t recovered; /* messages that stood on a bad line */
    uint64_t ended;     /* last lines that got a newline: 0 or 1 */
};

/* Mends. Counts what was done. 1 when the history was rewritten, 0 when there was nothing to do, -1
 * as rewrite_run. */
int mend_run(struct mend *m, struct history *h, struct err *e);

/* Takes the next message off *rest: true, where it stands, and in *garbage what came before it. It
 * stands at the beginning; else behind something else, and then there are only whole messages up to
 * the end: what lies within a value, as in the arguments of a call, is no message. false when there
 * is none left. */
bool mend_next(struct str *rest, struct str *garbage, struct str *message);

#endif
