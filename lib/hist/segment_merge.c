/*
 * By the numbers of hist/segment_walk, the first of several sessions of one id has the newest line:
 * without the others, that is the order of the records to be written.
 */
#include "hist/segment_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/mem.h"
#include "hist/segment_walk.h"

/* Records, or places of lines, that are read at once. */
#define BATCH ((size_t)128)
#define LINES ((size_t)2048)
#define NONE UINT32_MAX
#define BITS ((size_t)64)

/* One session in two runs, and in none between them. */
struct link {
    uint32_t newer, older;
};

/* Places of lines. */
struct window {
    const struct segment_run *run;
    uint64_t at, n;
};

struct merge {
    struct segment_walk walk;
    struct link *links; /* by their newer ones, when all are there */
    size_t link_count, link_cap;
    uint64_t *first; /* a bit for each: no newer run has that session */
    uint32_t *ranks; /* how many of them there are before each word */
    struct segment_form *form;

    /* While records are written: */
    struct buf names, texts, old_texts;
    uint32_t *chain; /* of find_older */
    size_t chain_cap;
    struct window window; /* what of which run's is in `lines` */
    uint64_t lines[LINES];
};

static void set_broken(struct merge *m)
{
    atomic_store(&m->walk.broken, true);
}

static bool is_broken(struct merge *m)
{
    return atomic_load(&m->walk.broken);
}

/* ---- numbers ---- */

static bool is_first(const struct merge *m, uint32_t number)
{
    return m->first[number / BITS] >> number % BITS & 1;
}

/* The number of its record in what is written. */
static uint32_t record_of(const struct merge *m, uint32_t number)
{
    uint64_t before = m->first[number / BITS] & ~(~UINT64_C(0) << number % BITS);

    return m->ranks[number / BITS] + (uint32_t)__builtin_popcountll(before);
}

static void rank(struct merge *m)
{
    uint32_t rank = 0;

    for (size_t i = 0; i * BITS < m->walk.count; i++) {
        m->ranks[i] = rank;
        rank += (uint32_t)__builtin_popcountll(m->first[i]);
    }
}

/* ---- sessions of several runs ---- */

static void add_link(struct merge *m, uint32_t newer, uint32_t older)
{
    m->links = mem_grow(m->links, &m->link_cap, m->link_count + 1, sizeof(*m->links));
    m->links[m->link_count++] = (struct link){newer, older};
}

static int by_newer(const void *a, const void *b)
{
    const struct link *x = a, *y = b;

    return (x->newer > y->newer) - (x->newer < y->newer);
}

static uint32_t older_of(const struct merge *m, uint32_t number)
{
    const struct link key = {.newer = number};
    const struct link *l =
        m->link_count ? bsearch(&key, m->links, m->link_count, sizeof(key), by_newer) : NULL;

    return l ? l->older : NONE;
}

/* Sessions that are in several runs stand beside each other in an order. */
static void link_sessions(struct merge *m)
{
    struct segment_steps *steps = segment_walk_steps(&m->walk, SEGMENT_BEGINNING);
    struct buf last = BUF_INIT(SIZE_MAX);
    uint32_t number, before = NONE;
    struct str id;

    while (segment_step(steps, &number, &id)) {
        if (before != NONE && str_eq(buf_str(&last), id)) {
            add_link(m, before, number);
        } else {
            m->first[number / BITS] |= UINT64_C(1) << number % BITS;
            buf_clear(&last);
            buf_add_str(&last, id);
        }
        before = number;
    }
    buf_release(&last);
    segment_steps_free(steps);
    if (m->link_count)
        qsort(m->links, m->link_count, sizeof(*m->links), by_newer);
}

static void write_order(void *ctx, size_t side)
{
    struct merge *m = ctx;
    struct segment_steps *steps = segment_walk_steps(&m->walk, (enum segment_side)side);
    uint32_t number;
    struct str id;

    while (segment_step(steps, &number, &id)) {
        if (is_first(m, number))
            segment_form_ordered(m->form, (enum segment_side)side, record_of(m, number));
    }
    segment_steps_free(steps);
}

/* ---- records ---- */

/* The four texts that lie one behind the other. */
static struct segment_texts texts_of(const struct segment_session *s, const char *at)
{
    const char *created = at + s->role_len + 1, *last = created + s->created_len + 1;

    return (struct segment_texts){.role = {at, (size_t)s->role_len},
                                  .created = {created, (size_t)s->created_len},
                                  .last = {last, (size_t)s->last_len},
                                  .preview = {last + s->last_len + 1, (size_t)s->preview_len}};
}

/* What is asked for follows what was asked for before, mostly. */
static bool read_window(struct merge *m, const struct segment_run *r, uint64_t at)
{
    const struct segment_session all = {0};
    struct window *w = &m->window;
    uint64_t left = at < r->segment->lines ? r->segment->lines - at : 0;

    if (w->run == r && at >= w->at && at - w->at < w->n)
        return true;
    *w = (struct window){.run = r, .at = at, .n = left < LINES ? left : LINES};
    return w->n > 0 && segment_lines(r->segment, &all, at, (size_t)w->n, m->lines) == 0;
}

static void write_lines(struct merge *m, const struct segment_run *r,
                        const struct segment_session *of)
{
    for (uint64_t i = 0, n; i < of->count; i += n) {
        uint64_t at = of->first + i;

        if (!read_window(m, r, at)) {
            set_broken(m);
            return;
        }
        n = m->window.at + m->window.n - at;
        if (n > of->count - i)
            n = of->count - i;
        segment_form_lines(m->form, m->lines + (at - m->window.at), (size_t)n);
    }
}

static bool read_record(const struct merge *m, uint32_t number, struct segment_session *s)
{
    const struct segment_run *r = segment_walk_run(&m->walk, number);

    return segment_sessions(r->segment, number - r->base, 1, s) == 0;
}

/* The sessions of one id in older runs, the newest one first: how many. */
static size_t find_older(struct merge *m, uint32_t number)
{
    size_t n = 0;

    while ((number = older_of(m, number)) != NONE) {
        m->chain = mem_grow(m->chain, &m->chain_cap, n + 1, sizeof(*m->chain));
        m->chain[n++] = number;
    }
    return n;
}

/* Writes the lines of older runs, and adds what they have to the record. What is told of a first
 * line is that of the oldest one. */
static bool write_older(struct merge *m, uint32_t number, struct segment_session *s,
                        struct segment_texts *texts)
{
    size_t count = find_older(m, number);

    for (size_t i = count; i-- > 0;) {
        const struct segment_run *r = segment_walk_run(&m->walk, m->chain[i]);
        struct segment_session old;

        if (!read_record(m, m->chain[i], &old))
            return false;
        if (i == count - 1) {
            struct str last = texts->last;

            buf_clear(&m->old_texts);
            if (segment_texts(r->segment, &old, 1, &m->old_texts) < 0)
                return false;
            *texts = texts_of(&old, m->old_texts.data);
            texts->last = last;
        }
        s->count += old.count;
        s->bytes += old.bytes;
        write_lines(m, r, &old);
    }
    return true;
}

static bool write_session(struct merge *m, const struct segment_run *r,
                          const struct segment_session *of, uint32_t number, struct str id,
                          struct segment_texts texts)
{
    struct segment_session s = *of;

    if (older_of(m, number) != NONE && !write_older(m, number, &s, &texts))
        return false;
    write_lines(m, r, of);
    segment_form_session(m->form, &s, id, &texts);
    return !is_broken(m);
}

static bool write_batch(struct merge *m, const struct segment_run *r, uint32_t from, size_t n)
{
    struct segment_session of[BATCH];

    buf_clear(&m->names);
    buf_clear(&m->texts);
    if (segment_sessions(r->segment, from, n, of) < 0 ||
        segment_ids(r->segment, of, n, &m->names) < 0 ||
        segment_texts(r->segment, of, n, &m->texts) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t number = r->base + from + (uint32_t)i;
        struct str id = {m->names.data + (of[i].id_at - of[0].id_at), (size_t)of[i].id_len};
        const char *texts = m->texts.data + (of[i].text_at - of[0].text_at);

        if (is_first(m, number) &&
            !write_session(m, r, &of[i], number, id, texts_of(&of[i], texts)))
            return false;
    }
    return true;
}

static void write_records(struct merge *m)
{
    for (size_t i = 0; i < m->walk.run_count; i++) {
        const struct segment_run *r = &m->walk.runs[i];

        for (uint32_t from = 0; from < r->count && !is_broken(m); from += BATCH) {
            if (!write_batch(m, r, from, r->count - from < BATCH ? r->count - from : BATCH))
                set_broken(m);
        }
    }
}

static void write_bad(struct merge *m)
{
    for (size_t i = m->walk.run_count; i-- > 0 && !is_broken(m);) {
        const struct segment *s = m->walk.runs[i].segment;
        uint64_t *bad = mem_zalloc((size_t)s->bad * sizeof(*bad));

        if (segment_bad(s, bad) < 0)
            set_broken(m);
        else
            segment_form_bad(m->form, bad, (size_t)s->bad);
        free(bad);
    }
}

/* ---- all of it ---- */

/* What of the ids and texts is not written, since a newer run has the session. */
static void measure_older(struct merge *m, uint32_t number, struct segment_sizes *sizes)
{
    struct segment_session newest, s = {0};
    size_t count = find_older(m, number);

    if (!read_record(m, number, &newest)) {
        set_broken(m);
        return;
    }
    sizes->texts -= segment_texts_size(&newest);
    for (size_t i = 0; i < count && !is_broken(m); i++) {
        if (!read_record(m, m->chain[i], &s))
            set_broken(m);
        sizes->sessions--;
        sizes->ids -= s.id_len + 1;
        sizes->texts -= segment_texts_size(&s);
    }
    /* By now s is the oldest one. */
    sizes->texts += segment_texts_size(&s) - s.last_len + newest.last_len;
}

static struct segment_sizes measure(struct merge *m)
{
    struct segment_sizes sizes = {.sessions = m->walk.count};

    for (size_t i = 0; i < m->walk.run_count; i++) {
        const struct segment *s = m->walk.runs[i].segment;

        sizes.lines += s->lines;
        sizes.bad += s->bad;
        sizes.ids += s->ids_size;
        sizes.texts += s->size - segment_part_at(s, SEGMENT_TEXTS);
    }
    for (size_t i = 0; i < m->link_count && !is_broken(m); i++) {
        if (is_first(m, m->links[i].newer))
            measure_older(m, m->links[i].newer, &sizes);
    }
    return sizes;
}

static bool begin(struct merge *m, const struct segment *runs, size_t count)
{
    size_t words;

    buf_init(&m->names, SIZE_MAX);
    buf_init(&m->texts, SIZE_MAX);
    buf_init(&m->old_texts, SIZE_MAX);
    if (!segment_walk_init(&m->walk, runs, count))
        return false;
    words = m->walk.count / BITS + 1;
    m->first = mem_zalloc(words * sizeof(*m->first));
    m->ranks = mem_zalloc(words * sizeof(*m->ranks));
    link_sessions(m);
    rank(m);
    return !is_broken(m);
}

static void release(struct merge *m)
{
    segment_walk_release(&m->walk);
    free(m->links);
    free(m->first);
    free(m->ranks);
    free(m->chain);
    buf_release(&m->names);
    buf_release(&m->texts);
    buf_release(&m->old_texts);
}

static void write_all(struct merge *m)
{
    crew_run(&(struct crew_job){
        .count = SEGMENT_SIDES, .threads = crew_size(), .ctx = m, .work = write_order});
    write_records(m);
    write_bad(m);
}

uint64_t segment_merge(const struct segment *runs, size_t count, uint64_t mark,
                       segment_write *write, void *ctx)
{
    struct merge *m = mem_zalloc(sizeof(*m));
    struct segment_sizes sizes;
    uint64_t size = 0;

    if (!begin(m, runs, count))
        goto end;
    sizes = measure(m);
    if (is_broken(m))
        goto end;
    m->form = segment_form_new(&sizes, write, ctx);
    size = segment_form_size(m->form);
    write_all(m);
    if (is_broken(m)) {
        segment_form_free(m->form);
        size = 0;
    } else if (!segment_form_end(m->form, runs[0].from, runs[count - 1].to, mark)) {
        size = 0;
    }
end:
    release(m);
    free(m);
    return size;
}
