/*
 * segment_names - the sessions of a segment (hist/segment) by a part of their ids: its two orders
 * are searched.
 */
#ifndef CHATHIST_HISTORY_SEGMENT_NAMES_H
#define CHATHIST_HISTORY_SEGMENT_NAMES_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/history/segment.h"

/* In the order of that side: < 0, > 0 when the id is in front of all that have the text there, or
 * behind them; 0 when it has it. */
int segment_compare(struct str id, struct str text, enum segment_side side);
/* Two ids in that order: 0 when they are the same, else < 0 or > 0. */
int segment_compare_ids(struct str a, struct str b, enum segment_side side);

/* Both are borrowed for the call. */
typedef void segment_tell(void *ctx, const struct segment_session *of, struct str id);
/* Tells the sessions whose ids have a text on that side: those with the newest lines, at the most
 * so many (0: none), the newest first. 0; -1 when the segment is seen not to be what it was made:
 * some may have been told by then. */
int segment_each_named(const struct segment *s, enum segment_side side, struct str text,
                       size_t most, segment_tell *tell, void *ctx);

#endif
