#include "history/segment_form.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/le.h"
#include "chathist/base/mem.h"

#define WORD sizeof(uint64_t)
#define ENTRIES (SEGMENT_BUCKET_WORDS - 1)
/* Sessions for each bucket, on the average. */
#define LOAD 4
/* So much is written at once. */
#define BLOCK ((size_t)8 << 10)

/* What is put one behind the other. */
struct stream {
    uint64_t begin, at; /* in the segment: where it began, and where what is held is to go */
    size_t n;
    char held[BLOCK];
};

struct order {
    struct stream to;
    uint64_t words[SEGMENT_ORDER_WORDS];
    size_t count; /* of the numbers in words */
    uint64_t block;
};

struct segment_form {
    struct segment segment;
    segment_write *write;
    void *ctx;
    atomic_bool failed;
    struct stream records, lines, bad, ids, texts;
    struct order orders[SEGMENT_SIDES];
    uint64_t *buckets; /* once there is a session */
    uint64_t sessions; /* so many were put, */
    uint64_t counted;  /* and have so many lines */
    struct buf text;   /* of a session */
};

bool segment_write_memory(void *buf, uint64_t at, const char *bytes, size_t n)
{
    struct buf *b = buf;

    if (at + n > b->len) {
        size_t more = (size_t)at + n - b->len;
        char *to = buf_room(b, more);

        if (!to)
            return false;
        memset(to, 0, more);
        buf_grew(b, more);
    }
    memcpy(b->data + at, bytes, n);
    return true;
}

/* ---- streams ---- */

static void write_out(struct segment_form *f, uint64_t at, const char *bytes, size_t n)
{
    if (n > 0 && !atomic_load(&f->failed) && !f->write(f->ctx, at, bytes, n))
        atomic_store(&f->failed, true);
}

static void begin_stream(struct stream *s, const struct segment_form *f, enum segment_part part)
{
    s->begin = s->at = segment_part_at(&f->segment, part);
}

static void empty(struct segment_form *f, struct stream *s)
{
    write_out(f, s->at, s->held, s->n);
    s->at += s->n;
    s->n = 0;
}

static void put(struct segment_form *f, struct stream *s, struct str bytes)
{
    while (bytes.n > 0) {
        size_t n = bytes.n < BLOCK - s->n ? bytes.n : BLOCK - s->n;

        memcpy(s->held + s->n, bytes.p, n);
        s->n += n;
        bytes = (struct str){bytes.p + n, bytes.n - n};
        if (s->n == BLOCK)
            empty(f, s);
    }
}

/* Of what consists of words: there is room for all of one, or for none. */
static void put_words(struct segment_form *f, struct stream *s, const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        le_put(s->held + s->n, words[i]);
        s->n += WORD;
        if (s->n == BLOCK)
            empty(f, s);
    }
}

/* How much was put by now. */
static uint64_t length(const struct stream *s)
{
    return s->at + s->n - s->begin;
}

/* ---- parts ---- */

struct segment_form *segment_form_new(const struct segment_sizes *sizes, segment_write *write,
                                      void *ctx)
{
    struct segment_form *f = mem_zalloc(sizeof(*f));

    f->segment = (struct segment){.sessions = sizes->sessions,
                                  .lines = sizes->lines,
                                  .bad = sizes->bad,
                                  .buckets = sizes->sessions / LOAD + 1,
                                  .ids_size = sizes->ids};
    f->segment.size = segment_part_at(&f->segment, SEGMENT_TEXTS) + sizes->texts;
    f->segment.bad_sum = le_words_begin(sizes->bad, sizes->bad);
    f->write = write;
    f->ctx = ctx;
    begin_stream(&f->records, f, SEGMENT_RECORDS);
    begin_stream(&f->lines, f, SEGMENT_LINES);
    begin_stream(&f->bad, f, SEGMENT_BAD);
    begin_stream(&f->ids, f, SEGMENT_IDS);
    begin_stream(&f->texts, f, SEGMENT_TEXTS);
    for (size_t side = 0; side < SEGMENT_SIDES; side++) {
        struct order *o = &f->orders[side];

        o->block = side * segment_order_blocks(sizes->sessions);
        begin_stream(&o->to, f, SEGMENT_ORDERS);
        o->to.at += o->block * SEGMENT_ORDER_WORDS * WORD;
    }
    buf_init(&f->text, SIZE_MAX);
    return f;
}

uint64_t segment_form_size(const struct segment_form *f)
{
    return f->segment.size;
}

static void put_bucket(struct segment_form *f, uint64_t hash)
{
    uint64_t b = hash % f->segment.buckets;
    uint64_t *entry;

    if (!f->buckets)
        f->buckets = mem_zalloc((size_t)f->segment.buckets * SEGMENT_BUCKET_WORDS * WORD);
    while (f->buckets[b * SEGMENT_BUCKET_WORDS + ENTRIES - 1])
        b = (b + 1) % f->segment.buckets;
    entry = &f->buckets[b * SEGMENT_BUCKET_WORDS];
    while (*entry)
        entry++;
    *entry = (hash & ~(uint64_t)UINT32_MAX) | (f->sessions + 1);
}

static void add_with_nul(struct buf *b, struct str s)
{
    buf_add_str(b, s);
    buf_add_byte(b, '\0');
}

void segment_form_session(struct segment_form *f, const struct segment_session *of, struct str id,
                          const struct segment_texts *texts)
{
    struct segment_session s = {.hash = of->hash,
                                .last_line = of->last_line,
                                .bytes = of->bytes,
                                .count = of->count,
                                .first = f->counted,
                                .id_at = length(&f->ids),
                                .id_len = id.n,
                                .text_at = length(&f->texts),
                                .role_len = texts->role.n,
                                .created_len = texts->created.n,
                                .last_len = texts->last.n,
                                .preview_len = texts->preview.n};
    uint64_t words[SEGMENT_SESSION_WORDS + 1];

    buf_clear(&f->text);
    add_with_nul(&f->text, texts->role);
    add_with_nul(&f->text, texts->created);
    add_with_nul(&f->text, texts->last);
    add_with_nul(&f->text, texts->preview);
    s.text_sum = le_sum(buf_str(&f->text), 0);
    memcpy(words, &s, sizeof(s));
    words[SEGMENT_SESSION_WORDS] = le_sum_words(words, SEGMENT_SESSION_WORDS, 0);
    put_words(f, &f->records, words, SEGMENT_SESSION_WORDS + 1);
    put(f, &f->texts, buf_str(&f->text));
    put(f, &f->ids, id);
    put(f, &f->ids, (struct str){"", 1});
    put_bucket(f, s.hash);
    f->counted += s.count;
    f->sessions++;
}

void segment_form_lines(struct segment_form *f, const uint64_t *lines, size_t n)
{
    put_words(f, &f->lines, lines, n);
}

void segment_form_bad(struct segment_form *f, const uint64_t *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f->segment.bad_sum = le_words_add(f->segment.bad_sum, lines[i]);
    put_words(f, &f->bad, lines, n);
}

static void end_block(struct segment_form *f, struct order *o)
{
    o->words[SEGMENT_ORDER_WORDS - 1] = le_sum_words(o->words, SEGMENT_ORDER_WORDS - 1, o->block);
    put_words(f, &o->to, o->words, SEGMENT_ORDER_WORDS);
    memset(o->words, 0, sizeof(o->words));
    o->count = 0;
    o->block++;
}

void segment_form_ordered(struct segment_form *f, enum segment_side side, uint32_t number)
{
    struct order *o = &f->orders[side];

    o->words[o->count / 2] |= (uint64_t)number << o->count % 2 * 32;
    o->count++;
    if (o->count == SEGMENT_ORDERED)
        end_block(f, o);
}

/* ---- the end ---- */

static void put_buckets(struct segment_form *f)
{
    struct stream to = {0};

    begin_stream(&to, f, SEGMENT_BUCKETS);
    for (uint64_t b = 0; b < f->segment.buckets; b++) {
        uint64_t words[SEGMENT_BUCKET_WORDS] = {0};

        if (f->buckets)
            memcpy(words, &f->buckets[b * SEGMENT_BUCKET_WORDS], ENTRIES * WORD);
        words[ENTRIES] = le_sum_words(words, ENTRIES, b);
        put_words(f, &to, words, SEGMENT_BUCKET_WORDS);
    }
    empty(f, &to);
}

static void put_header(struct segment_form *f, off_t from, off_t to, uint64_t mark)
{
    const struct segment *s = &f->segment;
    uint64_t words[SEGMENT_HEADER_WORDS] = {SEGMENT_MAGIC,
                                            (uint64_t)from,
                                            (uint64_t)to,
                                            s->sessions,
                                            s->lines,
                                            s->bad,
                                            s->buckets,
                                            s->ids_size,
                                            s->size - segment_part_at(s, SEGMENT_TEXTS),
                                            le_words_end(s->bad_sum),
                                            mark};
    struct stream header = {0};

    words[SEGMENT_HEADER_WORDS - 1] = le_sum_words(words, SEGMENT_HEADER_WORDS - 1, 0);
    put_words(f, &header, words, SEGMENT_HEADER_WORDS);
    empty(f, &header);
}

void segment_form_free(struct segment_form *f)
{
    free(f->buckets);
    buf_release(&f->text);
    free(f);
}

/* The header is written last: it makes it a segment. */
bool segment_form_end(struct segment_form *f, off_t from, off_t to, uint64_t mark)
{
    struct stream *const streams[] = {&f->records, &f->lines, &f->bad, &f->ids, &f->texts};
    bool written;

    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
        empty(f, streams[i]);
    for (size_t side = 0; side < SEGMENT_SIDES; side++) {
        /* Of each order the last block is one that has room. */
        end_block(f, &f->orders[side]);
        empty(f, &f->orders[side].to);
    }
    put_buckets(f);
    put_header(f, from, to, mark);
    written = !atomic_load(&f->failed);
    segment_form_free(f);
    return written;
}
