#include "hist/segment_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/le.h"
#include "base/mem.h"
#include "hist/segment_names.h"

#define WORD sizeof(uint64_t)
#define ENTRIES (SEGMENT_BUCKET_WORDS - 1)
/* Sessions for each bucket, on the average. */
#define LOAD 4

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
    d->bad[d->bad_count++] = at;
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
        segment_add_bad(d, next->bad[i]);
    free(numbers);
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

/* Where the sessions are written; each moves on. */
struct writing {
    char *records, *ids, *texts;
    const char *ids_begin, *texts_begin;
};

static char *put_with_nul(char *to, struct str s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
    return to + s.n + 1;
}

static char *put_words(char *to, const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        le_put(to + i * WORD, words[i]);
    return to + n * WORD;
}

/* The record of a session, its id and its texts. */
static void put_session(struct writing *w, const struct segment_draft *d,
                        const struct segment_entry *e, uint64_t first)
{
    struct segment_session s = {.hash = e->hash,
                                .last_line = (uint64_t)e->last_line,
                                .bytes = e->bytes,
                                .count = e->count,
                                .first = first,
                                .id_at = (uint64_t)(w->ids - w->ids_begin),
                                .id_len = e->id.n,
                                .text_at = (uint64_t)(w->texts - w->texts_begin),
                                .role_len = e->role.n,
                                .created_len = e->created.n,
                                .last_len = e->last.n,
                                .preview_len = e->preview.n};
    uint64_t words[SEGMENT_SESSION_WORDS + 1];
    const char *texts = w->texts;

    w->ids = put_with_nul(w->ids, text_of(d, e->id));
    w->texts = put_with_nul(w->texts, text_of(d, e->role));
    w->texts = put_with_nul(w->texts, text_of(d, e->created));
    w->texts = put_with_nul(w->texts, text_of(d, e->last));
    w->texts = put_with_nul(w->texts, text_of(d, e->preview));
    s.text_sum = le_sum((struct str){texts, (size_t)(w->texts - texts)}, 0);
    memcpy(words, &s, sizeof(s));
    words[SEGMENT_SESSION_WORDS] = le_sum_words(words, SEGMENT_SESSION_WORDS, 0);
    w->records = put_words(w->records, words, SEGMENT_SESSION_WORDS + 1);
}

/* The places of lines, those of each session together: a counting sort. */
static void put_lines(const struct segment_draft *d, const uint32_t *order, char *to)
{
    size_t *next = mem_zalloc(d->count * sizeof(*next));
    size_t n = 0;

    for (size_t i = 0; i < d->count; i++) {
        next[order[i]] = n;
        n += (size_t)d->entries[order[i]].count;
    }
    for (size_t i = 0; i < d->lines_count; i++)
        le_put(to + next[d->owners[i]]++ * WORD, (uint64_t)d->lines[i]);
    free(next);
}

static void put_buckets(const struct segment_draft *d, const uint32_t *order, size_t buckets,
                        char *to)
{
    uint64_t *words = mem_zalloc(buckets * SEGMENT_BUCKET_WORDS * WORD);

    for (size_t i = 0; i < d->count; i++) {
        uint64_t hash = d->entries[order[i]].hash;
        size_t b = (size_t)(hash % buckets);

        while (words[b * SEGMENT_BUCKET_WORDS + ENTRIES - 1])
            b = (b + 1) % buckets;

        uint64_t *entry = &words[b * SEGMENT_BUCKET_WORDS];

        while (*entry)
            entry++;
        *entry = (hash & ~(uint64_t)UINT32_MAX) | (i + 1);
    }
    for (size_t b = 0; b < buckets; b++)
        words[b * SEGMENT_BUCKET_WORDS + ENTRIES] =
            le_sum_words(&words[b * SEGMENT_BUCKET_WORDS], ENTRIES, b);
    put_words(to, words, buckets * SEGMENT_BUCKET_WORDS);
    free(words);
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

static int compare_named(const struct named *a, const struct named *b, enum segment_side side)
{
    int order = segment_compare(a->id, b->id, side);

    return order != 0 ? order : a->id.n > b->id.n;
}

static int by_beginning(const void *a, const void *b)
{
    return compare_named(a, b, SEGMENT_BEGINNING);
}

/* Ids that end in what was drawn differ there. */
static int by_end(const void *a, const void *b)
{
    const struct named *x = a, *y = b;

    if (x->end != y->end)
        return x->end > y->end ? 1 : -1;
    return compare_named(x, y, SEGMENT_END);
}

static void put_orders(const struct segment_draft *d, const uint32_t *order, char *to)
{
    static int (*const by[SEGMENT_SIDES])(const void *, const void *) = {by_beginning, by_end};
    struct named *names = mem_zalloc(d->count * sizeof(*names));
    size_t blocks = (size_t)segment_order_blocks(d->count);

    /* The oldest first: many ids begin with a time, and then the first order is nearly there. */
    for (size_t i = d->count; i-- > 0;)
        names[d->count - 1 - i] = name_of(d, order[i], (uint32_t)i);
    for (size_t side = 0; side < SEGMENT_SIDES; side++) {
        qsort(names, d->count, sizeof(*names), by[side]);
        for (size_t b = 0, next = 0; b < blocks; b++) {
            uint64_t words[SEGMENT_ORDER_WORDS] = {0};

            for (size_t i = 0; i < SEGMENT_ORDERED && next < d->count; i++)
                words[i / 2] |= (uint64_t)names[next++].number << i % 2 * 32;
            words[SEGMENT_ORDER_WORDS - 1] =
                le_sum_words(words, SEGMENT_ORDER_WORDS - 1, side * blocks + b);
            to = put_words(to, words, SEGMENT_ORDER_WORDS);
        }
    }
    free(names);
}

static void put_bad(const struct segment_draft *d, char *to, uint64_t *sum)
{
    uint64_t *bad = mem_zalloc(d->bad_count * sizeof(*bad));

    for (size_t i = 0; i < d->bad_count; i++)
        bad[i] = (uint64_t)d->bad[i];
    *sum = le_sum_words(bad, d->bad_count, d->bad_count);
    put_words(to, bad, d->bad_count);
    free(bad);
}

static void measure_texts(const struct segment_draft *d, uint64_t *ids, uint64_t *texts)
{
    *ids = *texts = 0;
    for (size_t i = 0; i < d->count; i++) {
        const struct segment_entry *e = &d->entries[i];

        *ids += e->id.n + 1;
        *texts += e->role.n + e->created.n + e->last.n + e->preview.n + 4;
    }
}

/* What takes the most time is put by two threads when there are so many sessions. */
#define MANY ((size_t)4096)
enum part { PART_ORDERS, PART_OTHERS, PARTS };

struct form {
    const struct segment_draft *d;
    const uint32_t *order;
    size_t buckets;
    char *lines, *bad, *hashed, *orders;
    struct writing sessions;
    uint64_t bad_sum;
};

static void put_part(void *ctx, size_t part)
{
    struct form *f = ctx;
    uint64_t first = 0;

    if (part == PART_ORDERS) {
        put_orders(f->d, f->order, f->orders);
        return;
    }
    put_lines(f->d, f->order, f->lines);
    put_bad(f->d, f->bad, &f->bad_sum);
    put_buckets(f->d, f->order, f->buckets, f->hashed);
    for (size_t i = 0; i < f->d->count; i++) {
        const struct segment_entry *e = &f->d->entries[f->order[i]];

        put_session(&f->sessions, f->d, e, first);
        first += e->count;
    }
}

void segment_format(const struct segment_draft *d, off_t from, off_t to, uint64_t mark,
                    struct buf *out)
{
    uint32_t *order = by_use(d);
    struct form f = {.d = d, .order = order, .buckets = d->count / LOAD + 1};
    size_t ordered = SEGMENT_SIDES * (size_t)segment_order_blocks(d->count) * SEGMENT_ORDER_WORDS;
    uint64_t header[SEGMENT_HEADER_WORDS] = {SEGMENT_MAGIC,  (uint64_t)from, (uint64_t)to, d->count,
                                             d->lines_count, d->bad_count,   f.buckets};
    char *begin;

    measure_texts(d, &header[7], &header[8]);

    /* Where the parts begin, in words. */
    size_t records = SEGMENT_HEADER_WORDS, lines = records + d->count * (SEGMENT_SESSION_WORDS + 1),
           bad = lines + d->lines_count, hashed = bad + d->bad_count,
           orders = hashed + f.buckets * SEGMENT_BUCKET_WORDS, words = orders + ordered,
           size = words * WORD + (size_t)(header[7] + header[8]);

    begin = buf_room(out, size);
    if (begin) {
        f.sessions.records = begin + records * WORD;
        f.sessions.ids_begin = f.sessions.ids = begin + words * WORD;
        f.sessions.texts_begin = f.sessions.texts = f.sessions.ids + header[7];
        f.lines = begin + lines * WORD;
        f.bad = begin + bad * WORD;
        f.hashed = begin + hashed * WORD;
        f.orders = begin + orders * WORD;
        crew_run(&(struct crew_job){.count = PARTS,
                                    .threads = d->count < MANY ? 1 : crew_size(),
                                    .ctx = &f,
                                    .work = put_part});
        header[9] = f.bad_sum;
        header[10] = mark;
        header[SEGMENT_HEADER_WORDS - 1] = le_sum_words(header, SEGMENT_HEADER_WORDS - 1, 0);
        put_words(begin, header, SEGMENT_HEADER_WORDS);
        buf_grew(out, size);
    }
    free(order);
}
