/*
 * session_table - the sessions of a part of a history in memory, with the places of their lines.
 *
 * It is filled by reading lines, by several threads if there are many, and the index is written
 * from it (history/session_index.h).
 */
#ifndef CHATHIST_HISTORY_SESSION_TABLE_H
#define CHATHIST_HISTORY_SESSION_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/hash_map.h"
#include "chathist/history/location.h"
#include "chathist/history/order.h"
#include "chathist/history/scan.h"
#include "chathist/history/session_summary.h"

/* Consecutive lines of one session: the bytes from `from` up to `to`. */
struct line_range {
    off_t from, to;
    size_t owner; /* number of the session in the table */
};

struct title_line {
    size_t owner;    /* number of the session in the table */
    struct str line; /* lives as long as the list of the table */
};

struct session_table {
    struct session_list list; /* in the order of the first lines */
    struct line_range *ranges;
    size_t range_count, range_cap;
    /* The lines that give titles. session_table_read gives their sessions the titles that count. */
    struct title_line *titles;
    size_t title_count, title_cap;
    uint64_t *bad; /* offsets of lines that are not valid messages; list.bad_lines of them */
    size_t bad_cap;
    off_t end; /* offset of the byte after the last line that was read */
    struct time_blocks blocks;
    struct line_clock clock; /* after the last line that was read */
    /* private */
    struct hash_map numbers; /* id -> number of the session */
    struct buf scratch;
};

/* Makes an empty table. `now` is history.now. */
void session_table_init(struct session_table *t, int64_t now);
void session_table_release(struct session_table *t);

/* What session_table_read reads. */
struct table_read {
    const struct scan *scan;   /* the scan of the history; its `work` is reported to */
    off_t from, to;            /* `from` is the beginning of a line */
    bool exact;                /* fail if the file becomes shorter than `to` */
    const atomic_bool *cancel; /* stops the reading once it is true; NULL: never */
    struct err *e; /* gets the reason of a failure, if there is one; NULL: nothing does */
};
/* Adds the lines that begin in that part. A last line without a newline is not added: t->end is
 * then before r->to. Returns 0; -1 if the part could not be read, or the reading was cancelled. */
int session_table_read(struct session_table *t, const struct table_read *r);
/* Reads the whole history of the scan. Returns 0, or -1 with *e set. */
int session_table_read_all(struct session_table *t, const struct scan *s, const atomic_bool *cancel,
                           struct err *e);
/* Adds the last line of a file of `size` bytes if it is a valid message without a newline. */
int session_table_read_torn(struct session_table *t, const struct scan *s, off_t size);

/* Finds a session by its id: returns it with its number in *number, or NULL. */
const struct session *session_table_find(const struct session_table *t, struct str id,
                                         size_t *number);

#endif
