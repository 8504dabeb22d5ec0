/*
 * parallel_scan - searches a history on one or several threads, for literals or line by line, and
 * returns the hits in the order of search/scan_order, the newest first.
 *
 * The file is cut into chunks in the order of their times, small ones first, so that a search for
 * the newest hits reads little. The cuts do not depend on the number of threads, so every number of
 * threads gives the same result. The caller's thread works too. Helper threads start when enough is
 * left to be read, and stay a few chunks ahead of the caller.
 *
 * A chunk is read in windows at fixed offsets into memory that begins at a page (pread; a mapping
 * is slower for a file that grew line by line, and ends the program with SIGBUS if the file becomes
 * shorter). The part of a line that a window ends with is put in front of the next window. A line
 * belongs to the chunk after whose first byte it begins; the line at offset 0 belongs to the first.
 * A small file is one chunk and is read by a scan.
 */
#ifndef CHATHIST_SEARCH_PARALLEL_SCAN_H
#define CHATHIST_SEARCH_PARALLEL_SCAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/history/filter.h"
#include "chathist/history/scan.h"
#include "chathist/search/pattern.h"
#include "chathist/search/query.h"
#include "chathist/search/skip_index.h"
#include "search/literal_scan.h"
#include "search/scan_order.h"

struct parallel_scan;

/* What to search and how; everything is borrowed. */
struct parallel_scan_job {
    const struct scan *scan;     /* the open history, and which of its sessions are wanted */
    const struct filter *filter; /* NULL: every message */
    const struct query *query;   /* only its fields count; NULL: no query */
    const struct pattern *pattern;
    const struct pattern *unwanted;  /* no text of a hit matches it; NULL: any may */
    const struct time_blocks *times; /* of the scan; NULL: hits have the order of the file */
    int64_t now;                     /* as in struct line_clock */
    bool by_line;                    /* the file is small */
    unsigned in; /* bits of enum search_in; with literals only content and tool calls */
    bool invert; /* the hits are the messages that do not match; not with literals */
    const struct literal_scan *literals; /* those of the pattern; NULL: every line is looked at */
    size_t threads;                      /* 1 to THREAD_POOL_MAX */
    size_t chunk_max;                    /* in bytes; the first chunk has one window */
    off_t helped;                        /* helpers start if at least this much is left */
    off_t most;                          /* only cells of this size together, the newest; 0: all */
    bool list;                           /* hits are listed; false: only counted */
    /* If as much is left after the first chunk, `map` is loaded from the skip index. */
    const struct history *history; /* NULL: the index is not used */
    const struct skip_query *skip;
    struct skip_map *map;
    const atomic_bool *cancel; /* the search ends when another thread sets it; NULL: never */
    const int64_t *until;      /* as in struct search */
};

/* Reads nothing yet. Copies the job. */
struct parallel_scan *parallel_scan_new(const struct parallel_scan_job *job);
void parallel_scan_free(struct parallel_scan *s);
/* The time `until` has passed; the next call continues. The value is that of SEARCH_PAUSED. */
#define PARALLEL_SCAN_PAUSED 3
/* Returns 1 and the next older hit of a job that lists, or message that could not be matched; 0 at
 * the end; -1 with *e set; or PARALLEL_SCAN_PAUSED. Adds the bad lines that were met on the way to
 * *bad. */
int parallel_scan_next(struct parallel_scan *s, struct scan_item *hit, uint64_t *bad,
                       struct err *e);
/* Counts all hits, of a job that does not list, and adds the bad lines to *bad. Returns 1; 0 if a
 * message could not be matched, so that the count is not right; -1 with *e set; or
 * PARALLEL_SCAN_PAUSED. */
int parallel_scan_count(struct parallel_scan *s, uint64_t *hits, uint64_t *bad, struct err *e);

/* Returns whether the filter has refused a line that was looked at in the chunks so far. */
bool parallel_scan_refused(const struct parallel_scan *s);
/* Returns whether every part of the history was looked at that had to be. *hits is set to the
 * number of hits so far. */
bool parallel_scan_ended(struct parallel_scan *s, uint64_t *hits);

#endif
