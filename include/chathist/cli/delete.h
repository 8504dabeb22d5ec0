/*
 * delete - chooses sessions and deletes them by rewriting the history without their lines.
 *
 * The lines of other sessions are kept byte for byte, also those that name deleted messages, and so
 * are bad lines.
 */
#ifndef CHATHIST_CLI_DELETE_H
#define CHATHIST_CLI_DELETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/session.h"

/* Which sessions are deleted: those that meet all of the criteria that are set. The current session
 * is not deleted for its age, its size or its place among the others, unless `keep` is 0. All
 * pointers are borrowed. */
struct delete_criteria {
    bool named; /* its id is in `ids`; the current session may be named before its first message */
    const struct str *ids;
    size_t ids_count;
    bool aged; /* its last line is older than `before` (µs); a line whose time cannot be read is
                     * not */
    int64_t before;
    bool keeps; /* it is not among the `keep` sessions that were used last */
    size_t keep;
    /* The other criteria choose it, and the history would have more than max_size bytes without
     * deleting it. The sessions used first are deleted first. */
    bool limited;
    uint64_t max_size;
    struct str match; /* a message of it contains this text, as hist-search finds it; STR_NONE: not
                       * set */
};

/* Is any criterion set but `named`? */
bool delete_criteria_narrow(const struct delete_criteria *c);

struct deletion {
    struct session_list list; /* the chosen sessions, the last used first; later the deleted ones */
    uint64_t messages;        /* in the sessions of the list */
    uint64_t bytes;           /* of their lines */
    uint64_t size;            /* of the history */
    size_t spared; /* the number of chosen sessions that were kept because they were used since */
    bool current;  /* the current session is kept although it meets the criteria */
    bool named;
    bool spares_current;
};

/* Chooses sessions. Changes nothing on disk. Returns 0, or -1 with *e set; then there is nothing to
 * release. */
int deletion_choose(struct deletion *d, const struct history *h, const struct delete_criteria *c,
                    struct err *e);
/* Deletes the chosen sessions in one rewrite (history/rewrite.h), and the pointer if it names one
 * of them. A session that was not named, but has got lines since it was chosen, is kept whole.
 * Returns 0; or -1 with *e set: the history is unchanged, unless the message says otherwise. */
int deletion_run(struct deletion *d, struct history *h, struct err *e);
/* Empties the list, because the user wants to delete nothing. */
void deletion_clear(struct deletion *d);
void deletion_release(struct deletion *d);

#endif
