/*
 * erase - deleting sessions: which ones are meant, and rewriting the history without their lines.
 *
 * Lines of other sessions stay byte for byte, those that name erased messages too, and so do bad
 * lines, whatever is in them.
 */
#ifndef CHATHIST_CLI_ERASE_H
#define CHATHIST_CLI_ERASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/locate.h"
#include "chathist/history/session.h"

/* A session goes when every one of these that is set holds of it. For its age, its size or its
 * place among the others alone the current session does not go, unless `keep` is 0. Borrowed. */
struct erase_wish {
    bool named; /* it is one of the ids; the current session may be one that has no messages yet */
    const struct str *ids;
    size_t ids_count;
    bool aged; /* its last line is from before that time (µs); one that is no time is not */
    int64_t before;
    bool keeps; /* it is not among the `keep` sessions of the history that were used last */
    size_t keep;
    bool limited; /* of those that the others leave, it is among the ones used first that must go
                   * for the history to have at most max_size bytes */
    uint64_t max_size;
    struct str match; /* a message of it holds this text, as hist/search finds it; STR_NONE: not
                       * asked */
};

/* Is anything set but the ids? */
bool erase_is_narrow(const struct erase_wish *w);

struct erase {
    struct session_list list; /* what goes, the last used first; once erased, what went */
    uint64_t messages;        /* in them */
    uint64_t bytes;
    uint64_t size; /* of the history */
    size_t spared; /* of those chosen, so many stay: they were used since */
    bool current;  /* the current session stays, for all its age or its place */
    bool named;
    bool spares_current;
};

/* Chooses. Changes nothing on disk. On failure there is nothing to release. */
int erase_choose(struct erase *x, const struct history *h, const struct erase_wish *w,
                 struct err *e);
/* Erases what was chosen, in one rewrite (hist/rewrite), and the current session's pointer when it
 * names one of them. A session that was not named, but has got lines since it was chosen, stays as
 * a whole. 0, -1: the history is as it was, or the message says what it is. */
int erase_run(struct erase *x, struct history *h, struct err *e);
/* The user wants none of it. */
void erase_forget(struct erase *x);
void erase_release(struct erase *x);

#endif
