#include "history/segment_names.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/mem.h"

int segment_compare(struct str id, struct str text, enum segment_side side)
{
    size_t n = id.n < text.n ? id.n : text.n;
    int order = 0;

    if (side == SEGMENT_BEGINNING && n > 0)
        order = memcmp(id.p, text.p, n);
    for (size_t i = 1; side == SEGMENT_END && i <= n && order == 0; i++)
        order = (unsigned char)id.p[id.n - i] - (unsigned char)text.p[text.n - i];
    return order != 0 ? order : -(id.n < text.n);
}

int segment_compare_ids(struct str a, struct str b, enum segment_side side)
{
    int order = segment_compare(a, b, side);

    return order != 0 ? order : a.n > b.n;
}

/* What is asked for, and whom it is told. */
struct asked {
    const struct segment *segment;
    enum segment_side side;
    struct str text;
    segment_tell *tell;
    void *ctx;
    /* The block of the order that was read last; UINT64_MAX: none. */
    uint64_t block;
    uint64_t words[SEGMENT_ORDER_WORDS];
    struct buf ids;
};

/* ---- places in the order ---- */

static int read_block(struct asked *a, uint64_t block)
{
    if (a->block == block)
        return 0;
    a->block = UINT64_MAX;
    if (segment_order(a->segment, a->side, block, 1, a->words) < 0)
        return -1;
    a->block = block;
    return 0;
}

/* A number of a block. */
static uint32_t number_at(const uint64_t *block, size_t i)
{
    return (uint32_t)(block[i / 2] >> i % 2 * 32);
}

/* Compares the id at a place of the order. */
static int compare_at(struct asked *a, uint64_t place, int *order)
{
    struct segment_session of;

    buf_clear(&a->ids);
    if (read_block(a, place / SEGMENT_ORDERED) < 0 ||
        segment_sessions(a->segment, number_at(a->words, place % SEGMENT_ORDERED), 1, &of) < 0 ||
        segment_ids(a->segment, &of, 1, &a->ids) < 0)
        return -1;
    *order = segment_compare((struct str){a->ids.data, a->ids.len - 1}, a->text, a->side);
    return 0;
}

/* Do all ids have the text? -1, 0, 1. */
static int all_have_it(struct asked *a)
{
    uint64_t count = a->segment->sessions;
    int order;

    if (count == 0 || compare_at(a, 0, &order) < 0)
        return count == 0 ? 0 : -1;
    if (order == 0 && compare_at(a, count - 1, &order) < 0)
        return -1;
    return order == 0;
}

/* The places from *first up to *end have the text. On the way to the first one it is seen where
 * ids are behind them, so that little is left to be searched for the end. */
static int find_places(struct asked *a, uint64_t *first, uint64_t *end)
{
    uint64_t low = 0, high = a->segment->sessions;
    int order;

    *end = high;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (compare_at(a, middle, &order) < 0)
            return -1;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        if (order > 0)
            *end = middle;
    }
    *first = low;
    for (high = *end; low < high; *end = low) {
        uint64_t middle = low + (high - low) / 2;

        if (compare_at(a, middle, &order) < 0)
            return -1;
        if (order > 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

/* ---- the newest ones ---- */

/* So many blocks are read at once. */
#define AT_ONCE ((size_t)16)

/* The lowest of the numbers that were seen, `most` at the most: a heap, the highest one first. */
struct lowest {
    uint32_t *at;
    size_t count, most;
};

static void swap(struct lowest *l, size_t i, size_t k)
{
    uint32_t number = l->at[i];

    l->at[i] = l->at[k];
    l->at[k] = number;
}

static void add_lowest(struct lowest *l, uint32_t number)
{
    size_t i = l->count++;

    l->at[i] = number;
    for (; i > 0 && l->at[(i - 1) / 2] < l->at[i]; i = (i - 1) / 2)
        swap(l, i, (i - 1) / 2);
}

/* Puts it in the place of the highest one. */
static void replace_highest(struct lowest *l, uint32_t number)
{
    size_t i = 0, child;

    l->at[0] = number;
    while ((child = 2 * i + 1) < l->count) {
        child += child + 1 < l->count && l->at[child] < l->at[child + 1];
        if (l->at[child] <= l->at[i])
            break;
        swap(l, i, child);
        i = child;
    }
}

static void see_block(struct lowest *l, const uint64_t *block, size_t from, size_t to)
{
    for (size_t i = to; i-- > from;) {
        uint32_t number = number_at(block, i);

        if (l->count < l->most)
            add_lowest(l, number);
        else if (number < l->at[0])
            replace_highest(l, number);
    }
}

/* Sees the numbers at the places from `first` on and before `end`, the last one first: where ids
 * begin with a time, that is the lowest one. */
static int see_places(const struct asked *a, uint64_t first, uint64_t end, struct lowest *l)
{
    uint64_t words[AT_ONCE * SEGMENT_ORDER_WORDS];

    while (first < end) {
        uint64_t last = (end - 1) / SEGMENT_ORDERED, block = first / SEGMENT_ORDERED;

        block = last - block < AT_ONCE ? block : last - AT_ONCE + 1;
        if (segment_order(a->segment, a->side, block, (size_t)(last - block) + 1, words) < 0)
            return -1;
        for (; first < end && last + 1 > block; last--) {
            uint64_t begin = last * SEGMENT_ORDERED;
            uint64_t from = first > begin ? first : begin;

            see_block(l, words + (last - block) * SEGMENT_ORDER_WORDS, (size_t)(from - begin),
                      (size_t)(end - begin));
            end = from;
        }
    }
    return 0;
}

/* ---- telling ---- */

/* So many records are read at once: those that are told are often near each other. */
#define NEAR_RECORDS ((size_t)64)

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* How many numbers from the first one on are that near. */
static size_t count_near(const uint32_t *numbers, size_t count)
{
    size_t n = 1;

    while (n < count && numbers[n] - numbers[0] < NEAR_RECORDS)
        n++;
    return n;
}

/* Tells those of the numbers, which are near each other, if each has the text. */
static int tell_near(struct asked *a, const uint32_t *numbers, size_t count)
{
    struct segment_session of[NEAR_RECORDS];
    size_t all = (size_t)(numbers[count - 1] - numbers[0]) + 1;

    buf_clear(&a->ids);
    if (segment_sessions(a->segment, numbers[0], all, of) < 0 ||
        segment_ids(a->segment, of, all, &a->ids) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct segment_session *s = &of[numbers[i] - numbers[0]];
        struct str id = {a->ids.data + (s->id_at - of[0].id_at), (size_t)s->id_len};

        if (segment_compare(id, a->text, a->side) != 0)
            return -1;
        a->tell(a->ctx, s, id);
    }
    return 0;
}

static int tell_all(struct asked *a, const struct lowest *l)
{
    if (l->count > 1)
        qsort(l->at, l->count, sizeof(*l->at), by_number);
    for (size_t i = 0, n; i < l->count; i += n) {
        n = count_near(l->at + i, l->count - i);
        if (tell_near(a, l->at + i, n) < 0)
            return -1;
    }
    return 0;
}

static void make_lowest(struct lowest *l, uint64_t count, size_t most)
{
    l->most = count < most ? (size_t)count : most;
    l->at = mem_zalloc(l->most * sizeof(*l->at));
}

/* The newest of those that have the text. */
static int find_newest(struct asked *a, size_t most, struct lowest *l)
{
    uint64_t first, end;
    int all = all_have_it(a);

    if (all > 0) {
        make_lowest(l, a->segment->sessions, most);
        for (; l->count < l->most; l->count++)
            l->at[l->count] = (uint32_t)l->count;
        return 0;
    }
    if (all < 0 || find_places(a, &first, &end) < 0)
        return -1;
    if (first >= end)
        return 0;
    make_lowest(l, end - first, most);
    return see_places(a, first, end, l);
}

int segment_each_named(const struct segment *s, enum segment_side side, struct str text,
                       size_t most, segment_tell *tell, void *ctx)
{
    struct asked a = {.segment = s,
                      .side = side,
                      .text = text,
                      .tell = tell,
                      .ctx = ctx,
                      .block = UINT64_MAX,
                      .ids = BUF_INIT(SIZE_MAX)};
    struct lowest l = {0};
    int result;

    if (most == 0)
        return 0;
    result = find_newest(&a, most, &l);
    if (result == 0)
        result = tell_all(&a, &l);
    free(l.at);
    buf_release(&a.ids);
    return result;
}
