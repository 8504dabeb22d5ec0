#include "history/segment_draft.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/le.h"
#include "chathist/base/mem.h"
#include "history/segment_names.h"

#define WORD sizeof(uint64_t)

struct text {
    size_t at, n; /* in the texts */
};

struct segment_entry {
    uint64_t hash;
    uint64_t count, bytes;
    off_t last_line;
    struct text id, role, created, last, preview;
    size_t last_room;
};

void segment_draft_init(struct segment_draft *d)
{
    *d = (struct segment_draft){0};
    buf_init(&d->texts, SIZE_MAX);
    buf_init(&d->scratch, BUF_LINE);
}

void segment_draft_release(struct segment_draft *d)
{
    free(d->entries);
    free(d->lines);
    free(d->owners);
    free(d->bad);
    free(d->slots);
    buf_release(&d->texts);
    buf_release(&d->scratch);
    *d = (struct segment_draft){0};
}

static struct str text_of(const struct segment_draft *d, struct text t)
{
    return (struct str){buf_c(&d->texts) + t.at, t.n};
}

static struct text keep(struct segment_draft *d, struct str s)
{
    struct text t = {d->texts.len, s.n};

    buf_add_str(&d->texts, s);
    return t;
}

/* Most times have one length, and then it takes the place of the one before. */
static void set_last(struct segment_draft *d, struct segment_entry *s, struct str time)
{
    if (time.n > s->last_room) {
        s->last = keep(d, time);
        s->last_room = time.n;
        return;
    }
    if (time.n)
        memcpy(d->texts.data + s->last.at, time.p, time.n);
    s->last.n = time.n;
}

static uint32_t *slot_of(const struct segment_draft *d, struct str id, uint64_t hash)
{
    size_t i = (size_t)hash & (d->slots_size - 1);

    for (;; i = (i + 1) & (d->slots_size - 1)) {
        const struct segment_entry *s;

        if (!d->slots[i])
            return &d->slots[i];
        s = &d->entries[d->slots[i] - 1];
        if (s->hash == hash && str_eq(text_of(d, s->id), id))
            return &d->slots[i];
    }
}

static void grow_slots(struct segment_draft *d)
{
    d->slots_size = d->slots_size ? d->slots_size * 2 : 64;
    free(d->slots);
    d->slots = mem_zalloc(d->slots_size * sizeof(*d->slots));
    for (size_t i = 0; i < d->count; i++)
        *slot_of(d, text_of(d, d->entries[i].id), d->entries[i].hash) = (uint32_t)i + 1;
}

/* The number of a session; *fresh when there was none of that id. */
static uint32_t number_of(struct segment_draft *d, struct str id, uint64_t hash, bool *fresh)
{
    uint32_t *slot;

    if (d->count >= d->slots_size / 2)
        grow_slots(d);
    slot = slot_of(d, id, hash);
    *fresh = !*slot;
    if (*fresh) {
        d->entries = mem_grow(d->entries, &d->entries_cap, d->count + 1, sizeof(*d->entries));
        d->entries[d->count++] = (struct segment_entry){.hash = hash, .id = keep(d, id)};
        *slot = (uint32_t)d->count;
    }
    return *slot - 1;
}

static void add_line(struct segment_draft *d, off_t at, uint32_t owner)
{
    d->lines = mem_grow(d->lines, &d->lines_cap, d->lines_count + 1, sizeof(*d->lines));
    d->owners = mem_grow(d->owners, &d->owners_cap, d->lines_count + 1, sizeof(*d->owners));
    d->lines[d->lines_count] = at;
    d->owners[d->lines_count++] = owner;
}

/* Lines of one session mostly follow each other. */
static bool is_same_as_last(const struct segment_draft *d, struct str id)
{
    return d->lines_count > 0 &&
           str_eq(text_of(d, d->entries[d->owners[d->lines_count - 1]].id), id);
}

void segment_add(struct segment_draft *d, const struct message *m, off_t at, size_t bytes)
{
    struct segment_entry *s;
    bool fresh = false;
    uint32_t number;

    if (is_same_as_last(d, m->session_id))
        number = d->owners[d->lines_count - 1];
    else
        number = number_of(d, m->session_id, segment_hash(m->session_id), &fresh);
    s = &d->entries[number];
    if (fresh) {
        s->role = keep(d, m->role_text);
        s->created = keep(d, m->timestamp);
        s->preview = keep(d, message_preview(m, &d->scratch));
    }
    set_last(d, s, m->timestamp);
    s->count++;
    s->bytes += bytes;
    s->last_line = at;
    add_line(d, at, number);
}

void segment_add_bad(struct segment_draft *d, off_t at)
{
    d->bad = mem_grow(d->bad, &d->bad_cap, d->bad_count + 1, sizeof(*d->bad));
    d->bad[d->bad_count++] = (uint64_t)at;
}

void segment_join(struct segment_draft *d, const struct segment_draft *next)
{
    uint32_t *numbers = mem_zalloc(next->count * sizeof(*numbers));

    for (size_t i = 0; i < next->count; i++) {
        const struct segment_entry *from = &next->entries[i];
        bool fresh;

        numbers[i] = number_of(d, text_of(next, from->id), from->hash, &fresh);

        struct segment_entry *s = &d->entries[numbers[i]];

        if (fresh) {
            s->role = keep(d, text_of(next, from->role));
            s->created = keep(d, text_of(next, from->created));
            s->preview = keep(d, text_of(next, from->preview));
        }
        set_last(d, s, text_of(next, from->last));
        s->count += from->count;
        s->bytes += from->bytes;
        s->last_line = from->last_line;
    }
    for (size_t i = 0; i < next->lines_count; i++)
        add_line(d, next->lines[i], numbers[next->owners[i]]);
    for (size_t i = 0; i < next->bad_count; i++)
        segment_add_bad(d, (off_t)next->bad[i]);
    free(numbers);
}

size_t segment_draft_size(const struct segment_draft *d)
{
    return d->count * sizeof(*d->entries) + d->slots_size * sizeof(*d->slots) + d->texts.len +
           d->lines_count * (sizeof(*d->lines) + sizeof(*d->owners)) +
           d->bad_count * sizeof(*d->bad);
}

/* ---- its form ---- */

/* The numbers of the sessions, that with the newest line first. */
static uint32_t *by_use(const struct segment_draft *d)
{
    uint32_t *order = mem_zalloc(d->count * sizeof(*order));
    bool *seen = mem_zalloc(d->count);
    size_t n = 0;

    for (size_t i = d->lines_count; i-- > 0;) {
        if (!seen[d->owners[i]])
            order[n++] = d->owners[i];
        seen[d->owners[i]] = true;
    }
    free(seen);
    return order;
}

/* The places of lines, those of each session together: a counting sort. */
static void put_lines(const struct segment_draft *d, const uint32_t *order, struct segment_form *f)
{
    uint64_t *lines = mem_zalloc(d->lines_count * sizeof(*lines));
    size_t *next = mem_zalloc(d->count * sizeof(*next));
    size_t n = 0;

    for (size_t i = 0; i < d->count; i++) {
        next[order[i]] = n;
        n += (size_t)d->entries[order[i]].count;
    }
    for (size_t i = 0; i < d->lines_count; i++)
        lines[next[d->owners[i]]++] = (uint64_t)d->lines[i];
    segment_form_lines(f, lines, d->lines_count);
    free(next);
    free(lines);
}

static void put_sessions(const struct segment_draft *d, const uint32_t *order,
                         struct segment_form *f)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct segment_entry *e = &d->entries[order[i]];
        struct segment_session of = {.hash = e->hash,
                                     .last_line = (uint64_t)e->last_line,
                                     .bytes = e->bytes,
                                     .count = e->count};
        struct segment_texts texts = {text_of(d, e->role), text_of(d, e->created),
                                      text_of(d, e->last), text_of(d, e->preview)};

        segment_form_session(f, &of, text_of(d, e->id), &texts);
    }
}

/* Of a session, while they are put into an order: of which record it is. */
struct named {
    struct str id;
    uint64_t end; /* its last bytes, the last one uppermost */
    uint32_t number;
};

static struct named name_of(const struct segment_draft *d, uint32_t entry, uint32_t number)
{
    struct named n = {.id = text_of(d, d->entries[entry].id), .number = number};
    char last[WORD] = {0};
    size_t length = n.id.n < WORD ? n.id.n : WORD;

    if (length)
        memcpy(last + WORD - length, n.id.p + n.id.n - length, length);
    n.end = le_get(last);
    return n;
}

static int by_beginning(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    return segment_compare_ids(x->id, y->id, SEGMENT_BEGINNING);
}

/* Ids that end in what was drawn differ there. */
static int by_end(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    if (x->end != y->end)
        return x->end > y->end ? 1 : -1;
    return segment_compare_ids(x->id, y->id, SEGMENT_END);
}

static void put_orders(const struct segment_draft *d, const uint32_t *order, struct segment_form *f)
{
    static int (*const by[SEGMENT_SIDES])(const void *, const void *) = {by_beginning, by_end};
    struct named *names = mem_zalloc(d->count * sizeof(*names));

    /* The oldest first: many ids begin with a time, and then the first order is nearly there. */
    for (size_t i = d->count; i-- > 0;)
        names[d->count - 1 - i] = name_of(d, order[i], (uint32_t)i);
    for (size_t side = 0; side < SEGMENT_SIDES; side++) {
        qsort(names, d->count, sizeof(*names), by[side]);
        for (size_t i = 0; i < d->count; i++)
            segment_form_ordered(f, (enum segment_side)side, names[i].number);
    }
    free(names);
}

static struct segment_sizes sizes_of(const struct segment_draft *d)
{
    struct segment_sizes sizes = {
        .sessions = d->count, .lines = d->lines_count, .bad = d->bad_count};

    for (size_t i = 0; i < d->count; i++) {
        const struct segment_entry *e = &d->entries[i];

        sizes.ids += e->id.n + 1;
        sizes.texts += e->role.n + e->created.n + e->last.n + e->preview.n + 4;
    }
    return sizes;
}

uint64_t segment_format(const struct segment_draft *d, off_t from, off_t to, uint64_t mark,
                        segment_write *write, void *ctx)
{
    struct segment_sizes sizes = sizes_of(d);
    struct segment_form *f = segment_form_new(&sizes, write, ctx);
    uint64_t size = segment_form_size(f);
    uint32_t *order = by_use(d);

    put_sessions(d, order, f);
    put_lines(d, order, f);
    segment_form_bad(f, d->bad, d->bad_count);
    put_orders(d, order, f);
    free(order);
    return segment_form_end(f, from, to, mark) ? size : 0;
}
