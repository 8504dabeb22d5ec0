#include "chathist/history/segment.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/io.h"
#include "chathist/base/le.h"
#include "chathist/base/mem.h"

#define WORD sizeof(uint64_t)
#define RECORD ((SEGMENT_SESSION_WORDS + 1) * WORD)
#define BUCKET (SEGMENT_BUCKET_WORDS * WORD)
#define ENTRIES (SEGMENT_BUCKET_WORDS - 1)
#define ORDER (SEGMENT_ORDER_WORDS * WORD)
/* So many records are read at once. */
#define RECORDS ((size_t)1024)

uint64_t segment_hash(struct str id)
{
    return le_sum(id, 0);
}

static bool get(const struct segment *s, uint64_t at, char *to, size_t n)
{
    if (at > s->size || n > s->size - at)
        return false;
    if (s->memory) {
        memcpy(to, s->memory + at, n);
        return true;
    }
    return io_pread_full(s->fd, to, n, s->at + (off_t)at) == (ssize_t)n;
}

uint64_t segment_part_at(const struct segment *s, enum segment_part part)
{
    const uint64_t sizes[] = {
        [SEGMENT_RECORDS] = s->sessions * RECORD,
        [SEGMENT_LINES] = s->lines * WORD,
        [SEGMENT_BAD] = s->bad * WORD,
        [SEGMENT_BUCKETS] = s->buckets * BUCKET,
        [SEGMENT_ORDERS] = SEGMENT_SIDES * segment_order_blocks(s->sessions) * ORDER,
        [SEGMENT_IDS] = s->ids_size,
    };
    uint64_t at = SEGMENT_HEADER_WORDS * WORD;

    for (size_t i = 0; i < part; i++)
        at += sizes[i];
    return at;
}

static bool begin(struct segment *s, uint64_t limit)
{
    char bytes[SEGMENT_HEADER_WORDS * WORD];
    uint64_t w[SEGMENT_HEADER_WORDS];

    s->size = limit;
    if (!get(s, 0, bytes, sizeof(bytes)))
        return false;
    le_get_all(w, bytes, SEGMENT_HEADER_WORDS);
    if (w[0] != SEGMENT_MAGIC ||
        w[SEGMENT_HEADER_WORDS - 1] != le_sum_words(w, SEGMENT_HEADER_WORDS - 1, 0))
        return false;
    for (size_t i = 1; i <= 8; i++) {
        if (w[i] > (i <= 2 ? (uint64_t)INT64_MAX : limit))
            return false;
    }
    s->from = (off_t)w[1];
    s->to = (off_t)w[2];
    s->sessions = w[3];
    s->lines = w[4];
    s->bad = w[5];
    s->buckets = w[6];
    s->ids_size = w[7];
    s->bad_sum = w[9];
    s->mark = w[10];
    s->size = segment_part_at(s, SEGMENT_TEXTS) + w[8];
    return s->from < s->to && s->buckets > 0 && s->size <= limit;
}

bool segment_in_memory(struct segment *s, const char *memory, uint64_t limit)
{
    *s = (struct segment){.memory = memory, .fd = -1};
    return begin(s, limit);
}

bool segment_in_file(struct segment *s, int fd, off_t at, uint64_t limit)
{
    *s = (struct segment){.fd = fd, .at = at};
    return begin(s, limit);
}

/* Can what it names be there? So that no sum of these is more than 64 bits hold. */
static bool is_sound(const struct segment *s, const struct segment_session *of)
{
    const uint64_t all[] = {of->first,       of->count,    of->id_at,
                            of->id_len,      of->text_at,  of->role_len,
                            of->created_len, of->last_len, of->preview_len};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] > s->size)
            return false;
    }
    return true;
}

int segment_sessions(const struct segment *s, uint64_t first, size_t count,
                     struct segment_session *to)
{
    char *bytes = mem_zalloc((count < RECORDS ? count : RECORDS) * RECORD);
    int result = 0;

    while (count > 0 && result == 0) {
        size_t n = count < RECORDS ? count : RECORDS;

        if (first > s->sessions || n > s->sessions - first ||
            !get(s, SEGMENT_HEADER_WORDS * WORD + first * RECORD, bytes, n * RECORD))
            result = -1;
        for (size_t i = 0; i < n && result == 0; i++) {
            uint64_t words[SEGMENT_SESSION_WORDS + 1];

            le_get_all(words, bytes + i * RECORD, SEGMENT_SESSION_WORDS + 1);
            if (words[SEGMENT_SESSION_WORDS] != le_sum_words(words, SEGMENT_SESSION_WORDS, 0))
                result = -1;
            memcpy(&to[i], words, sizeof(to[i]));
            if (!is_sound(s, &to[i]))
                result = -1;
        }
        first += n;
        to += n;
        count -= n;
    }
    free(bytes);
    return result;
}

/* Is the record of that number the id's? 1, 0, -1. */
static int is_session(const struct segment *s, uint64_t number, struct str id,
                      struct segment_session *found)
{
    struct buf name = BUF_INIT(SIZE_MAX);
    int result = segment_sessions(s, number, 1, found);

    if (result == 0 && found->id_len == id.n)
        result =
            segment_ids(s, found, 1, &name) < 0 ? -1 : str_eq((struct str){name.data, id.n}, id);
    buf_release(&name);
    return result;
}

int segment_find(const struct segment *s, struct str id, struct segment_session *found)
{
    uint64_t hash = segment_hash(id), b = hash % s->buckets;

    for (uint64_t tried = 0; tried < s->buckets; tried++, b = (b + 1) % s->buckets) {
        char bytes[BUCKET];
        uint64_t w[SEGMENT_BUCKET_WORDS];

        if (!get(s, segment_part_at(s, SEGMENT_BUCKETS) + b * BUCKET, bytes, BUCKET))
            return -1;
        le_get_all(w, bytes, SEGMENT_BUCKET_WORDS);
        if (w[ENTRIES] != le_sum_words(w, ENTRIES, b))
            return -1;
        for (size_t i = 0; i < ENTRIES; i++) {
            int is;

            if (!w[i])
                return 0;
            if (w[i] >> 32 != (hash >> 32))
                continue;
            is = is_session(s, (uint32_t)w[i] - 1, id, found);
            if (is != 0)
                return is;
        }
    }
    return 0;
}

/* The text at `at` of those of a part that were added behind `start`, of which the first one is at
 * `first`; STR_NONE when it is not among them. */
static struct str added(const struct buf *out, size_t start, uint64_t first, uint64_t at,
                        uint64_t n)
{
    uint64_t size = out->len - start;

    if (at < first || at - first > size || n > size - (at - first))
        return STR_NONE;
    return (struct str){out->data + start + (at - first), (size_t)n};
}

/* Adds the bytes from `at` up to `end` of a part. */
static int add_part(const struct segment *s, uint64_t part, uint64_t at, uint64_t end,
                    struct buf *out)
{
    char *to;

    if (end < at || end > s->size)
        return -1;
    to = buf_room(out, (size_t)(end - at));
    if (!to || !get(s, part + at, to, (size_t)(end - at)))
        return -1;
    buf_grew(out, (size_t)(end - at));
    return 0;
}

int segment_ids(const struct segment *s, const struct segment_session *of, size_t count,
                struct buf *ids)
{
    const struct segment_session *last;
    uint64_t part = segment_part_at(s, SEGMENT_IDS);
    size_t start = ids->len;

    if (count == 0)
        return 0;
    last = of + count - 1;
    if (add_part(s, part, of[0].id_at, last->id_at + last->id_len + 1, ids) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct str id = added(ids, start, of[0].id_at, of[i].id_at, of[i].id_len + 1);

        if (!id.p || id.p[--id.n] != '\0' || segment_hash(id) != of[i].hash)
            return -1;
    }
    return 0;
}

/* n words. */
static int get_words(const struct segment *s, uint64_t at, uint64_t *to, size_t n)
{
    char *bytes = mem_zalloc(n * WORD);
    int result = get(s, at, bytes, n * WORD) ? 0 : -1;

    if (result == 0)
        le_get_all(to, bytes, n);
    free(bytes);
    return result;
}

/* ---- orders ---- */

uint64_t segment_order_blocks(uint64_t sessions)
{
    return sessions / SEGMENT_ORDERED + 1;
}

int segment_order(const struct segment *s, enum segment_side side, uint64_t block, size_t count,
                  uint64_t *words)
{
    uint64_t part = segment_part_at(s, SEGMENT_ORDERS);
    uint64_t which = side * segment_order_blocks(s->sessions) + block;

    if (get_words(s, part + which * ORDER, words, count * SEGMENT_ORDER_WORDS) < 0)
        return -1;
    for (; count > 0; count--, which++, words += SEGMENT_ORDER_WORDS) {
        if (words[SEGMENT_ORDER_WORDS - 1] != le_sum_words(words, SEGMENT_ORDER_WORDS - 1, which))
            return -1;
    }
    return 0;
}

/* ---- texts, lines ---- */

uint64_t segment_texts_size(const struct segment_session *s)
{
    return s->role_len + s->created_len + s->last_len + s->preview_len + 4;
}

int segment_texts(const struct segment *s, const struct segment_session *of, size_t count,
                  struct buf *texts)
{
    const struct segment_session *last;
    uint64_t part = segment_part_at(s, SEGMENT_TEXTS);
    size_t start = texts->len;

    if (count == 0)
        return 0;
    last = of + count - 1;
    if (add_part(s, part, of[0].text_at, last->text_at + segment_texts_size(last), texts) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct str text =
            added(texts, start, of[0].text_at, of[i].text_at, segment_texts_size(&of[i]));

        if (!text.p || le_sum(text, 0) != of[i].text_sum)
            return -1;
    }
    return 0;
}

int segment_lines(const struct segment *s, const struct segment_session *of, uint64_t first,
                  size_t count, uint64_t *to)
{
    if (of->first + first + count > s->lines)
        return -1;
    return get_words(s, segment_part_at(s, SEGMENT_LINES) + (of->first + first) * WORD, to, count);
}

int segment_bad(const struct segment *s, uint64_t *to)
{
    if (get_words(s, segment_part_at(s, SEGMENT_BAD), to, (size_t)s->bad) < 0)
        return -1;
    return le_sum_words(to, (size_t)s->bad, s->bad) == s->bad_sum ? 0 : -1;
}
