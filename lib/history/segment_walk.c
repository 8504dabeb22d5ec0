#include "history/segment_walk.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/io.h"
#include "chathist/base/le.h"
#include "chathist/base/mem.h"
#include "history/segment_names.h"

/* So much is written, or read of a segment, at once, and more where an id is longer. */
#define BLOCK ((size_t)1 << 10)
#define WORD sizeof(uint64_t)
/* What is stored in front of an id: so many words, and their checksum. */
#define WORDS ((size_t)3)
#define HEAD ((WORDS + 1) * WORD)
#define LENGTH_SHIFT 32

/* ---- writing ids ---- */

struct ids_out {
    segment_write *write;
    void *ctx;
    uint64_t at; /* where what is held goes */
    struct buf held;
};

static int flush(struct ids_out *o)
{
    if (!o->write(o->ctx, o->at, o->held.data, o->held.len))
        return -1;
    o->at += o->held.len;
    buf_clear(&o->held);
    return 0;
}

static int put_id(struct ids_out *o, uint64_t number, struct str id,
                  const struct segment_session *of)
{
    const uint64_t words[WORDS] = {number | (uint64_t)id.n << LENGTH_SHIFT, segment_texts_size(of),
                                   of->last_len};
    char *head = buf_room(&o->held, HEAD);

    for (size_t i = 0; i < WORDS; i++)
        le_put(head + i * WORD, words[i]);
    le_put(head + WORDS * WORD, le_sum(id, le_sum_words(words, WORDS, 0)));
    buf_grew(&o->held, HEAD);
    buf_add_str(&o->held, id);
    return o->held.len < BLOCK ? 0 : flush(o);
}

/* Those of a segment, all of which are in `ids` as segment_ids has them. */
static int put_order(struct ids_out *o, const struct segment *s, enum segment_side side,
                     const struct segment_session *of, const char *ids)
{
    uint64_t words[SEGMENT_ORDER_WORDS];

    for (uint64_t i = 0; i < s->sessions; i++) {
        uint64_t in_block = i % SEGMENT_ORDERED, number;

        if (in_block == 0 && segment_order(s, side, i / SEGMENT_ORDERED, 1, words) < 0)
            return -1;
        number = (uint32_t)(words[in_block / 2] >> in_block % 2 * 32);
        if (number >= s->sessions ||
            put_id(o, number, (struct str){ids + of[number].id_at, (size_t)of[number].id_len},
                   &of[number]) < 0)
            return -1;
    }
    return 0;
}

int segment_walk_write(const struct segment *s, segment_write *write, void *ctx, uint64_t *size)
{
    struct segment_session *of = mem_zalloc((size_t)s->sessions * sizeof(*of));
    struct ids_out o = {.write = write, .ctx = ctx, .at = s->size, .held = BUF_INIT(SIZE_MAX)};
    struct buf ids = BUF_INIT(SIZE_MAX);
    int result = -1;

    if (segment_sessions(s, 0, (size_t)s->sessions, of) == 0 &&
        segment_ids(s, of, (size_t)s->sessions, &ids) == 0) {
        result = 0;
        for (int side = 0; side < SEGMENT_SIDES && result == 0; side++)
            result = put_order(&o, s, (enum segment_side)side, of, buf_c(&ids));
    }
    if (result == 0 && o.held.len > 0)
        result = flush(&o);
    *size = o.at - s->size;
    buf_release(&o.held);
    buf_release(&ids);
    free(of);
    return result;
}

/* ---- numbers ---- */

bool segment_walk_init(struct segment_walk *w, const struct segment *segments, size_t count)
{
    uint64_t sessions = 0;

    *w = (struct segment_walk){.runs = mem_zalloc(count * sizeof(*w->runs)), .run_count = count};
    for (size_t i = 0; i < count; i++) {
        const struct segment *s = &segments[count - 1 - i];

        if (sessions + s->sessions >= UINT32_MAX)
            return false;
        w->runs[i] = (struct segment_run){s, (uint32_t)sessions, (uint32_t)s->sessions};
        sessions += s->sessions;
    }
    w->count = (uint32_t)sessions;
    return true;
}

void segment_walk_release(struct segment_walk *w)
{
    free(w->runs);
}

const struct segment_run *segment_walk_run(const struct segment_walk *w, uint32_t number)
{
    size_t at = 0, end = w->run_count;

    while (end - at > 1) {
        size_t middle = at + (end - at) / 2;

        if (number < w->runs[middle].base)
            end = middle;
        else
            at = middle;
    }
    return &w->runs[at];
}

/* ---- walking ---- */

/* How far a run is in one of its orders. */
struct cursor {
    const struct segment_run *run;
    uint32_t left;            /* so many ids are behind this one */
    struct segment_step step; /* its id is in `block` */
    off_t next;               /* what is read next of the file */
    struct buf block;
    size_t used; /* of it, before what is behind this id */
};

struct segment_steps {
    struct segment_walk *w;
    enum segment_side side;
    struct cursor *cursors;
    struct cursor **heap; /* that of the lowest id first */
    size_t count;
    bool given; /* the first one's id */
};

/* The next n bytes; NULL when they cannot be read. The id is no longer there. */
static const char *take(struct cursor *c, size_t n)
{
    const char *taken;

    if (c->block.len - c->used < n) {
        size_t more;
        ssize_t got;
        char *to;

        buf_consume(&c->block, c->used);
        c->used = 0;
        more = n - c->block.len < BLOCK ? BLOCK : n - c->block.len;
        to = buf_room(&c->block, more);
        got = io_pread_full(c->run->segment->fd, to, more, c->next);
        if (got < 0 || c->block.len + (size_t)got < n)
            return NULL;
        buf_grew(&c->block, (size_t)got);
        c->next += got;
    }
    taken = c->block.data + c->used;
    c->used += n;
    return taken;
}

static bool take_step(struct cursor *c)
{
    const char *head = take(c, HEAD);
    uint64_t words[WORDS + 1], number;
    struct str id;

    if (!head)
        return false;
    le_get_all(words, head, WORDS + 1);
    number = (uint32_t)words[0];
    id.n = (size_t)(words[0] >> LENGTH_SHIFT);
    if (number >= c->run->count || id.n > c->run->segment->ids_size)
        return false;
    id.p = take(c, id.n);
    c->step = (struct segment_step){c->run->base + (uint32_t)number, id, words[1], words[2]};
    return id.p && le_sum(id, le_sum_words(words, WORDS, 0)) == words[WORDS];
}

/* false: the order ends there, or is broken. */
static bool next_in_run(struct segment_steps *s, struct cursor *c)
{
    if (c->left == 0)
        return false;
    c->left--;
    if (take_step(c))
        return true;
    atomic_store(&s->w->broken, true);
    return false;
}

/* Those of one session come in the order of their numbers. */
static bool is_before(const struct segment_steps *s, const struct cursor *a, const struct cursor *b)
{
    int order = segment_compare_ids(a->step.id, b->step.id, s->side);

    return order != 0 ? order < 0 : a->step.number < b->step.number;
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

/* Of the two orders, which take the same, where that of a side begins. */
static off_t begin_of(const struct segment *s, enum segment_side side)
{
    uint64_t heads = s->sessions * HEAD, ids = s->ids_size - s->sessions; /* less the NULs */

    return s->at + (off_t)(s->size + (side == SEGMENT_END ? heads + ids : 0));
}

struct segment_steps *segment_walk_steps(struct segment_walk *w, enum segment_side side)
{
    struct segment_steps *s = mem_zalloc(sizeof(*s));

    s->w = w;
    s->side = side;
    s->cursors = mem_zalloc(w->run_count * sizeof(*s->cursors));
    s->heap = mem_zalloc(w->run_count * sizeof(struct cursor *));
    for (size_t i = 0; i < w->run_count; i++) {
        struct cursor *c = &s->cursors[i];

        *c = (struct cursor){.run = &w->runs[i],
                             .left = w->runs[i].count,
                             .next = begin_of(w->runs[i].segment, side),
                             .block = BUF_INIT(SIZE_MAX)};
        if (next_in_run(s, c))
            s->heap[s->count++] = c;
    }
    for (size_t i = s->count / 2; i-- > 0;)
        sink(s, i);
    return s;
}

bool segment_steps_next(struct segment_steps *s, struct segment_step *step)
{
    if (s->given && s->count > 0) {
        if (!next_in_run(s, s->heap[0]))
            s->heap[0] = s->heap[--s->count];
        if (s->count > 0)
            sink(s, 0);
    }
    s->given = true;
    if (s->count == 0 || atomic_load(&s->w->broken))
        return false;
    *step = s->heap[0]->step;
    return true;
}

void segment_steps_free(struct segment_steps *s)
{
    for (size_t i = 0; i < s->w->run_count; i++)
        buf_release(&s->cursors[i].block);
    free(s->cursors);
    free(s->heap);
    free(s);
}
