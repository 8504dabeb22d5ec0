/*
 * order - when a line of a history counts as written. Sessions and messages are listed by these
 * times, the newest first; of the same time, the one that is later in the file is newer.
 *
 * Lines are not stored in the order of their times: hist-import and hist-sync append older ones.
 * The time of a line is its timestamp. Clocks can be wrong: a time ahead of this machine's clock,
 * or one that cannot be read, counts as the latest time, not ahead, of a line before it in the
 * file. Lines are all valid messages here, also those that give a title.
 *
 * Times are in microseconds since 1970 (UTC).
 */
#ifndef CHATHIST_HISTORY_ORDER_H
#define CHATHIST_HISTORY_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/error.h"
#include "chathist/base/buf.h"
#include "chathist/history/location.h"
#include "chathist/history/scan.h"

/* The time of a line that is ahead and has no other line before it. */
#define LINE_OLDEST INT64_MIN

/* Tells the times of lines that are read in the order of the file. */
struct line_clock {
    int64_t now;      /* this machine's clock: history.now */
    int64_t latest;   /* the latest time, not ahead, of the lines so far; or LINE_OLDEST */
    int64_t ahead;    /* the earliest time that was ahead; INT64_MAX: none */
    int64_t borrowed; /* the earliest `latest` that was returned for a line; INT64_MAX: none */
};

/* Begins at the beginning of the file; or before another line, if `latest` is that of the lines
 * before it (time_block.before). */
struct line_clock line_clock_at(int64_t now, int64_t latest);
/* Returns the time of the next line. */
int64_t line_clock_time(struct line_clock *c, struct str timestamp);

/* Consecutive whole lines, of about TIME_BLOCK bytes. */
struct time_block {
    off_t from, to;           /* offsets in the file */
    int64_t earliest, latest; /* of the times of its lines; earliest > latest: it has no message */
    int64_t before;           /* line_clock.latest before its first line */
    bool ascending;           /* no line is older than the one before it in the block */
};
#define TIME_BLOCK ((off_t)256 << 10)

struct time_blocks {
    struct time_block *at;
    size_t count, cap;
};

/* Loads the blocks of the file of `s`, a scan of the history h: from 0 to s->size, each beginning
 * where the one before it ends; an empty file has none. They come from the session index, and if it
 * cannot be used, the file is read once. Returns 0; or -1 with *e set and nothing to release.
 *
 * A history whose times ascend has only ascending blocks, and none is older than the one before it:
 * at[i].latest <= at[i + 1].earliest. A reader that wants the newest message first reads such
 * blocks backwards, each line as it comes. It must read blocks together only if their times
 * overlap. */
int time_blocks_load(struct time_blocks *b, const struct history *h, const struct scan *s,
                     struct err *e);
void time_blocks_release(struct time_blocks *b);

/* Sets *time to the time of a line that is read out of the order of the file: the line at the
 * offset `at` of the file of `s`, with this timestamp. `b` begins zeroed; it is loaded when a time is
 * ahead for the first time. Returns 0, or -1 with *e set. */
int line_time_at(struct time_blocks *b, const struct history *h, const struct scan *s, off_t at,
                 struct str timestamp, int64_t *time, struct err *e);

#endif
