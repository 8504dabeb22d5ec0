#include "search/scan_order.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "test.h"
#include "draw.h"

#define LINES 400
#define CELL ((off_t)64)

/* A history of lines, without the file. */
static struct scan_item lines[LINES];
static struct time_blocks times;
static off_t size;

static void add_block(size_t from, size_t to, off_t end)
{
    struct time_block b = {lines[from].at, end, INT64_MAX, INT64_MIN, 0, false};

    for (size_t i = from; i < to; i++) {
        b.earliest = lines[i].time < b.earliest ? lines[i].time : b.earliest;
        b.latest = lines[i].time > b.latest ? lines[i].time : b.latest;
    }
    times.at = mem_grow(times.at, &times.cap, times.count + 1, sizeof *times.at);
    times.at[times.count++] = b;
}

/* Makes lines of random lengths whose times ascend, but for `jumps` of them, and their blocks. */
static void make(size_t jumps)
{
    size_t from = 0;

    times.count = 0;
    size = 0;
    for (size_t i = 0; i < LINES; i++) {
        lines[i] = (struct scan_item){.at = size, .time = (int64_t)i / 3, .n = 1 + draw(100)};
        if (draw(LINES) < jumps)
            lines[i].time = draw(LINES);
        size += lines[i].n + 1;
    }
    for (size_t i = 1; i <= LINES; i++)
        if (i == LINES || draw(5) == 0) {
            add_block(from, i, i < LINES ? lines[i].at : size);
            from = i;
        }
}

static int newest_first(const void *a, const void *b)
{
    const struct scan_item *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? 1 : -1;
    return (x->at < y->at) - (x->at > y->at);
}

/* The hits of a part, found. */
static struct scan_run read_part(off_t begin, off_t end)
{
    struct scan_run run = {NULL, 0};
    size_t cap = 0;

    for (size_t i = 0; i < LINES; i++)
        if ((lines[i].at > begin || begin == 0) && lines[i].at <= end) {
            run.at = mem_grow(run.at, &cap, run.count + 1, sizeof *run.at);
            run.at[run.count++] = lines[i];
        }
    scan_items_sort(run.at, run.count);
    return run;
}

/* Reads all parts of at most `most` bytes. Returns how many hits were held at once; `got` has them
 * in the order in which they were returned. */
static size_t run_all(off_t most, const struct time_blocks *by, const struct skip_map *map,
                      struct scan_item *got, size_t *count)
{
    struct scan_order o;
    struct scan_held held = {0};
    size_t in = 0, highest = 0;
    off_t begin, end;

    *count = 0;
    scan_order_init(&o, size, CELL, by, map);
    while (scan_order_cut(&o, most, &begin, &end)) {
        struct scan_run run = read_part(begin, end);

        CHECK(begin < end && end <= size && end - begin <= most);
        CHECK(begin % CELL == 0);
        in += run.count;
        if (run.count > 0)
            scan_held_add(&held, run);
        else
            free(run.at);
        while (*count < LINES && scan_held_next(&held, scan_order_rest(&o), &got[*count]))
            ++*count;
        highest = in - *count > highest ? in - *count : highest;
    }
    CHECK(!scan_order_rest(&o).any);
    CHECK_INT(held.count, 0);
    scan_held_release(&held);
    scan_order_release(&o);
    return highest;
}

static bool is_order(const struct scan_item *got, const struct scan_item *want, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (got[i].at != want[i].at)
            return false;
    return true;
}

TEST(hits_come_in_the_order_of_their_times)
{
    static struct scan_item got[LINES], want[LINES];
    const struct skip_map all = {0};
    size_t count;

    for (int round = 0; round < 200; round++) {
        make((const size_t[]){0, 1, 20, LINES}[round % 4]);
        memcpy(want, lines, sizeof want);
        qsort(want, LINES, sizeof *want, newest_first);
        (void)run_all(CELL * (1 + (off_t)draw(8)), &times, &all, got, &count);
        CHECK_INT(count, LINES);
        CHECK(is_order(got, want, LINES));
    }
}

TEST(without_times_it_is_the_order_of_the_file)
{
    static struct scan_item got[LINES];
    const struct skip_map all = {0};
    size_t count;

    make(LINES);
    for (size_t i = 0; i < LINES; i++)
        lines[i].time = 0;
    (void)run_all(CELL * 4, NULL, &all, got, &count);
    CHECK_INT(count, LINES);
    for (size_t i = 0; i < LINES; i++)
        CHECK_INT(got[i].at, lines[LINES - 1 - i].at);
}

/* Only the hits of the blocks at the borders of a part wait for the next one. */
TEST(little_is_held_if_times_ascend)
{
    static struct scan_item got[LINES];
    const struct skip_map all = {0};
    size_t count;

    for (int round = 0; round < 50; round++) {
        make(0);
        CHECK(run_all(CELL * 8, &times, &all, got, &count) < 100);
    }
}

/* The parts that are not wanted are not read, and nothing waits for them. */
TEST(a_map_leaves_parts_out)
{
    static struct scan_item got[LINES], want[LINES];
    uint64_t words[SKIP_WORDS * 4];
    struct skip_map m = {.block = CELL * 2, .wanted = words};
    size_t count, wanted;

    for (int round = 0; round < 100; round++) {
        make(round % 2 ? LINES : 3);
        m.count = (size_t)(size / m.block);
        if (!CHECK(m.count <= sizeof words * 8))
            return;
        for (size_t i = 0; i < SKIP_WORDS * 4; i++)
            words[i] =
                (uint64_t)draw(1 << 16) << 40 ^ (uint64_t)draw(1 << 16) << 20 ^ draw(1 << 16);
        wanted = 0;
        for (size_t i = 0; i < LINES; i++) {
            size_t block = lines[i].at > 0 ? (size_t)((lines[i].at - 1) / m.block) : 0;

            if (block >= m.count || words[block / 64] >> block % 64 & 1)
                want[wanted++] = lines[i];
        }
        qsort(want, wanted, sizeof *want, newest_first);
        (void)run_all(CELL * 8, &times, &m, got, &count);
        CHECK_INT(count, wanted);
        CHECK(is_order(got, want, wanted));
    }
}
