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

#include "chathist/base/buf.h"

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

/* Compares two lines of one history: below 0 if the one with `time` at the offset `at` is newer
 * than the other one, 0 if they are the same line. */
int line_compare(int64_t time, off_t at, int64_t other_time, off_t other_at);

/* Consecutive whole lines, of about TIME_BLOCK bytes. */
struct time_block {
    off_t from, to; /* offsets in the file */
    int64_t earliest,
        latest;     /* the bounds of its lines' times; earliest > latest: it has no message */
    int64_t before; /* line_clock.latest before its first line */
    bool ascending; /* no line is older than the one before it in the block */
};
#define TIME_BLOCK ((off_t)256 << 10)

struct time_blocks {
    struct time_block *at;
    size_t count, cap;
};

void time_blocks_release(struct time_blocks *b);

#endif
