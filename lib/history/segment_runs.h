/*
 * segment_runs - the segment of a part of a history written into a file, however large the part is:
 * in runs, each of as many lines as may be held at once, that are merged (hist/segment_merge).
 */
#ifndef CHATHIST_HISTORY_SEGMENT_RUNS_H
#define CHATHIST_HISTORY_SEGMENT_RUNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "history/segment_build.h"

struct segment_runs {
    /* All of the job is used later, too. */
    struct segment_job job; /* `reached` and `reached_ctx` are set here */
    int dir;                /* of `beside` */
    const char *beside;     /* where runs are written: a file of no name beside this one */
    size_t held;            /* so many bytes of a run; SEGMENT_HELD */
    /* private */
    struct segment_draft draft; /* what no run has yet, */
    off_t from;                 /* which begins there */
    int fd;                     /* of runs; -1 */
    off_t end;
    struct segment *at;
    size_t count, cap;
};

#define SEGMENT_HELD ((size_t)256 << 10)

/* Reads the part. 0; -1 when it cannot be read, was given up, or a run cannot be written. Then
 * segment_runs_release, in any case. */
int segment_runs_read(struct segment_runs *r);
/* Writes the segment at `at` of fd. Its size; 0: it cannot be written, or was given up. */
uint64_t segment_runs_write(struct segment_runs *r, uint64_t mark, int fd, off_t at);
void segment_runs_release(struct segment_runs *r);

#endif
