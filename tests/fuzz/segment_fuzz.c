/*
 * A segment of any bytes. Whatever they are, nothing is read beyond them, memory goes by how many
 * there are, and what is told holds: an id has the text that was asked for, a session that is found
 * has its id. Of the first byte, bit 0 has the checksum of the header made right, and bit 1 all
 * others, so that what is behind them is seen, too; the second one is how much is asked for, and
 * the third one how long the texts are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/le.h"
#include "chathist/base/mem.h"
#include "history/segment_names.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORD sizeof(uint64_t)
#define RECORD ((SEGMENT_SESSION_WORDS + 1) * WORD)

/* ---- checksums made right ---- */

/* Of `count` words, the one behind them. */
static void seal(char *at, size_t count, uint64_t before)
{
    uint64_t words[SEGMENT_ORDER_WORDS];

    le_get_all(words, at, count);
    le_put(at + count * WORD, le_sum_words(words, count, before));
}

static bool is_in(uint64_t at, uint64_t n, uint64_t size)
{
    return at <= size && n <= size - at;
}

/* The hash of the id and the sum of the texts, as far as the record names some that are there. */
static void seal_record(const struct segment *s, char *record, const char *ids, struct str texts)
{
    struct segment_session of;
    uint64_t words[SEGMENT_SESSION_WORDS], n;

    le_get_all(words, record, SEGMENT_SESSION_WORDS);
    memcpy(&of, words, sizeof(of));
    n = segment_texts_size(&of);
    if (is_in(of.id_at, of.id_len, s->ids_size))
        of.hash = segment_hash((struct str){ids + of.id_at, (size_t)of.id_len});
    if (is_in(of.text_at, n, texts.n))
        of.text_sum = le_sum((struct str){texts.p + of.text_at, (size_t)n}, 0);
    memcpy(words, &of, sizeof(of));
    for (size_t i = 0; i < SEGMENT_SESSION_WORDS; i++)
        le_put(record + i * WORD, words[i]);
    seal(record, SEGMENT_SESSION_WORDS, 0);
}

static void seal_all(const struct segment *s, char *bytes)
{
    char *records = bytes + segment_part_at(s, SEGMENT_RECORDS);
    char *buckets = bytes + segment_part_at(s, SEGMENT_BUCKETS);
    char *orders = bytes + segment_part_at(s, SEGMENT_ORDERS);
    uint64_t blocks = SEGMENT_SIDES * segment_order_blocks(s->sessions);
    char *ids = bytes + segment_part_at(s, SEGMENT_IDS);
    struct str texts = {ids + s->ids_size, (size_t)(bytes + s->size - ids) - (size_t)s->ids_size};

    for (uint64_t i = 0; i < s->sessions; i++)
        seal_record(s, records + i * RECORD, ids, texts);
    for (uint64_t i = 0; i < s->buckets; i++)
        seal(buckets + i * SEGMENT_BUCKET_WORDS * WORD, SEGMENT_BUCKET_WORDS - 1, i);
    for (uint64_t i = 0; i < blocks; i++)
        seal(orders + i * SEGMENT_ORDER_WORDS * WORD, SEGMENT_ORDER_WORDS - 1, i);
}

/* ---- what is asked ---- */

struct asked {
    struct str text;
    enum segment_side side;
    size_t told, most;
};

static void see_id(void *ctx, const struct segment_session *of, struct str id)
{
    struct asked *a = ctx;

    demand(++a->told <= a->most);
    demand(of->id_len == id.n && of->hash == segment_hash(id));
    demand(a->side == SEGMENT_BEGINNING ? str_starts(id, a->text) : str_ends(id, a->text));
}

static void ask_named(const struct segment *s, struct str text, size_t most)
{
    for (size_t side = 0; side < SEGMENT_SIDES; side++) {
        struct asked a = {.text = text, .side = (enum segment_side)side, .most = most};
        int result = segment_each_named(s, a.side, text, most, see_id, &a);

        demand(result == 0 || result == -1);
    }
}

static void ask_session(const struct segment *s, const struct segment_session *of, uint8_t much,
                        uint8_t length)
{
    struct buf id = BUF_INIT(SIZE_MAX), texts = BUF_INIT(SIZE_MAX), again = BUF_INIT(SIZE_MAX);
    struct segment_session found;
    uint64_t lines[UINT8_MAX];

    if (segment_texts(s, of, 1, &texts) == 0)
        demand(texts.len == segment_texts_size(of));
    if (segment_lines(s, of, much / 2, much, lines) == 0)
        demand(of->first + much / 2 + much <= s->lines);
    if (segment_ids(s, of, 1, &id) == 0) {
        struct str name = {id.data, id.len - 1};
        size_t n = length < name.n ? length : name.n;

        demand(name.n == of->id_len);
        if (segment_find(s, name, &found) > 0) {
            demand(segment_ids(s, &found, 1, &again) == 0);
            demand(str_eq(buf_str(&again), buf_str(&id)));
        }
        ask_named(s, (struct str){name.p, n}, much);
        ask_named(s, (struct str){name.p + name.n - n, n}, much);
    }
    buf_release(&id);
    buf_release(&texts);
    buf_release(&again);
}

static void ask(const struct segment *s, uint8_t much, uint8_t length)
{
    struct segment_session *of = mem_zalloc((size_t)s->sessions * sizeof(*of)), found;
    uint64_t *bad = mem_zalloc((size_t)s->bad * sizeof(*bad));
    struct buf ids = BUF_INIT(SIZE_MAX), texts = BUF_INIT(SIZE_MAX);

    (void)segment_bad(s, bad);
    demand(segment_find(s, STR("nothing of that name"), &found) <= 1);
    ask_named(s, STR(""), much);
    ask_named(s, STR("s"), much);
    if (segment_sessions(s, 0, (size_t)s->sessions, of) == 0) {
        (void)segment_ids(s, of, (size_t)s->sessions, &ids);
        (void)segment_texts(s, of, (size_t)s->sessions, &texts);
        demand(ids.len <= s->size && texts.len <= s->size);
    }
    for (uint64_t i = 0; i < s->sessions && i < 64; i++)
        if (segment_sessions(s, i, 1, of) == 0)
            ask_session(s, of, much, length);
    demand(segment_sessions(s, s->sessions, 1, of ? of : &found) == -1);
    buf_release(&ids);
    buf_release(&texts);
    free(bad);
    free(of);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct segment s;
    char *bytes;

    if (size < 3)
        return 0;
    /* Of their own, so that each step beyond them is seen. */
    bytes = mem_zalloc(size - 3);
    memcpy(bytes, data + 3, size - 3);
    if (data[0] & 1 && size - 3 >= SEGMENT_HEADER_WORDS * WORD) {
        le_put(bytes, SEGMENT_MAGIC);
        seal(bytes, SEGMENT_HEADER_WORDS - 1, 0);
    }
    if (segment_in_memory(&s, bytes, size - 3)) {
        demand(s.size <= size - 3);
        if (data[0] & 2)
            seal_all(&s, bytes);
        ask(&s, data[1], data[2]);
    }
    free(bytes);
    return 0;
}
