#include "hist/segment_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "hist/segment_names.h"

/* Records that are read at once. */
#define BATCH ((size_t)128)

static void set_broken(struct segment_walk *w)
{
    atomic_store(&w->broken, true);
}

static bool is_broken(struct segment_walk *w)
{
    return atomic_load(&w->broken);
}

const struct segment_run *segment_walk_run(const struct segment_walk *w, uint32_t number)
{
    size_t i = 0;

    while (number - w->runs[i].base >= w->runs[i].count)
        i++;
    return &w->runs[i];
}

/* ---- ids ---- */

struct str segment_walk_id(const struct segment_walk *w, uint32_t number)
{
    return (struct str){w->ids + w->id_at[number], w->id_at[number + 1] - w->id_at[number] - 1};
}

static void read_ids(struct segment_walk *w, const struct segment_run *r, size_t *used)
{
    struct segment_session of[BATCH];
    struct buf ids = BUF_INIT(SIZE_MAX);

    for (uint32_t i = 0; i < r->count && !is_broken(w); i += BATCH) {
        size_t n = r->count - i < BATCH ? r->count - i : BATCH;

        buf_clear(&ids);
        if (segment_sessions(r->segment, i, n, of) < 0 ||
            segment_ids(r->segment, of, n, &ids) < 0 || ids.len > w->id_at[w->count] - *used) {
            set_broken(w);
            break;
        }
        memcpy(w->ids + *used, ids.data, ids.len);
        for (size_t k = 0; k < n; k++)
            w->id_at[r->base + i + k] = (uint32_t)(*used + of[k].id_at - of[0].id_at);
        *used += ids.len;
    }
    buf_release(&ids);
}

/* false: they are too many. */
static bool number_runs(struct segment_walk *w, const struct segment *segments, uint64_t *ids)
{
    uint64_t sessions = 0;

    for (size_t i = 0; i < w->run_count; i++) {
        const struct segment *s = &segments[w->run_count - 1 - i];

        if (sessions + s->sessions > UINT32_MAX || *ids + s->ids_size > UINT32_MAX)
            return false;
        w->runs[i] = (struct segment_run){s, (uint32_t)sessions, (uint32_t)s->sessions};
        sessions += s->sessions;
        *ids += s->ids_size;
    }
    w->count = (uint32_t)sessions;
    return true;
}

bool segment_walk_init(struct segment_walk *w, const struct segment *segments, size_t count)
{
    uint64_t ids = 0;

    *w = (struct segment_walk){.runs = mem_zalloc(count * sizeof(*w->runs)), .run_count = count};
    if (!number_runs(w, segments, &ids))
        return false;
    w->ids = mem_zalloc((size_t)ids);
    w->id_at = mem_zalloc((w->count + (size_t)1) * sizeof(*w->id_at));
    w->id_at[w->count] = (uint32_t)ids;
    for (size_t i = 0, used = 0; i < count; i++)
        read_ids(w, &w->runs[i], &used);
    return !is_broken(w);
}

void segment_walk_free_ids(struct segment_walk *w)
{
    free(w->ids);
    free(w->id_at);
    w->ids = NULL;
    w->id_at = NULL;
}

void segment_walk_release(struct segment_walk *w)
{
    segment_walk_free_ids(w);
    free(w->runs);
}

/* ---- an order ---- */

/* How far a run is in one of its orders. */
struct cursor {
    const struct segment_run *run;
    uint32_t place;  /* of the next number */
    uint32_t number; /* of the session there, among all */
    uint64_t words[SEGMENT_ORDER_WORDS];
};

struct segment_steps {
    struct segment_walk *w;
    enum segment_side side;
    struct cursor *cursors;
    struct cursor **heap; /* that of the lowest id first */
    size_t count;
};

/* false: the order ends there, or is broken. */
static bool next_in_run(struct segment_steps *s, struct cursor *c)
{
    uint64_t word;
    uint32_t number;

    if (c->place == c->run->count)
        return false;
    if (c->place % SEGMENT_ORDERED == 0 &&
        segment_order(c->run->segment, s->side, c->place / SEGMENT_ORDERED, 1, c->words) < 0) {
        set_broken(s->w);
        return false;
    }
    word = c->words[c->place % SEGMENT_ORDERED / 2];
    number = (uint32_t)(word >> c->place % SEGMENT_ORDERED % 2 * 32);
    c->place++;
    if (number >= c->run->count) {
        set_broken(s->w);
        return false;
    }
    c->number = c->run->base + number;
    return true;
}

/* Those of one session come in the order of their numbers. */
static bool is_before(const struct segment_steps *s, const struct cursor *a, const struct cursor *b)
{
    int order = segment_compare_ids(segment_walk_id(s->w, a->number),
                                    segment_walk_id(s->w, b->number), s->side);

    return order != 0 ? order < 0 : a->number < b->number;
}

static void sink(struct segment_steps *s, size_t i)
{
    struct cursor *c = s->heap[i];
    size_t child;

    while ((child = 2 * i + 1) < s->count) {
        child += child + 1 < s->count && is_before(s, s->heap[child + 1], s->heap[child]);
        if (!is_before(s, s->heap[child], c))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = c;
}

struct segment_steps *segment_walk_steps(struct segment_walk *w, enum segment_side side)
{
    struct segment_steps *s = mem_zalloc(sizeof(*s));

    s->w = w;
    s->side = side;
    s->cursors = mem_zalloc(w->run_count * sizeof(*s->cursors));
    s->heap = mem_zalloc(w->run_count * sizeof(struct cursor *));
    for (size_t i = 0; i < w->run_count; i++) {
        s->cursors[i].run = &w->runs[i];
        if (next_in_run(s, &s->cursors[i]))
            s->heap[s->count++] = &s->cursors[i];
    }
    for (size_t i = s->count / 2; i-- > 0;)
        sink(s, i);
    return s;
}

bool segment_step(struct segment_steps *s, uint32_t *number)
{
    if (s->count == 0 || is_broken(s->w))
        return false;
    *number = s->heap[0]->number;
    if (!next_in_run(s, s->heap[0]))
        s->heap[0] = s->heap[--s->count];
    if (s->count > 0)
        sink(s, 0);
    return true;
}

void segment_steps_free(struct segment_steps *s)
{
    free(s->cursors);
    free(s->heap);
    free(s);
}
