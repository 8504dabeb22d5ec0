/*
 * segment_build - a segment made of a part of a history, which is read on several threads where
 * that pays.
 */
#ifndef CHATHIST_HISTORY_SEGMENT_BUILD_H
#define CHATHIST_HISTORY_SEGMENT_BUILD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "chathist/history/scan.h"
#include "history/segment_draft.h"

struct segment_job {
    const struct scan *history; /* borrowed; its file, block size and longest line */
    off_t from, to;             /* beginnings of lines, or the end of the file */
    size_t threads;             /* 1 or more; the caller's own works, too */
    size_t piece;               /* so many bytes are read by one of them */
    void (*work)(int percent);  /* as in struct history; NULL: nobody */
    /* Once it is true, it is given up; NULL: never. */
    const atomic_bool *cancel;
    /* Told, on the caller's thread, when all lines before `to` are there: it may take them out of
     * the draft. -1 gives up. NULL: nobody is told. */
    int (*reached)(void *ctx, off_t to);
    void *reached_ctx;
};

/* How many threads a part of that size is read by, and in which pieces. */
void segment_job_size(struct segment_job *j);

/* Adds the lines of the part to d (segment_draft_init). What is there does not depend on threads
 * and pieces. A torn last line counts when it is a message. 0; -1 when it cannot be read, or was
 * given up. */
int segment_build(struct segment_draft *d, const struct segment_job *job);

#endif
