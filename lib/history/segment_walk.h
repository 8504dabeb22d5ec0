/*
 * segment_walk - the sessions of several segments (hist/segment), numbered, and walked in an order
 * of all of them.
 *
 * The numbers are those of the records: first all of the newest segment, so that of several that
 * are of one session the first has its newest line.
 *
 * Each segment lies in a file, and behind it the ids of its sessions, once in each order: so a walk
 * reads forwards, and holds next to nothing. An id is stored as
 *   word  the number of the session in its segment, and above it how long the id is
 *   word  the size of its texts
 *   word  how long the last of its times is
 *   word  the checksum of them and of the id
 *   the bytes of the id
 */
#ifndef CHATHIST_HISTORY_SEGMENT_WALK_H
#define CHATHIST_HISTORY_SEGMENT_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/history/segment.h"
#include "history/segment_form.h"

/* Writes the ids behind a segment, as counted from its beginning. How much they take, in *size.
 * 0; -1: they cannot be written, or the segment is not what it was made. */
int segment_walk_write(const struct segment *s, segment_write *write, void *ctx, uint64_t *size);

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
};

/* The oldest segment is given first; they are borrowed. false: they are too many to be numbered.
 * Then segment_walk_release, in any case. */
bool segment_walk_init(struct segment_walk *w, const struct segment *segments, size_t count);
void segment_walk_release(struct segment_walk *w);

const struct segment_run *segment_walk_run(const struct segment_walk *w, uint32_t number);

/* All of the sessions, ordered by their ids; those of one id by their numbers. Several threads may
 * walk, each for itself. */
struct segment_steps;

struct segment_step {
    uint32_t number;
    struct str id;  /* borrowed until the next step */
    uint64_t texts; /* the size of them, as segment_texts_size has it, */
    uint64_t last;  /* and how long its last time in them is */
};

struct segment_steps *segment_walk_steps(struct segment_walk *w, enum segment_side side);
/* false: there are no more, or it is broken. */
bool segment_steps_next(struct segment_steps *s, struct segment_step *step);
void segment_steps_free(struct segment_steps *s);

#endif
