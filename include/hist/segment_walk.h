/*
 * segment_walk - the sessions of several segments (hist/segment), numbered, and walked in an order
 * of all of them.
 *
 * The numbers are those of the records: first all of the newest segment, so that of several that
 * are of one session the first has its newest line. Of the segments only their ids are held.
 */
#ifndef CHATHIST_HIST_SEGMENT_WALK_H
#define CHATHIST_HIST_SEGMENT_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "hist/segment.h"

/* A segment among the others. */
struct segment_run {
    const struct segment *segment;
    uint32_t base; /* the number of its first session */
    uint32_t count;
};

struct segment_walk {
    struct segment_run *runs; /* the newest first */
    size_t run_count;
    uint32_t count; /* of sessions, those of one id counted each */
    /* One of them is not what it was made. Any thread may set it, and then nothing here goes on. */
    atomic_bool broken;
    /* private */
    char *ids;       /* each with a NUL behind it */
    uint32_t *id_at; /* of each session, and behind the last one */
};

/* The oldest segment is given first; they are borrowed. false: they are broken, or too many to be
 * numbered. Then segment_walk_release, in any case. */
bool segment_walk_init(struct segment_walk *w, const struct segment *segments, size_t count);
/* From here on no ids, and no orders. */
void segment_walk_free_ids(struct segment_walk *w);
void segment_walk_release(struct segment_walk *w);

const struct segment_run *segment_walk_run(const struct segment_walk *w, uint32_t number);
struct str segment_walk_id(const struct segment_walk *w, uint32_t number);

/* All of the sessions, ordered by their ids; those of one id by their numbers. Several threads may
 * walk, each for itself. */
struct segment_steps;

struct segment_steps *segment_walk_steps(struct segment_walk *w, enum segment_side side);
/* false: there are no more, or it is broken. */
bool segment_step(struct segment_steps *s, uint32_t *number);
void segment_steps_free(struct segment_steps *s);

#endif
