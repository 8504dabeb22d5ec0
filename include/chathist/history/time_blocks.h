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

/* Sets *time to the time of a line that is read out of the order of the file: the line at the
 * offset `at` of the file of `s`, with this timestamp. `b` begins zeroed; it is loaded when a time is
 * ahead for the first time. Returns 0, or -1 with *e set. */
int line_time_at(struct time_blocks *b, const struct history *h, const struct scan *s, off_t at,
                 struct str timestamp, int64_t *time, struct err *e);

#endif
