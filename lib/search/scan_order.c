#include "search/scan_order.h"

#include <stdlib.h>

#include "chathist/base/memory.h"

/* ---- cells ---- */

/* Returns the cell of a line that begins at `at`. */
static size_t cell_of(const struct scan_order *o, off_t at)
{
    return at > 0 ? (size_t)((at - 1) / o->cell) : 0;
}

/* Fills in the latest time of each cell. A line of a block can begin anywhere in it. */
static void set_times(struct scan_order *o, const struct time_blocks *times)
{
    for (size_t i = 0; i < o->count; i++)
        o->latest[i] = LINE_OLDEST;
    for (size_t i = 0; i < times->count; i++) {
        const struct time_block *b = &times->at[i];

        if (b->to <= b->from || b->earliest > b->latest)
            continue;
        for (size_t k = cell_of(o, b->from); k <= cell_of(o, b->to - 1) && k < o->count; k++)
            if (b->latest > o->latest[k])
                o->latest[k] = b->latest;
    }
}

struct cell {
    int64_t latest;
    size_t number;
};

static int by_latest(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;

    if (x->latest != y->latest)
        return x->latest < y->latest ? 1 : -1;
    return (x->number < y->number) - (x->number > y->number);
}

void scan_order_init(struct scan_order *o, off_t size, off_t cell, const struct time_blocks *times,
                     const struct skip_map *map)
{
    struct cell *cells;

    *o = (struct scan_order){.map = map, .size = size, .cell = cell};
    if (size == 0)
        return;
    o->count = (size_t)((size + o->cell - 1) / o->cell);
    o->latest = mem_zalloc(o->count * sizeof *o->latest);
    o->order = mem_zalloc(o->count * sizeof *o->order);
    if (times)
        set_times(o, times);
    cells = mem_zalloc(o->count * sizeof *cells);
    for (size_t i = 0; i < o->count; i++)
        cells[i] = (struct cell){o->latest[i], i};
    qsort(cells, o->count, sizeof *cells, by_latest);
    for (size_t i = 0; i < o->count; i++)
        o->order[i] = cells[i].number;
    free(cells);
}

void scan_order_release(struct scan_order *o)
{
    free(o->latest);
    free(o->order);
    *o = (struct scan_order){0};
}

/* Passes over what is not wanted. Returns false if nothing is left. Makes the next cell and those
 * that precede it in the file, as long as they follow in the order, the run to be read. */
static bool find_wanted(struct scan_order *o)
{
    while ((o->end = skip_map_end(o->map, o->end, o->begin)) == o->begin) {
        off_t end;

        if (o->next == o->count)
            return false;
        end = (off_t)(o->order[o->next] + 1) * o->cell;
        o->end = end < o->size ? end : o->size;
        do
            o->next++;
        while (o->next < o->count && o->order[o->next] + 1 == o->order[o->next - 1]);
        o->begin = (off_t)o->order[o->next - 1] * o->cell;
    }
    return true;
}

bool scan_order_cut(struct scan_order *o, off_t most, off_t *begin, off_t *end)
{
    off_t least = 0;

    if (!find_wanted(o))
        return false;
    *end = o->end;
    if (*end > most)
        least = (*end - 1 - (most - o->cell)) / o->cell * o->cell;
    *begin = skip_map_begin(o->map, *end, least > o->begin ? least : o->begin);
    o->end = *begin;
    return true;
}

struct scan_rest scan_order_rest(struct scan_order *o)
{
    if (!find_wanted(o))
        return (struct scan_rest){0};
    return (struct scan_rest){true, o->latest[cell_of(o, o->end)], o->end};
}

/* ---- hits ---- */

static bool is_newer(const struct scan_item *a, const struct scan_item *b)
{
    return line_compare(a->time, a->at, b->time, b->at) < 0;
}

static int oldest_first(const void *a, const void *b)
{
    const struct scan_item *x = a, *y = b;

    return line_compare(y->time, y->at, x->time, x->at);
}

void scan_items_sort(struct scan_item *at, size_t count)
{
    size_t i = 1;

    while (i < count && !is_newer(&at[i - 1], &at[i]))
        i++;
    if (i < count)
        qsort(at, count, sizeof *at, oldest_first);
}

static const struct scan_item *newest_of_run(const struct scan_run *r)
{
    return &r->at[r->count - 1];
}

static void swap_runs(struct scan_run *a, struct scan_run *b)
{
    struct scan_run run = *a;

    *a = *b;
    *b = run;
}

void scan_held_add(struct scan_held *h, struct scan_run run)
{
    size_t i = h->count;

    h->runs = mem_grow(h->runs, &h->cap, h->count + 1, sizeof *h->runs);
    h->runs[h->count++] = run;
    for (size_t up;
         i > 0 && is_newer(newest_of_run(&h->runs[i]), newest_of_run(&h->runs[up = (i - 1) / 2]));
         i = up)
        swap_runs(&h->runs[i], &h->runs[up]);
}

/* Moves the first run down to its place. */
static void sink_first_run(struct scan_held *h)
{
    size_t i = 0, down;

    while ((down = 2 * i + 1) < h->count) {
        if (down + 1 < h->count &&
            is_newer(newest_of_run(&h->runs[down + 1]), newest_of_run(&h->runs[down])))
            down++;
        if (!is_newer(newest_of_run(&h->runs[down]), newest_of_run(&h->runs[i])))
            return;
        swap_runs(&h->runs[i], &h->runs[down]);
        i = down;
    }
}

bool scan_held_next(struct scan_held *h, struct scan_rest rest, struct scan_item *item)
{
    if (h->count == 0)
        return false;
    *item = *newest_of_run(&h->runs[0]);
    if (rest.any && (item->time != rest.time ? item->time < rest.time : item->at <= rest.at))
        return false;
    if (--h->runs[0].count == 0) {
        free(h->runs[0].at);
        h->runs[0] = h->runs[--h->count];
    }
    sink_first_run(h);
    return true;
}

void scan_held_release(struct scan_held *h)
{
    for (size_t i = 0; i < h->count; i++)
        free(h->runs[i].at);
    free(h->runs);
    *h = (struct scan_held){0};
}
