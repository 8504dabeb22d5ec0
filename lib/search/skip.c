#include "chathist/search/skip.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/fold.h"
#include "chathist/base/io.h"
#include "chathist/base/le.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"
#include "chathist/history/index_file.h"

#define GRAM 3
/* So many rows of a long text are asked for. */
#define ROWS_MAX ((size_t)48)

enum {
    WORD_MAGIC,
    WORD_GENERATION,
    WORD_LINES,
    WORD_ALWAYS,
    WORD_PROVEN = WORD_ALWAYS + SKIP_WORDS,
    WORD_PLACE = WORD_PROVEN + SKIP_WORDS,
    WORD_SUM
};

/* ---- chunks ---- */

static off_t chunk_at(size_t number)
{
    return (off_t)number * (off_t)SKIP_CHUNK_SIZE;
}

static uint64_t place_of(size_t number, off_t block)
{
    uint64_t words[] = {number, (uint64_t)block};

    return le_sum_words(words, 2, 0);
}

bool skip_chunk_read(int fd, size_t number, off_t block, struct skip_chunk *c)
{
    char bytes[SKIP_HEADER_SIZE];
    uint64_t w[SKIP_HEADER_WORDS];

    if (io_pread_full(fd, bytes, sizeof(bytes), chunk_at(number)) != (ssize_t)sizeof(bytes))
        return false;
    le_get_all(w, bytes, SKIP_HEADER_WORDS);
    c->generation = w[WORD_GENERATION];
    c->sum = w[WORD_LINES];
    memcpy(c->always, &w[WORD_ALWAYS], sizeof(c->always));
    memcpy(c->proven, &w[WORD_PROVEN], sizeof(c->proven));
    return w[WORD_MAGIC] == SKIP_MAGIC && w[WORD_PLACE] == place_of(number, block) &&
           w[WORD_SUM] == le_sum_words(w, WORD_SUM, 0);
}

bool skip_chunk_write(int fd, size_t number, off_t block, const struct skip_chunk *c)
{
    uint64_t w[SKIP_HEADER_WORDS] = {[WORD_MAGIC] = SKIP_MAGIC,
                                     [WORD_GENERATION] = c->generation,
                                     [WORD_LINES] = c->sum,
                                     [WORD_PLACE] = place_of(number, block)};
    char bytes[SKIP_HEADER_SIZE];

    memcpy(&w[WORD_ALWAYS], c->always, sizeof(c->always));
    memcpy(&w[WORD_PROVEN], c->proven, sizeof(c->proven));
    w[WORD_SUM] = le_sum_words(w, WORD_SUM, 0);
    for (size_t i = 0; i < SKIP_HEADER_WORDS; i++)
        le_put(bytes + i * sizeof(*w), w[i]);
    return pwrite(fd, bytes, sizeof(bytes), chunk_at(number)) == (ssize_t)sizeof(bytes);
}

uint64_t skip_row_sum(const uint64_t words[SKIP_WORDS], size_t row, const struct skip_chunk *c)
{
    return le_sum_words(words, SKIP_WORDS, c->sum ^ row);
}

/* ---- grams ---- */

static size_t row_of(uint32_t gram)
{
    return (size_t)((gram & 0xffffff) * UINT32_C(0x9e3779b1) >> 17) % SKIP_ROWS;
}

struct marking {
    unsigned char *marks, bit;
    uint32_t gram;
    size_t seen; /* folded bytes */
};

static inline void mark_byte(struct marking *m, unsigned char byte)
{
    m->gram = m->gram << 8 | byte;
    if (++m->seen >= GRAM)
        m->marks[row_of(m->gram)] |= m->bit;
}

static unsigned char lower(unsigned char c)
{
    return (unsigned char)(c + ((unsigned)c - 'A' < 26 ? 0x20 : 0));
}

/* The ASCII at p, up to `end` or another character. Gives where it ends. */
static const char *mark_ascii(struct marking *m, const char *p, const char *end)
{
    struct marking here = *m;

    for (; p < end && (unsigned char)*p < 0x80; p++) {
        unsigned char c = (unsigned char)*p;

        mark_byte(&here, lower(c));
    }
    *m = here;
    return p;
}

/* The character at p, which is another one. */
static const char *mark_other(struct marking *m, const char *p, const char *end)
{
    char bytes[4];
    int32_t cp;
    size_t length = utf8_decode((struct str){p, (size_t)(end - p)}, &cp);
    size_t count = length ? utf8_encode(fold(cp), bytes) : 0;

    for (size_t i = 0; i < count; i++)
        mark_byte(m, (unsigned char)bytes[i]);
    return length ? p + length : end;
}

void skip_mark(unsigned char marks[SKIP_ROWS], unsigned char bit, struct str text)
{
    struct marking m = {.marks = marks, .bit = bit};
    const char *p = text.p, *end = p + text.n;

    while (p < end) {
        p = mark_ascii(&m, p, end);
        if (p < end)
            p = mark_other(&m, p, end);
    }
}

struct skip_rows {
    uint16_t row[ROWS_MAX];
    size_t count;
};

void skip_query_add(struct skip_query *q, struct str text)
{
    unsigned char *marks = mem_zalloc(SKIP_ROWS);
    struct skip_rows rows = {.count = 0};

    skip_mark(marks, 1, text);
    for (size_t row = 0; row < SKIP_ROWS && rows.count < ROWS_MAX; row++) {
        if (marks[row])
            rows.row[rows.count++] = (uint16_t)row;
    }
    q->useless = q->useless || rows.count == 0;
    q->texts = mem_grow(q->texts, &q->cap, q->count + 1, sizeof(*q->texts));
    q->texts[q->count++] = rows;
    free(marks);
}

void skip_query_release(struct skip_query *q)
{
    free(q->texts);
    *q = (struct skip_query){0};
}

/* ---- which blocks ---- */

struct asking {
    int fd;
    size_t number; /* of the chunk */
    struct skip_chunk chunk;
};

static bool get_row(const struct asking *a, size_t row, uint64_t words[SKIP_WORDS + 1])
{
    char bytes[SKIP_ROW_SIZE];
    off_t at = chunk_at(a->number) + (off_t)(SKIP_HEADER_SIZE + row * SKIP_ROW_SIZE);

    if (io_pread_full(a->fd, bytes, sizeof(bytes), at) != (ssize_t)sizeof(bytes))
        return false;
    le_get_all(words, bytes, SKIP_WORDS + 1);
    return words[SKIP_WORDS] == skip_row_sum(words, row, &a->chunk);
}

/* Adds the blocks that have all grams of a text. */
static bool add_blocks(const struct asking *a, const struct skip_rows *text,
                       uint64_t blocks[SKIP_WORDS])
{
    uint64_t all[SKIP_WORDS], any = 1, words[SKIP_WORDS + 1];

    memset(all, 0xff, sizeof(all));
    for (size_t i = 0; i < text->count && any; i++) {
        if (!get_row(a, text->row[i], words))
            return false;
        any = 0;
        for (size_t k = 0; k < SKIP_WORDS; k++)
            any |= all[k] &= words[k];
    }
    for (size_t k = 0; k < SKIP_WORDS; k++)
        blocks[k] |= all[k];
    return true;
}

/* The blocks of a chunk that are to be read. false: it tells nothing. */
static bool ask_chunk(struct asking *a, uint64_t generation, off_t block,
                      const struct skip_query *q, uint64_t blocks[SKIP_WORDS])
{
    if (!skip_chunk_read(a->fd, a->number, block, &a->chunk) || a->chunk.generation != generation)
        return false;
    memcpy(blocks, a->chunk.always, sizeof(a->chunk.always));
    for (size_t i = 0; i < q->count; i++) {
        if (!add_blocks(a, &q->texts[i], blocks))
            return false;
    }
    return true;
}

void skip_map_make(struct skip_map *m, int dir, const char *path, uint64_t generation, off_t block,
                   off_t size, const struct skip_query *q)
{
    struct asking a = {.fd = -1};
    size_t chunks = (size_t)(size / (block * (off_t)SKIP_BLOCKS));
    int reason;

    *m = (struct skip_map){.block = block, .missing = chunks};
    if (!generation || q->useless || (a.fd = index_file_open(dir, path, &reason)) < 0)
        return;
    m->words = mem_zalloc((chunks + 1) * SKIP_WORDS * sizeof(*m->words));
    m->proven = mem_zalloc((chunks + 1) * SKIP_WORDS * sizeof(*m->proven));
    m->count = chunks * SKIP_BLOCKS;
    for (; a.number < chunks; a.number++) {
        uint64_t *words = m->words + a.number * SKIP_WORDS;

        if (ask_chunk(&a, generation, block, q, words)) {
            m->missing--;
            memcpy(m->proven + a.number * SKIP_WORDS, a.chunk.proven, sizeof(a.chunk.proven));
        } else {
            memset(words, 0xff, SKIP_WORDS * sizeof(*words));
        }
    }
    close(a.fd);
}

void skip_map_release(struct skip_map *m)
{
    free(m->words);
    free(m->proven);
    *m = (struct skip_map){0};
}

/* Up to where the map tells something. */
static off_t covered(const struct skip_map *m)
{
    return (off_t)m->count * m->block;
}

/* Is the block to be read that ends there, or in which it is? */
static bool is_wanted(const struct skip_map *m, off_t end)
{
    size_t i = (size_t)((end - 1) / m->block);

    return m->words[i / 64] >> (i % 64) & 1;
}

static off_t begin_of_block(const struct skip_map *m, off_t end)
{
    return (end - 1) / m->block * m->block;
}

off_t skip_map_end(const struct skip_map *m, off_t end)
{
    while (end > 0 && end <= covered(m) && !is_wanted(m, end))
        end = begin_of_block(m, end);
    return end;
}

off_t skip_map_begin(const struct skip_map *m, off_t end, off_t least)
{
    if (end > covered(m))
        end = covered(m) > least ? covered(m) : least;
    while (end > least && is_wanted(m, end))
        end = begin_of_block(m, end);
    return end > least ? end : least;
}

bool skip_map_proven(const struct skip_map *m, off_t line)
{
    size_t i = m->count ? skip_block_of(line, m->block) : 0;

    return i < m->count && (m->proven[i / 64] >> i % 64 & 1);
}

off_t skip_map_left(const struct skip_map *m, off_t end)
{
    off_t left = 0;

    while ((end = skip_map_end(m, end)) > 0) {
        off_t begin = skip_map_begin(m, end, 0);

        left += end - begin;
        end = begin;
    }
    return left;
}
