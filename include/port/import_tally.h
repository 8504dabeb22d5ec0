/*
 * import_tally - how often the history has a line, and how often the source that is being read.
 *
 * A line in our own form is known by its session, its id and what it says: the ids of other clients
 * may be the same in every session, and where two lines of a session share one both are kept. A
 * line whose id is empty is known by all of its members. How JSON is spelled makes no difference.
 *
 * A source brings as many of a line as it has more of than the history: what it has twice comes
 * twice, and nothing comes again.
 */
#ifndef CHATHIST_PORT_IMPORT_TALLY_H
#define CHATHIST_PORT_IMPORT_TALLY_H

#include <stddef.h>

#include "base/keymap.h"
#include "hist/message.h"

struct import_tally_line {
    size_t stored;   /* so many are in the history */
    size_t promised; /* so many will be, with those that wait to be stored */
    size_t source;   /* the last one that had it */
    size_t given;    /* by that one so far */
};

/* Zero-initialise. */
struct import_tally {
    struct import_tally_line *at;
    size_t count, cap;
    /* private */
    struct keymap lines; /* hash -> place in `at` */
    char **keys;         /* owns them */
    size_t keys_cap;
};

/* The place of a line in `at`, new or not. */
size_t import_tally_find(struct import_tally *t, const struct message *m);
/* Begins to count those in the history anew. */
void import_tally_restart(struct import_tally *t);
void import_tally_release(struct import_tally *t);

#endif
