/*
 * delete - chooses the sessions that hist-delete erases, and erases them by rewriting the history
 * without their lines.
 */
#ifndef CHATHIST_CLI_DELETE_H
#define CHATHIST_CLI_DELETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/cli/choose.h"
#include "chathist/history/location.h"
#include "chathist/history/session.h"

/* Which sessions are deleted: those that meet all of the criteria that are set. The current session
 * is not deleted for its age, its size or its place among the others, unless `keep` is 0. */
struct delete_request {
    struct choice choice; /* a line whose time cannot be read is not old; limit: those used first */
    bool named;
    bool keeps; /* it is not among the `keep` sessions that were used last */
    size_t keep;
    /* The other criteria choose it, and the history would have more than max_size bytes without
     * deleting it. The sessions used first are deleted first. */
    bool limited;
    uint64_t max_size;
    bool dry_run, force;
};

/* The lines of other sessions are kept byte for byte, also those that name deleted messages, and so
 * are bad lines. */
struct deletion {
    const struct delete_request *request;
    struct session_list list; /* the chosen sessions, the last used first; later the deleted ones */
    uint64_t messages;        /* messages in the sessions of the list */
    uint64_t bytes;           /* the bytes of their lines */
    uint64_t size;            /* the size of the history */
    size_t gone;   /* the number of chosen sessions that another program has deleted since */
    size_t spared; /* the number of chosen sessions that were kept because they were used since */
    bool current;  /* the current session is kept although it meets the criteria */
};

/* Returns whether a criterion other than names is set. */
bool delete_is_narrow(const struct delete_request *w);
/* Chooses sessions. Changes nothing on disk. Ends the program on an error. The caller releases
 * d->list. */
void delete_choose(struct deletion *d, const struct history *h, const struct delete_request *w);
/* Deletes the chosen sessions in one rewrite (history/rewrite.h), and the pointer if it names one
 * of them. A session that was not named, but has got lines since it was chosen, is kept whole.
 * Returns 0; or -1 with *e set: the history is unchanged, unless the message says otherwise. */
int delete_chosen(struct deletion *d, struct history *h, struct err *e);

#endif
