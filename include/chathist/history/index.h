/*
 * index - the cache beside a history that tells where the lines of each session lie (chathist(5)).
 *
 * It is derived from the history, and no output depends on it: what it says is held against the
 * history, and what does not hold is not used. A file of it has a preamble, which tells of which
 * history it is in which state, and then segments (hist/segment), each of what was appended since
 * the one before. A segment that begins where an earlier one does takes the place of that one and
 * those behind it. A segment is never changed; the file is replaced as a whole when it is made
 * anew.
 *
 * Whoever needs it brings it up to date. What is behind its last segment is read each time, and
 * becomes one when it is large. Nobody waits for anybody: where another program is at work on it,
 * or it cannot be written, it is used as it is, or not at all.
 */
#ifndef CHATHIST_HISTORY_INDEX_H
#define CHATHIST_HISTORY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "chathist/base/buf.h"
#include "chathist/history/location.h"
#include "chathist/history/scan.h"
#include "chathist/history/segment.h"

/* A smaller history is read as fast without. */
#define INDEX_LEAST ((off_t)256 << 10)

struct index {
    struct scan scan;         /* of the history that it tells of: for scan_line_at */
    struct segment *segments; /* that of the oldest lines first; together all lines */
    size_t count, cap;
    /* private */
    const struct history *h;
    struct stat st;       /* of the history */
    int fd;               /* of the index; -1 */
    off_t end;            /* of its last segment */
    struct buf memory[2]; /* behind segments that are not in the file */
};

/* Is there one that can be used? Makes it, or brings it up to date, where that can be done. It
 * tells of the history as it is on return. */
bool index_open(struct index *x, const struct history *h);
void index_close(struct index *x);
/* To be called when it turned out not to be true: closes it, and has it made anew by the next
 * one. */
void index_discard(struct index *x);
/* Compares the file with all lines of the history, which index_open does not do. Returns what is
 * wrong, or NULL. *removable: the file is certainly an index, or lies in a directory of ours. */
const char *index_defect(const struct history *h, bool *removable);

#endif
