/*
 * By the numbers of hist/segment_walk, the first of several sessions of one id has the newest line:
 * without the others, that is the order of the records to be written.
 */
#include "history/segment_merge.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/crew.h"
#include "chathist/base/mem.h"
#include "history/segment_walk.h"

/* Records, or places of lines, that are read at once. */
#define BATCH ((size_t)128)
#define LINES ((size_t)1024)
#define BITS ((size_t)64)

/* One session in two runs, of which the newest one is the newest that it is in. */
struct link {
    uint32_t newest, older;
};

/* Where lines of a run begin. */
struct window {
    const struct segment_run *run;
    uint64_t at, n;
    uint64_t lines[LINES];
};

struct merge {
    const struct segment_job *job;
    struct segment_walk walk;
    struct segment_sizes sizes;
    struct link *links; /* by their numbers, when all are there */
    size_t link_count, link_cap;
    uint64_t *first; /* a bit for each: no newer run has that session */
    uint32_t *ranks; /* how many of them there are before each word */
    struct segment_form *form;

    /* While records are written: */
    struct buf names, texts, old_texts;
    size_t next_link;           /* of the sessions that come */
    struct window lines, older; /* of the run whose records are written, and of older ones */
};

static void set_broken(struct merge *m)
{
    atomic_store(&m->walk.broken, true);
}

/* Or it is given up. */
static bool is_broken(struct merge *m)
{
    return atomic_load(&m->walk.broken) || crew_cancelled(m->job->cancel);
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

static int by_numbers(const void *a, const void *b)
{
    const struct link *x = a, *y = b;

    if (x->newest != y->newest)
        return x->newest < y->newest ? -1 : 1;
    return (x->older > y->older) - (x->older < y->older);
}

/* A session is in an older run, too, than in the one before: what is told of its first line is that
 * of the older one, but its last time is that of the newest. */
static void add_older(struct merge *m, uint32_t newest, const struct segment_step *before,
                      const struct segment_step *older)
{
    m->links = mem_grow(m->links, &m->link_cap, m->link_count + 1, sizeof(*m->links));
    m->links[m->link_count++] = (struct link){newest, older->number};
    m->sizes.sessions--;
    m->sizes.ids -= older->id.n + 1;
    m->sizes.texts -= before->texts - before->last + older->last;
}

/* Sessions that are in several runs stand beside each other in an order. */
static void link_sessions(struct merge *m)
{
    struct segment_steps *steps = segment_walk_steps(&m->walk, SEGMENT_BEGINNING);
    struct buf last = BUF_INIT(SIZE_MAX);
    struct segment_step step, before;
    uint32_t newest = UINT32_MAX;

    for (; !is_broken(m) && segment_steps_next(steps, &step); before = step) {
        if (newest != UINT32_MAX && str_eq(buf_str(&last), step.id)) {
            add_older(m, newest, &before, &step);
        } else {
            newest = step.number;
            m->first[newest / BITS] |= UINT64_C(1) << newest % BITS;
            buf_clear(&last);
            buf_add_str(&last, step.id);
        }
    }
    buf_release(&last);
    segment_steps_free(steps);
    if (m->link_count)
        qsort(m->links, m->link_count, sizeof(*m->links), by_numbers);
}

static void write_order(void *ctx, size_t side)
{
    struct merge *m = ctx;
    struct segment_steps *steps = segment_walk_steps(&m->walk, (enum segment_side)side);
    struct segment_step step;

    while (!is_broken(m) && segment_steps_next(steps, &step)) {
        if (is_first(m, step.number))
            segment_form_ordered(m->form, (enum segment_side)side, record_of(m, step.number));
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

/* `most` are of use, if the line at `at` is not there. */
static bool read_window(struct window *w, const struct segment_run *r, uint64_t at, uint64_t most)
{
    const struct segment_session all = {0};
    uint64_t left = at < r->segment->lines ? r->segment->lines - at : 0;

    if (w->run == r && at >= w->at && at - w->at < w->n)
        return true;
    w->run = r;
    w->at = at;
    w->n = left < most ? left : most;
    return w->n > 0 && segment_lines(r->segment, &all, at, (size_t)w->n, w->lines) == 0;
}

/* Of the run whose records are written, the lines of the next session follow. */
static void write_lines(struct merge *m, struct window *w, const struct segment_run *r,
                        const struct segment_session *of)
{
    for (uint64_t i = 0, n; i < of->count; i += n) {
        uint64_t at = of->first + i, left = of->count - i;

        if (!read_window(w, r, at, w == &m->lines || left > LINES ? LINES : left)) {
            set_broken(m);
            return;
        }
        n = w->at + w->n - at;
        if (n > left)
            n = left;
        segment_form_lines(m->form, w->lines + (at - w->at), (size_t)n);
    }
}

static bool read_record(const struct merge *m, uint32_t number, struct segment_session *s)
{
    const struct segment_run *r = segment_walk_run(&m->walk, number);

    return segment_sessions(r->segment, number - r->base, 1, s) == 0;
}

/* Where the links of a session end. Those of the sessions before it are behind us. */
static size_t links_end(const struct merge *m, uint32_t number)
{
    size_t end = m->next_link;

    while (end < m->link_count && m->links[end].newest == number)
        end++;
    return end;
}

/* Writes the lines of older runs up to a link, and adds what they have to the record. */
static bool write_older(struct merge *m, size_t end, struct segment_session *s,
                        struct segment_texts *texts)
{
    for (size_t i = end; i-- > m->next_link && !is_broken(m);) {
        uint32_t number = m->links[i].older;
        const struct segment_run *r = segment_walk_run(&m->walk, number);
        struct segment_session old;

        if (!read_record(m, number, &old))
            return false;
        if (i == end - 1) {
            struct str last = texts->last;

            buf_clear(&m->old_texts);
            if (segment_texts(r->segment, &old, 1, &m->old_texts) < 0)
                return false;
            *texts = texts_of(&old, m->old_texts.data);
            texts->last = last;
        }
        s->count += old.count;
        s->bytes += old.bytes;
        write_lines(m, &m->older, r, &old);
    }
    return true;
}

static bool write_session(struct merge *m, const struct segment_run *r,
                          const struct segment_session *of, uint32_t number, struct str id,
                          struct segment_texts texts)
{
    struct segment_session s = *of;
    size_t end = links_end(m, number);

    if (!write_older(m, end, &s, &texts))
        return false;
    m->next_link = end;
    write_lines(m, &m->lines, r, of);
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
            if (m->job->work)
                m->job->work((int)((uint64_t)(r->base + from) * 100 / m->walk.count));
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

/* Of what is in all of them; link_sessions takes off what is not written. */
static void measure(struct merge *m)
{
    m->sizes.sessions = m->walk.count;
    for (size_t i = 0; i < m->walk.run_count; i++) {
        const struct segment *s = m->walk.runs[i].segment;

        m->sizes.lines += s->lines;
        m->sizes.bad += s->bad;
        m->sizes.ids += s->ids_size;
        m->sizes.texts += s->size - segment_part_at(s, SEGMENT_TEXTS);
    }
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
    measure(m);
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
    if (m->job->work)
        m->job->work(-1);
}

uint64_t segment_merge(const struct segment *runs, size_t count, const struct segment_job *job,
                       uint64_t mark, segment_write *write, void *ctx)
{
    struct merge *m = mem_zalloc(sizeof(*m));
    uint64_t size = 0;

    m->job = job;
    if (!begin(m, runs, count))
        goto end;
    m->form = segment_form_new(&m->sizes, write, ctx);
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
