/*
 * session_gather - a list of sessions put together of what the segments of the index know of them
 * (hist/segment): for hist/session_list and hist/session_pages.
 *
 * Segments are given in the order from the newest to the oldest. Their sessions are in the order of
 * their last lines, so that nothing is sorted.
 */
#ifndef CHATHIST_HISTORY_SESSION_GATHER_H
#define CHATHIST_HISTORY_SESSION_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/keymap.h"
#include "chathist/history/segment.h"
#include "chathist/history/session_list.h"

/* Zero-initialise, but for `list` and `limit`. */
struct session_gather {
    struct session_list *list; /* borrowed */
    size_t limit;              /* it gets no longer than that */
    /* private */
    size_t cap, texts_cap;
    struct keymap places; /* id -> its place, of those that older segments may know, too */
};

void session_gather_release(struct session_gather *g);

/* All that follow: 0; -1 when a segment is not what it was made. */

/* Adds the sessions of a segment, and to those that are in the list what it knows of them.
 * `oldest`: no segment follows. */
int session_gather_segment(struct session_gather *g, const struct segment *s, bool oldest);
/* Adds to the sessions of the list what an older segment knows of them. */
int session_gather_older(struct session_gather *g, const struct segment *s);
/* Adds the sessions of `count` records from the number `first` on, which no newer segment has. */
int session_gather_records(struct session_gather *g, const struct segment *s, uint64_t first,
                           uint64_t count);
/* Adds the sessions of a segment whose ids have a text on a side, and to those that are in the list
 * what it knows of them. */
int session_gather_named(struct session_gather *g, const struct segment *s, enum segment_side side,
                         struct str text);

#endif
