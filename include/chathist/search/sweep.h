/*
 * sweep - a history searched for needles piece by piece, the newest first, by one thread or
 * several.
 *
 * The file is cut into pieces from its end, small ones first, so that what wants only the newest
 * hits reads little. Where the cuts are does not depend on the number of threads, and hits are
 * given in one order: what is found is the same with any number. The caller's own thread works,
 * too. Helpers are started when enough is left to be read, and stay a few pieces ahead of what is
 * asked for.
 */
#ifndef CHATHIST_SEARCH_SWEEP_H
#define CHATHIST_SEARCH_SWEEP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/err.h"
#include "chathist/search/piece.h"
#include "chathist/search/skip.h"

struct sweep;

struct sweep_job {
    struct piece_job piece;
    const char *path; /* for messages; borrowed */
    size_t threads;   /* 1 to CREW_MAX */
    void **ctx;       /* one for each thread's judge; borrowed */
    size_t piece_max; /* in bytes; the first piece has one block */
    off_t helped;     /* helpers are started when so much is left */
    /* Asked once when the newest piece was not enough and so much is left: what of that is to be
     * read; NULL: all of it. */
    void (*narrow)(void *arg, struct skip_map *map);
    void *narrow_arg;
    const atomic_bool *cancel; /* once it is true nothing more is found; NULL: never */
};

/* Reads nothing yet. Copies the job. */
struct sweep *sweep_new(const struct sweep_job *job);
void sweep_free(struct sweep *s);
/* The next hit, of a job that lists: 1, 0 at the beginning of the file, -1. Adds to *bad how many
 * bad lines were come across on the way. */
int sweep_next(struct sweep *s, struct piece_item *hit, uint64_t *bad, struct err *e);
/* How many hits and bad lines there are in all, of a job that does not list. 0, -1. */
int sweep_count(struct sweep *s, uint64_t *hits, uint64_t *bad, struct err *e);

/* Chunks of the skip index that would have been of use, when all of the history was looked
 * through; else 0. */
size_t sweep_missed(struct sweep *s);

#endif
