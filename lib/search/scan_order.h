/*
 * scan_order - returns the hits of a history in the order of their times (history/order.h), the
 * newest first, although they are found in the order of the file.
 *
 * The history is divided into cells of equal size. A line belongs to the cell after whose first
 * byte it begins; the line at offset 0 belongs to the first. The cells are read in the order of
 * their latest times. Hits are held until no cell that is left can have a newer one. In a history
 * whose times ascend this is the file from its end to its beginning, and little is held.
 */
#ifndef CHATHIST_SEARCH_SCAN_ORDER_H
#define CHATHIST_SEARCH_SCAN_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/history/order.h"
#include "chathist/search/skip_index.h"

/* ---- which part is read next ---- */

struct scan_order {
    const struct skip_map *map; /* cells that it does not want are passed over; borrowed */
    off_t size, cell;
    int64_t *latest; /* of each cell; owned */
    size_t *order;   /* the numbers of the cells, the newest first; owned */
    size_t count;
    size_t next;      /* order[next] follows the run */
    off_t begin, end; /* the unread part of a run: cells that follow each other in order and file */
};

/* Where the newest line can be that was not read yet. */
struct scan_rest {
    bool any; /* something is left */
    int64_t time;
    off_t at; /* lines of this time do not begin after this offset */
};

/* Prepares the order of a file. Without `times` (NULL) it is the order of the file, the last line
 * first. */
void scan_order_init(struct scan_order *o, off_t size, off_t cell, const struct time_blocks *times,
                     const struct skip_map *map);
void scan_order_release(struct scan_order *o);
/* Cuts off the next part: consecutive cells of at most `most` bytes, a multiple of a cell. Returns
 * false if nothing is left. */
bool scan_order_cut(struct scan_order *o, off_t most, off_t *begin, off_t *end);
struct scan_rest scan_order_rest(struct scan_order *o);

/* ---- hits that are held ---- */

/* A hit, a message that could not be matched (see pattern_find), or a line that is no valid
 * message. */
struct scan_item {
    off_t at;
    int64_t time;
    uint32_t n; /* length of the line without its newline */
    bool bad, failed;
};

/* The hits of one part, ascending: by time, then by place. */
struct scan_run {
    struct scan_item *at; /* owned */
    size_t count;
};

/* A heap of runs, the one with the newest hit first. Initialise with zeros. */
struct scan_held {
    struct scan_run *runs;
    size_t count, cap;
};

/* Puts items into the order of a run. */
void scan_items_sort(struct scan_item *at, size_t count);
/* Takes over a run. */
void scan_held_add(struct scan_held *h, struct scan_run run);
/* Removes the newest hit, unless something newer may be left to be read. Returns false if there is
 * none. */
bool scan_held_next(struct scan_held *h, struct scan_rest rest, struct scan_item *item);
void scan_held_release(struct scan_held *h);

#endif
