/*
 * time_blocks - the times of the lines of a history by blocks (history/order.h), from the session
 * index or by reading the file.
 */
#ifndef CHATHIST_HISTORY_TIME_BLOCKS_H
#define CHATHIST_HISTORY_TIME_BLOCKS_H

#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/order.h"
#include "chathist/history/scan.h"

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

/* Tells the times of lines of the file of `scan` that are read out of its order. Where clocks were
 * wrong, lines before a line decide: those of a block are read once if the lines come in the order
 * of the file. Initialise with zeros and the members before `private`. */
struct line_times {
    int64_t now; /* as in struct line_clock */
    const struct scan *scan;
    const struct time_blocks *blocks; /* NULL: those of `h` are loaded when they matter */
    const struct history *h;
    /* private */
    struct time_blocks loaded;
    const struct time_block *block;
    struct line_clock clock; /* before the line at `to` */
    off_t to;
};
/* Sets *time to the time of the line at the offset `at` with this timestamp. Returns 0, or -1 with
 * *e set. */
int line_times_get(struct line_times *t, off_t at, struct str timestamp, int64_t *time,
                   struct err *e);
void line_times_release(struct line_times *t);

#endif
