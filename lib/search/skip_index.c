#include "chathist/search/skip_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "chathist/search/searched_text.h"

/* The length of a gram. */
#define GRAM 3
/* At most this many rows of a long text are read. */
#define ROWS_MAX ((size_t)48)
/* The part of the history that one search adds to the index, and the fewest blocks. Of a history up
 * to GROWTH_ALL bytes SKIP_ALL adds everything. */
#define GROWTH 24
#define GROWTH_LEAST ((size_t)16)
#define GROWTH_ALL ((off_t)200 << 20)
/* How far after the last block that is added a line may end. */
#define OVERHANG ((off_t)1 << 20)
/* This many bytes of a text are folded at once. */
#define FOLDED ((size_t)64 << 10)
/* This many blocks are marked in one table, which fits the processor's cache. */
#define GROUP 8
#define ROWS_SIZE (SKIP_ROWS * SKIP_ROW_SIZE)
/* A file that was changed less than this long ago may change again without another time of change:
 * a hundredth of a second is the coarsest clock tick. */
#define TICK_NS INT64_C(10000000)

enum {
    WORD_MAGIC,
    WORD_STATE,
    WORD_BLOCKS_SUM,
    WORD_COUNT,
    WORD_ALWAYS,
    WORD_PLACE = WORD_ALWAYS + SKIP_WORDS,
    WORD_CHECK
};

static void set_bit(uint64_t *words, size_t i)
{
    words[i / 64] |= UINT64_C(1) << i % 64;
}

/* ---- the history ---- */

/* Returns a checksum of what the file system says about a history, or 0 if a later change might
 * not alter any of it. */
static uint64_t state_of(int history_fd)
{
    struct stat st;
    int64_t age;

    if (fstat(history_fd, &st) < 0)
        return 0;
    age = time_now() * 1000 - system_ctime(&st);
    if (age > -TICK_NS && age < TICK_NS)
        return 0;

    uint64_t words[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                        (uint64_t)system_mtime(&st), (uint64_t)system_ctime(&st)};

    return checksum_words(words, sizeof(words) / sizeof(*words), 0) | 1;
}

/* Never 0. */
static uint64_t sum_of_block(const char *bytes, size_t n)
{
    return hash64((struct str){bytes, n}, 0) | 1;
}

/* Adds the next block of a section to its checksum. */
static void add_block_sum(uint64_t *sum, uint64_t block)
{
    uint64_t words[] = {*sum, block};

    *sum = checksum_words(words, 2, 0);
}

/* ---- the file ---- */

/* Returns a descriptor of the index if it is ours, or -1. */
static int open_file(const struct history *h, int flags)
{
    const char *path = history_index_path(h) ? h->skip : NULL;
    int reason;

    return path ? history_open_index(h->dir_fd, path, flags, &reason) : -1;
}

static off_t section_at(size_t number)
{
    return (off_t)number * (off_t)SKIP_SECTION_SIZE;
}

static off_t row_at(size_t number, size_t row)
{
    return section_at(number) + (off_t)(SKIP_HEADER_SIZE + row * SKIP_ROW_SIZE);
}

static uint64_t section_place(size_t number, off_t block)
{
    uint64_t words[] = {number, (uint64_t)block};

    return checksum_words(words, 2, 0);
}

/* Reads the header of a section. Returns false and clears *c if it has none that is right. */
static bool read_section_header(int fd, size_t number, off_t block, struct skip_section *c)
{
    char bytes[SKIP_HEADER_SIZE];
    uint64_t w[SKIP_HEADER_WORDS];

    *c = (struct skip_section){0};
    if (file_pread_full(fd, bytes, sizeof(bytes), section_at(number)) != (ssize_t)sizeof(bytes))
        return false;
    le_get_all(w, bytes, SKIP_HEADER_WORDS);
    if (w[WORD_MAGIC] != SKIP_MAGIC || w[WORD_PLACE] != section_place(number, block) ||
        w[WORD_COUNT] == 0 || w[WORD_COUNT] > SKIP_SECTION_BLOCKS ||
        w[WORD_CHECK] != checksum_words(w, WORD_CHECK, 0))
        return false;
    c->state = w[WORD_STATE];
    c->sum = w[WORD_BLOCKS_SUM];
    c->count = w[WORD_COUNT];
    memcpy(c->always, &w[WORD_ALWAYS], sizeof(c->always));
    return true;
}

static bool write_header(int fd, size_t number, off_t block, const struct skip_section *c)
{
    uint64_t w[SKIP_HEADER_WORDS] = {[WORD_MAGIC] = SKIP_MAGIC,
                                     [WORD_STATE] = c->state,
                                     [WORD_BLOCKS_SUM] = c->sum,
                                     [WORD_COUNT] = c->count,
                                     [WORD_PLACE] = section_place(number, block)};
    char bytes[SKIP_HEADER_SIZE];

    memcpy(&w[WORD_ALWAYS], c->always, sizeof(c->always));
    w[WORD_CHECK] = checksum_words(w, WORD_CHECK, 0);
    for (size_t i = 0; i < SKIP_HEADER_WORDS; i++)
        le_put(bytes + i * sizeof(*w), w[i]);
    return pwrite(fd, bytes, sizeof(bytes), section_at(number)) == (ssize_t)sizeof(bytes);
}

/* The checksum of a row depends on the checksum of the blocks, so that rows and a header that were
 * not written together do not fit. */
static uint64_t row_sum(const uint64_t words[SKIP_WORDS], size_t row, const struct skip_section *c)
{
    return checksum_words(words, SKIP_WORDS, c->sum ^ row);
}

/* Returns whether the row in `bytes` belongs to the section; its bits are then in `words`. */
static bool decode_row(const char *bytes, size_t row, const struct skip_section *c,
                       uint64_t words[SKIP_WORDS + 1])
{
    le_get_all(words, bytes, SKIP_WORDS + 1);
    return words[SKIP_WORDS] == row_sum(words, row, c);
}

/* ---- grams ---- */

static size_t row_of(uint32_t gram)
{
    return (size_t)((gram & 0xffffff) * UINT32_C(0x9e3779b1) >> 17) % SKIP_ROWS;
}

void skip_mark(unsigned char marks[SKIP_ROWS], unsigned char bit, struct str text)
{
    struct buf folded = BUF_INIT(SIZE_MAX), unmarked = BUF_INIT(SIZE_MAX);
    struct str grams;
    uint32_t gram = 0;
    size_t seen = 0;

    while (text.n > 0) {
        size_t n = text.n < FOLDED ? text.n : FOLDED;

        while (utf8_inside(text, n))
            n++;
        buf_clear(&folded);
        buf_clear(&unmarked);
        utf8_add_folded(&folded, (struct str){text.p, n});
        grams = buf_str(&folded);
        if (utf8_ascii(grams) < grams.n) {
            utf8_add_unmarked(&unmarked, grams);
            grams = buf_str(&unmarked);
        }
        for (size_t i = 0; i < grams.n; i++) {
            gram = gram << 8 | (unsigned char)grams.p[i];
            if (++seen >= GRAM)
                marks[row_of(gram)] |= bit;
        }
        text = str_skip(text, n);
    }
    buf_release(&folded);
    buf_release(&unmarked);
}

struct skip_rows {
    uint16_t row[ROWS_MAX];
    size_t count;
    bool last; /* the last one of its clause */
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

void skip_query_end(struct skip_query *q)
{
    if (q->useless)
        q->count = q->begun;
    if (q->count > q->begun)
        q->texts[q->count - 1].last = true;
    q->begun = q->count;
    q->useless = false;
}

bool skip_query_helps(const struct skip_query *q)
{
    return q->begun > 0;
}

void skip_query_release(struct skip_query *q)
{
    free(q->texts);
    *q = (struct skip_query){0};
}

/* ---- which blocks a search must read ---- */

void skip_map_open(struct skip_map *m, int history_fd, off_t size, off_t block)
{
    *m = (struct skip_map){.block = block, .count = (size_t)(size / block)};
    if (m->count < SKIP_SECTION_BLOCKS || (m->state = state_of(history_fd)) == 0)
        m->count = 0;
    else
        m->sums = mem_zalloc(m->count * sizeof(*m->sums));
}

void skip_map_release(struct skip_map *m)
{
    free(m->wanted);
    free(m->sums);
    *m = (struct skip_map){0};
}

void skip_map_sum(const struct skip_map *m, off_t at, const char *bytes, size_t n)
{
    size_t block = (size_t)m->block;

    if (!m->sums || at % m->block != 0)
        return;
    for (size_t i = (size_t)(at / m->block); n >= block && i < m->count; i++) {
        m->sums[i] = sum_of_block(bytes, block);
        bytes += block;
        n -= block;
    }
}

/* Adds the blocks that have all grams of a text to `blocks`. Returns false if a row is not
 * right. */
static bool match_blocks(int fd, size_t number, const struct skip_section *c,
                         const struct skip_rows *text, uint64_t blocks[SKIP_WORDS])
{
    uint64_t all[SKIP_WORDS], any = 1, words[SKIP_WORDS + 1];
    char bytes[SKIP_ROW_SIZE];

    memset(all, 0xff, sizeof(all));
    for (size_t i = 0; i < text->count && any; i++) {
        size_t row = text->row[i];

        if (file_pread_full(fd, bytes, sizeof(bytes), row_at(number, row)) !=
                (ssize_t)sizeof(bytes) ||
            !decode_row(bytes, row, c, words))
            return false;
        any = 0;
        for (size_t k = 0; k < SKIP_WORDS; k++)
            any |= all[k] &= words[k];
    }
    for (size_t k = 0; k < SKIP_WORDS; k++)
        blocks[k] |= all[k];
    return true;
}

/* Sets the bits of the blocks of a section that must be read. A line of the last block that is
 * covered may end after it, in bytes that no checksum covers, so that block is always read. Returns
 * false if a row is not right. */
static bool mark_wanted(int fd, size_t number, const struct skip_section *c,
                        const struct skip_query *q, uint64_t wanted[SKIP_WORDS])
{
    uint64_t all[SKIP_WORDS], blocks[SKIP_WORDS] = {0};

    memset(all, 0xff, sizeof(all));
    for (size_t i = 0; i < q->begun; i++) {
        if (!match_blocks(fd, number, c, &q->texts[i], blocks))
            return false;
        if (!q->texts[i].last)
            continue;
        for (size_t k = 0; k < SKIP_WORDS; k++)
            all[k] &= blocks[k];
        memset(blocks, 0, sizeof(blocks));
    }
    for (size_t k = 0; k < SKIP_WORDS; k++)
        all[k] |= c->always[k];
    for (size_t i = c->count - 1; i < SKIP_SECTION_BLOCKS; i++)
        set_bit(all, i);
    memcpy(wanted, all, sizeof(all));
    return true;
}

void skip_map_load(struct skip_map *m, const struct history *h, const struct skip_query *q)
{
    size_t sections = m->count / SKIP_SECTION_BLOCKS + 1, covered = 0;
    int fd = m->count > 0 ? open_file(h, O_RDONLY) : -1;
    bool stale = false;

    if (fd >= 0) {
        m->wanted = mem_zalloc(sections * SKIP_WORDS * sizeof(*m->wanted));
        memset(m->wanted, 0xff, sections * SKIP_WORDS * sizeof(*m->wanted));
    }
    for (size_t i = 0; i < sections && fd >= 0; i++) {
        struct skip_section c;

        if (!read_section_header(fd, i, m->block, &c))
            continue;
        covered += c.count;
        if (c.state != m->state)
            stale = true;
        else if (!mark_wanted(fd, i, &c, q, m->wanted + i * SKIP_WORDS))
            m->broken = true;
    }
    m->complete = !stale && !m->broken && covered + GROWTH_LEAST > m->count;
    if (!stale) {
        free(m->sums);
        m->sums = NULL;
    }
    file_close(fd);
}

/* Returns whether the block must be read that ends at `end` or that `end` is in. */
static bool is_wanted_block(const struct skip_map *m, off_t end)
{
    size_t i;

    if (!m->wanted)
        return true;
    i = (size_t)((end - 1) / m->block);
    return i >= m->count || (m->wanted[i / 64] >> i % 64 & 1);
}

static off_t begin_of_block(const struct skip_map *m, off_t end)
{
    return (end - 1) / m->block * m->block;
}

off_t skip_map_end(const struct skip_map *m, off_t end, off_t least)
{
    while (end > least && !is_wanted_block(m, end))
        end = begin_of_block(m, end);
    return end > least ? end : least;
}

off_t skip_map_begin(const struct skip_map *m, off_t end, off_t least)
{
    if (!m->wanted)
        return least;
    while (end > least && is_wanted_block(m, end))
        end = begin_of_block(m, end);
    return end > least ? end : least;
}

off_t skip_map_left(const struct skip_map *m, off_t end)
{
    off_t left = 0;

    while ((end = skip_map_end(m, end, 0)) > 0) {
        off_t begin = skip_map_begin(m, end, 0);

        left += end - begin;
        end = begin;
    }
    return left;
}

/* ---- growing ---- */

struct growth {
    const struct history *history;
    const struct skip_map *map;
    struct scan scan;
    int fd;               /* of the index */
    size_t budget;        /* how many blocks may still be added */
    char *rows;           /* of the section that grows, as in the file */
    unsigned char *marks; /* of one group of its blocks */
    size_t group;
    struct message message;
    struct searched_text texts;
    struct buf block;
};

/* Takes the marks of a group of blocks from the rows, or puts them there. */
static void move_marks(struct growth *g, bool to_rows)
{
    for (size_t row = 0; row < SKIP_ROWS; row++) {
        char *byte = &g->rows[row * SKIP_ROW_SIZE + g->group];

        if (to_rows)
            *byte = (char)g->marks[row];
        else
            g->marks[row] = (unsigned char)*byte;
    }
}

/* Marks the grams of a line, in an update that covers the section up to block `to` of the history.
 * Each search must read the block of a line that is cut off, is no message, or ends in bytes that
 * no checksum covers; see mark_wanted for the last block. */
static void mark_line(struct growth *g, struct skip_section *c, const struct line *l, size_t to)
{
    size_t block = (size_t)((l->at > 0 ? l->at - 1 : 0) / g->map->block);
    off_t line_end = l->at + (off_t)l->text.n;
    enum scan_verdict verdict = l->terminated ? scan_judge(l, &g->message) : SCAN_BAD;
    size_t place = block % SKIP_SECTION_BLOCKS;
    struct str text;

    if (g->group != place / GROUP) {
        move_marks(g, true);
        g->group = place / GROUP;
        move_marks(g, false);
    }
    if (verdict == SCAN_BAD || (line_end >= (off_t)to * g->map->block && block + 1 < to))
        set_bit(c->always, place);
    if (verdict != SCAN_MESSAGE)
        return;
    searched_text_begin(&g->texts, &g->message, SEARCH_IN_DEFAULT);
    while (searched_text_next(&g->texts, &text))
        skip_mark(g->marks, (unsigned char)(1 << place % GROUP), text);
}

/* Marks the lines that begin after the first byte of block `from`, and not after `to` begins. */
static void mark_lines(struct growth *g, struct skip_section *c, size_t from, size_t to)
{
    off_t at = (off_t)from * g->map->block, end = (off_t)to * g->map->block;
    off_t limit = end + OVERHANG < g->scan.size ? end + OVERHANG : g->scan.size;
    struct scan lines;
    struct line l;
    /* The first line that is read began before. */
    bool ours = at == 0;

    scan_share(&lines, &g->scan, at, limit);
    g->group = from % SKIP_SECTION_BLOCKS / GROUP;
    move_marks(g, false);
    while (scan_offset(&lines) <= end && scan_line(&lines, &l, NULL) > 0) {
        if (ours)
            mark_line(g, c, &l, to);
        ours = true;
    }
    move_marks(g, true);
    scan_close(&lines);
}

/* Adds the checksums of the blocks to that of the section. Returns false if one cannot be read. */
static bool add_sums(struct growth *g, struct skip_section *c, size_t from, size_t to)
{
    size_t size = (size_t)g->map->block;

    for (size_t i = from; i < to; i++) {
        buf_clear(&g->block);
        if (file_pread_full(g->scan.fd, buf_room(&g->block, size), size, (off_t)(i * size)) !=
            (ssize_t)size)
            return false;
        add_block_sum(&c->sum, sum_of_block(g->block.data, size));
    }
    return true;
}

/* Reads the rows of a section. Returns false, with all of them zero, if one is not right: a power
 * cut can leave a header without its rows. */
static bool read_section_rows(struct growth *g, size_t number, const struct skip_section *c)
{
    uint64_t words[SKIP_WORDS + 1];
    bool right = c->count > 0 && file_pread_full(g->fd, g->rows, ROWS_SIZE, row_at(number, 0)) ==
                                     (ssize_t)ROWS_SIZE;

    for (size_t row = 0; row < SKIP_ROWS && right; row++)
        right = decode_row(g->rows + row * SKIP_ROW_SIZE, row, c, words);
    if (!right)
        memset(g->rows, 0, ROWS_SIZE);
    return right;
}

/* The header is written last: only with it do the rows count. */
static bool write_section(struct growth *g, size_t number, const struct skip_section *c)
{
    uint64_t words[SKIP_WORDS];

    for (size_t row = 0; row < SKIP_ROWS; row++) {
        char *bytes = g->rows + row * SKIP_ROW_SIZE;

        le_get_all(words, bytes, SKIP_WORDS);
        le_put(bytes + sizeof(words), row_sum(words, row, c));
    }
    return pwrite(g->fd, g->rows, ROWS_SIZE, row_at(number, 0)) == (ssize_t)ROWS_SIZE &&
           write_header(g->fd, number, g->map->block, c);
}

enum result { DONE, CHANGED, UNWRITABLE };

/* Adds blocks to a section, at most up to `end`. The lines of its last block are marked again:
 * their ends may have changed before the blocks after it were covered. */
static enum result grow_section(struct growth *g, size_t number, struct skip_section *c, size_t end)
{
    size_t first = number * SKIP_SECTION_BLOCKS, from = first + c->count;

    if (end > from + g->budget)
        end = from + g->budget;
    g->budget -= end - from;
    mark_lines(g, c, c->count > 0 ? from - 1 : from, end);
    if (!add_sums(g, c, from, end) || state_of(g->scan.fd) != g->map->state)
        return CHANGED;
    c->count = end - first;
    c->state = g->map->state;
    return write_section(g, number, c) ? DONE : UNWRITABLE;
}

/* Returns whether the search has read the blocks of a section, and they are what they were. */
static bool section_is_unchanged(const struct skip_map *m, size_t number,
                                 const struct skip_section *c)
{
    size_t first = number * SKIP_SECTION_BLOCKS;
    uint64_t sum = 0;

    if (!m->sums || c->count == 0 || first + c->count > m->count)
        return false;
    for (size_t i = 0; i < c->count; i++) {
        if (m->sums[first + i] == 0)
            return false;
        add_block_sum(&sum, m->sums[first + i]);
    }
    return sum == c->sum;
}

static enum result update_section(struct growth *g, size_t number)
{
    const struct skip_map *m = g->map;
    size_t first = number * SKIP_SECTION_BLOCKS, end = first + SKIP_SECTION_BLOCKS;
    struct skip_section c;

    if (end > m->count)
        end = m->count;
    read_section_header(g->fd, number, m->block, &c);
    if (c.state != m->state && section_is_unchanged(m, number, &c)) {
        c.state = m->state;
        if (!write_header(g->fd, number, m->block, &c))
            return UNWRITABLE;
    }
    if (c.state != m->state)
        c = (struct skip_section){0};

    bool few = first + c.count + GROWTH_LEAST > end && end < first + SKIP_SECTION_BLOCKS;

    if (!m->broken && (g->budget == 0 || first + c.count >= end || few))
        return DONE;
    if (!read_section_rows(g, number, &c))
        c = (struct skip_section){0};
    return g->budget > 0 && first + c.count < end ? grow_section(g, number, &c, end) : DONE;
}

static void update_file(struct growth *g)
{
    enum result result = DONE;

    g->rows = mem_zalloc(ROWS_SIZE);
    g->marks = mem_zalloc(SKIP_ROWS);
    g->message = (struct message)MESSAGE_INIT;
    searched_text_init(&g->texts);
    buf_init(&g->block, SIZE_MAX);
    for (size_t i = 0; i * SKIP_SECTION_BLOCKS < g->map->count && result == DONE; i++)
        result = update_section(g, i);
    /* A cache must not take the last of a disk, nor keep text that was erased meanwhile. */
    if (result == UNWRITABLE || !file_is_named(g->history->dir_fd, g->history->path, g->scan.fd))
        file_unlink(g->history->dir_fd, g->history->skip);
    buf_release(&g->block);
    searched_text_release(&g->texts);
    message_release(&g->message);
    free(g->marks);
    free(g->rows);
}

void skip_index_update(const struct history *h, const struct skip_map *m, enum skip_growth growth)
{
    bool all = growth == SKIP_ALL && (off_t)m->count * m->block <= GROWTH_ALL;
    size_t part = m->count / GROWTH > GROWTH_LEAST ? m->count / GROWTH : GROWTH_LEAST;
    struct growth g = {.history = h,
                       .map = m,
                       .fd = -1,
                       .budget = growth == SKIP_NOTHING ? 0
                                 : all                  ? m->count
                                                        : part};
    struct stat st;

    if (m->complete || m->count == 0 || (g.budget == 0 && !m->sums) || !history_index_path(h) ||
        scan_open(&g.scan, h->dir_fd, h->path, NULL) < 0)
        return;
    /* The history is synced first: after a power cut the index must not know lines that the disk
     * has not got, while the time of their change is there. */
    if (g.scan.fd >= 0 && fstat(g.scan.fd, &st) == 0 && st.st_uid == geteuid() &&
        state_of(g.scan.fd) == m->state && system_sync_data(g.scan.fd) == 0)
        g.fd = open_file(h, O_RDWR | O_CREAT);
    /* The lock ends when the descriptor is closed. Another program that has it writes the index. */
    if (g.fd >= 0 && flock(g.fd, LOCK_EX | LOCK_NB) == 0 && file_is_named(h->dir_fd, h->skip, g.fd))
        update_file(&g);
    file_close(g.fd);
    scan_close(&g.scan);
}
