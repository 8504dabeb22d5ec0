#include "history/session_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"

#define WORD sizeof(uint64_t)
#define PAYLOAD (INDEX_BLOCK - WORD)
/* The preamble consists of these 64-bit words, little-endian. */
enum {
    WORD_MAGIC,
    WORD_DEV,
    WORD_INO,
    WORD_SIZE,
    WORD_MTIME,
    WORD_CTIME,
    WORD_SAMPLES,
    WORD_SALT,
    WORD_SUM,
};
#define WORDS ((size_t)WORD_SUM + 1)
#define PREAMBLE (WORDS * WORD)
/* "HISTIDXB": the last character is the version. */
#define MAGIC UINT64_C(0x4258444954534948)
/* The checksum of the history is computed from this many samples of SAMPLE bytes, at equal
 * distances. */
#define SAMPLES ((size_t)8)
#define SAMPLE ((size_t)4096)
/* Another program may be writing the preamble while it is read. */
#define READ_TRIES 5
/* Blocks that are read or written at once. */
#define BLOCKS ((size_t)16)
#define HEADER_WORDS (sizeof(struct index_header) / WORD)

/* The file is replaced when the lines that it does not cover are this many bytes: a part of the
 * covered ones, within these bounds. */
#define TAIL_PART 8
#define TAIL_LEAST ((off_t)64 << 10)
#define TAIL_MOST ((off_t)1 << 20)

/* Bad lines are read in blocks of this size. */
#define BAD_BLOCK ((size_t)4096)
/* A larger file is not an index. */
#define INDEX_MOST ((off_t)1 << 36)

/* Texts of a session. */
#define RECORD_TEXTS 7
enum record_word {
    RECORD_COUNT,
    RECORD_TITLES,
    RECORD_BYTES,
    RECORD_LAST_LINE,
    RECORD_CREATED,
    RECORD_USED,
    RECORD_FIRST_RANGE,
    RECORD_RANGES,
    RECORD_TEXT_AT,
    RECORD_ASKED,
    RECORD_LENGTHS, /* RECORD_TEXTS words; the first one is that of the id */
    RECORD_WORDS = RECORD_LENGTHS + RECORD_TEXTS,
};

/* A block of times begins where the one before it ends. */
enum block_word { BLOCK_TO, BLOCK_EARLIEST, BLOCK_LATEST, BLOCK_BEFORE, BLOCK_WORDS };
/* In the first word of a block. */
#define ASCENDING (UINT64_C(1) << 63)

/* ---- the file ---- */

/* Opens the file for reading, and for writing if possible (history_open_index). */
static int open_index_file(int dir, const char *path, int *errnum)
{
    int fd = history_open_index(dir, path, O_RDWR, errnum);

    if (fd < 0 && (*errnum == EACCES || *errnum == EROFS || *errnum == EPERM))
        fd = history_open_index(dir, path, O_RDONLY, errnum);
    return fd;
}

/* Opens the temporary file for a new index, FILE.idx.tmp, empty and locked. A file that a killed
 * program left is reused. Returns -1 if another program makes an index, or the file cannot be
 * made. */
static int open_new(int dir, const char *name)
{
    int reason, fd = history_open_index(dir, name, O_RDWR | O_CREAT, &reason);

    /* It may have been renamed or removed before it was locked. */
    if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) < 0 || !file_is_named(dir, name, fd) ||
                    ftruncate(fd, 0) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Renames the new index over the old one if it is `whole`, otherwise removes it. Returns whether it
 * was renamed. */
static bool close_new(const struct history *h, int fd, const char *name, bool whole)
{
    /* If it was removed meanwhile, a file of that name belongs to another program. */
    bool ours = file_is_named(h->dir_fd, name, fd);
    bool put = ours && whole && file_rename(h->dir_fd, name, h->index) == 0;

    if (ours && !put)
        file_unlink(h->dir_fd, name);
    close(fd);
    return put;
}

/* ---- the preamble ---- */

/* Returns a checksum of the samples of the first `size` bytes; 0 on error. The first sample is at
 * the beginning and the last one at the end. */
static uint64_t sum_samples(int history_fd, off_t size)
{
    char bytes[SAMPLE];
    size_t n = size < (off_t)SAMPLE ? (size_t)size : SAMPLE;
    uint64_t sum = 0;

    for (size_t i = 0; i < SAMPLES; i++) {
        off_t at = (size - (off_t)n) / (off_t)(SAMPLES - 1) * (off_t)i;

        if (i == SAMPLES - 1)
            at = size - (off_t)n;
        if (file_pread_full(history_fd, bytes, n, at) != (ssize_t)n)
            return 0;
        sum = checksum((struct str){bytes, n}, sum);
    }
    return sum | 1;
}

static void set_state(uint64_t words[WORDS], const struct stat *st)
{
    words[WORD_MAGIC] = MAGIC;
    words[WORD_DEV] = (uint64_t)st->st_dev;
    words[WORD_INO] = (uint64_t)st->st_ino;
    words[WORD_SIZE] = (uint64_t)st->st_size;
    words[WORD_MTIME] = (uint64_t)system_mtime(st);
    words[WORD_CTIME] = (uint64_t)system_ctime(st);
}

static bool read_preamble(int fd, uint64_t words[WORDS])
{
    char bytes[PREAMBLE];

    for (int i = 0; i < READ_TRIES; i++) {
        if (file_pread_full(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
            return false;
        le_get_all(words, bytes, WORDS);
        if (words[WORD_SUM] == checksum_words(words, WORD_SUM, 0))
            return words[WORD_MAGIC] == MAGIC;
    }
    return false;
}

/* Writes the preamble: the state of the history, and the salt of the blocks. Returns 0 or -1. */
static int write_preamble(int fd, int history_fd, const struct stat *st, uint64_t salt)
{
    uint64_t words[WORDS] = {
        [WORD_SAMPLES] = sum_samples(history_fd, st->st_size), [WORD_SALT] = salt};
    char bytes[PREAMBLE];

    set_state(words, st);
    words[WORD_SUM] = checksum_words(words, WORD_SUM, 0);
    for (size_t i = 0; i < WORDS; i++)
        le_put(bytes + i * sizeof(*words), words[i]);
    return pwrite(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) ? 0 : -1;
}

enum index_state {
    INDEX_SAME,
    INDEX_GROWN, /* lines were appended */
    INDEX_OTHER, /* another or a changed history, or no index */
};

static enum index_state compare_states(const uint64_t words[WORDS], const struct stat *st)
{
    uint64_t now[WORDS];

    set_state(now, st);
    if (words[WORD_DEV] != now[WORD_DEV] || words[WORD_INO] != now[WORD_INO] ||
        words[WORD_SIZE] > now[WORD_SIZE])
        return INDEX_OTHER;
    if (words[WORD_SIZE] < now[WORD_SIZE])
        return INDEX_GROWN;
    return words[WORD_MTIME] == now[WORD_MTIME] && words[WORD_CTIME] == now[WORD_CTIME]
               ? INDEX_SAME
               : INDEX_OTHER;
}

/* Compares the history with the preamble. *st is the state of the history that was compared, *salt
 * is set unless the result is INDEX_OTHER. */
static enum index_state check_history(int fd, int history_fd, struct stat *st, uint64_t *salt)
{
    uint64_t words[WORDS];
    enum index_state state;

    /* The history is looked at last, so that it is never older than the preamble. */
    if (!read_preamble(fd, words) || fstat(history_fd, st) < 0)
        return INDEX_OTHER;
    state = compare_states(words, st);
    if (state == INDEX_OTHER ||
        words[WORD_SAMPLES] != sum_samples(history_fd, (off_t)words[WORD_SIZE]))
        return INDEX_OTHER;
    *salt = words[WORD_SALT];
    return state;
}

/* ---- layout ---- */

/* Computes where each part begins, and returns where the last one ends. */
static uint64_t lay_out(const struct index_header *h, uint64_t at[INDEX_PARTS])
{
    const uint64_t sizes[INDEX_PARTS] = {[INDEX_RECORDS] = h->sessions * RECORD_WORDS * WORD,
                                         [INDEX_RANGES] = h->ranges * 2 * WORD,
                                         [INDEX_BAD] = h->bad * WORD,
                                         [INDEX_TIMES] = h->blocks * BLOCK_WORDS * WORD,
                                         [INDEX_BY_START] = h->sessions * WORD,
                                         [INDEX_BY_END] = h->sessions * WORD,
                                         [INDEX_TEXTS] = h->texts};
    uint64_t end = HEADER_WORDS * WORD;

    for (size_t i = 0; i < INDEX_PARTS; i++) {
        at[i] = end;
        end += sizes[i];
    }
    return end;
}

static uint64_t block_sum(const char *block, uint64_t number, uint64_t salt)
{
    return checksum((struct str){block, PAYLOAD}, salt ^ number);
}

/* Compares two ids from their first bytes on, or with `from_end`, from their last ones back. */
static int compare_ids(struct str a, struct str b, bool from_end)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = 0;

    if (!from_end)
        return str_compare(a, b);
    for (size_t i = 1; i <= n && order == 0; i++)
        order = (unsigned char)a.p[a.n - i] - (unsigned char)b.p[b.n - i];
    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* ---- writing ---- */

struct index_writer {
    int fd;
    bool compare;          /* nothing is written: the file is compared with the blocks */
    uint64_t salt, number; /* of the first block in `bytes` */
    size_t used;           /* blocks that are full */
    size_t filled;         /* bytes of the next one */
    bool failed;
    char bytes[BLOCKS * INDEX_BLOCK];
};

static bool has_blocks(const struct index_writer *w, off_t at)
{
    char there[sizeof(w->bytes)];
    size_t n = w->used * INDEX_BLOCK;

    return file_pread_full(w->fd, there, n, at) == (ssize_t)n && memcmp(there, w->bytes, n) == 0;
}

static void write_blocks(struct index_writer *w)
{
    /* The preamble takes the place of a block. */
    off_t at = (off_t)((w->number + 1) * INDEX_BLOCK);

    if (w->compare)
        w->failed = w->failed || !has_blocks(w, at);
    else
        w->failed = w->failed || file_pwrite_all(w->fd, w->bytes, w->used * INDEX_BLOCK, at) < 0;
    w->number += w->used;
    w->used = 0;
}

static void end_block(struct index_writer *w)
{
    char *block = w->bytes + w->used * INDEX_BLOCK;

    memset(block + w->filled, 0, PAYLOAD - w->filled);
    le_put(block + PAYLOAD, block_sum(block, w->number + w->used, w->salt));
    w->filled = 0;
    if (++w->used == BLOCKS)
        write_blocks(w);
}

static void write_bytes(struct index_writer *w, const void *p, size_t n)
{
    const char *from = p;

    while (n > 0) {
        size_t part = PAYLOAD - w->filled < n ? PAYLOAD - w->filled : n;

        memcpy(w->bytes + w->used * INDEX_BLOCK + w->filled, from, part);
        w->filled += part;
        from += part;
        n -= part;
        if (w->filled == PAYLOAD)
            end_block(w);
    }
}

static void write_words(struct index_writer *w, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char bytes[WORD];

        le_put(bytes, words[i]);
        write_bytes(w, bytes, sizeof(bytes));
    }
}

static void write_text(struct index_writer *w, struct str text)
{
    write_bytes(w, text.p, text.n);
    write_bytes(w, "", 1);
}

struct texts {
    struct str at[RECORD_TEXTS];
};

static struct texts texts_of(const struct session *s)
{
    return (struct texts){
        {s->id, s->first_role, s->created_at, s->last_used, s->preview, s->title, s->title_set}};
}

static uint64_t text_size(const struct session *s)
{
    struct texts texts = texts_of(s);
    uint64_t size = RECORD_TEXTS;

    for (size_t i = 0; i < RECORD_TEXTS; i++)
        size += texts.at[i].n;
    return size;
}

struct sorted_session {
    const struct session *session;
    uint64_t number; /* of the record */
};

static int by_use(const void *a, const void *b)
{
    const struct sorted_session *x = a, *y = b;

    return session_compare(x->session, y->session);
}

static int by_start(const void *a, const void *b)
{
    const struct sorted_session *x = a, *y = b;

    return compare_ids(x->session->id, y->session->id, false);
}

static int by_end(const void *a, const void *b)
{
    const struct sorted_session *x = a, *y = b;

    return compare_ids(x->session->id, y->session->id, true);
}

static struct sorted_session *sort_sessions(const struct session_table *t)
{
    struct sorted_session *sorted = mem_zalloc(t->list.count * sizeof(*sorted));

    for (size_t i = 0; i < t->list.count; i++)
        sorted[i].session = &t->list.at[i];
    qsort(sorted, t->list.count, sizeof(*sorted), by_use);
    for (size_t i = 0; i < t->list.count; i++)
        sorted[i].number = i;
    return sorted;
}

/* `ranges` holds the number of ranges of each session of the table. */
static void write_records(struct index_writer *w, const struct session_table *t,
                          const struct sorted_session *sorted, const size_t *ranges)
{
    uint64_t range = 0, text = 0;

    for (size_t i = 0; i < t->list.count; i++) {
        const struct session *s = sorted[i].session;
        uint64_t own = ranges[s - t->list.at];
        uint64_t record[RECORD_WORDS] = {[RECORD_COUNT] = s->count,
                                         [RECORD_TITLES] = s->titles,
                                         [RECORD_BYTES] = s->bytes,
                                         [RECORD_LAST_LINE] = (uint64_t)s->last_line,
                                         [RECORD_CREATED] = (uint64_t)s->created,
                                         [RECORD_USED] = (uint64_t)s->used,
                                         [RECORD_FIRST_RANGE] = range,
                                         [RECORD_RANGES] = own,
                                         [RECORD_TEXT_AT] = text,
                                         [RECORD_ASKED] = s->asked};
        struct texts texts = texts_of(s);

        for (size_t j = 0; j < RECORD_TEXTS; j++)
            record[RECORD_LENGTHS + j] = texts.at[j].n;
        write_words(w, record, RECORD_WORDS);
        range += own;
        text += text_size(s);
    }
}

/* Writes the ranges session by session: a counting sort. */
static void write_ranges(struct index_writer *w, const struct session_table *t,
                         const struct sorted_session *sorted, const size_t *counts)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    const struct line_range **ranges = mem_zalloc(t->range_count * sizeof(*ranges));
    size_t *next = mem_zalloc(t->list.count * sizeof(*next));
    size_t at = 0;

    for (size_t i = 0; i < t->list.count; i++) {
        size_t number = (size_t)(sorted[i].session - t->list.at);

        next[number] = at;
        at += counts[number];
    }
    for (size_t i = 0; i < t->range_count; i++)
        ranges[next[t->ranges[i].owner]++] = &t->ranges[i];
    for (size_t i = 0; i < t->range_count; i++) {
        const uint64_t words[] = {(uint64_t)ranges[i]->from, (uint64_t)ranges[i]->to};

        write_words(w, words, 2);
    }
    free(next);
    free(ranges);
}

static void write_times(struct index_writer *w, const struct time_blocks *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct time_block *block = &b->at[i];
        uint64_t words[BLOCK_WORDS] = {[BLOCK_TO] = (uint64_t)block->to,
                                       [BLOCK_EARLIEST] = (uint64_t)block->earliest,
                                       [BLOCK_LATEST] = (uint64_t)block->latest,
                                       [BLOCK_BEFORE] = (uint64_t)block->before};

        if (block->ascending)
            words[BLOCK_TO] |= ASCENDING;
        write_words(w, words, BLOCK_WORDS);
    }
}

static void write_texts(struct index_writer *w, const struct sorted_session *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct texts texts = texts_of(sorted[i].session);

        for (size_t j = 0; j < RECORD_TEXTS; j++)
            write_text(w, texts.at[j]);
    }
}

/* Writes the numbers of the records in another order of the sessions. */
static void write_order(struct index_writer *w, struct sorted_session *sorted, size_t count,
                        int (*order)(const void *a, const void *b))
{
    qsort(sorted, count, sizeof(*sorted), order);
    for (size_t i = 0; i < count; i++)
        write_words(w, &sorted[i].number, 1);
}

static struct index_header header_of(const struct session_table *t)
{
    struct index_header h = {.covered = (uint64_t)t->end,
                             .sessions = t->list.count,
                             .ranges = t->range_count,
                             .bad = t->list.bad_lines,
                             .blocks = t->blocks.count,
                             .latest = t->clock.latest,
                             .ahead = t->clock.ahead};

    for (size_t i = 0; i < t->list.count; i++)
        h.texts += text_size(&t->list.at[i]);
    return h;
}

/* Writes all blocks, or compares them with those in the file. Returns false if that failed, or they
 * differ. */
static bool write_index(const struct session_table *t, int fd, uint64_t salt, bool compare)
{
    struct index_writer *w = mem_zalloc(sizeof(*w));
    struct sorted_session *sorted = sort_sessions(t);
    size_t *ranges = mem_zalloc(t->list.count * sizeof(*ranges));
    struct index_header h = header_of(t);
    bool written;

    for (size_t i = 0; i < t->range_count; i++)
        ranges[t->ranges[i].owner]++;
    w->fd = fd;
    w->compare = compare;
    w->salt = salt;
    write_words(w, (const uint64_t *)&h, HEADER_WORDS);
    write_records(w, t, sorted, ranges);
    write_ranges(w, t, sorted, ranges);
    write_words(w, t->bad, (size_t)t->list.bad_lines);
    write_times(w, &t->blocks);
    write_texts(w, sorted, t->list.count);
    write_order(w, sorted, t->list.count, by_start);
    write_order(w, sorted, t->list.count, by_end);
    if (w->filled > 0)
        end_block(w);
    write_blocks(w);
    written = !w->failed;
    free(ranges);
    free(sorted);
    free(w);
    return written;
}

/* ---- reading ---- */

static int read_blocks(const struct session_index *x, uint64_t first, size_t count, char *bytes)
{
    size_t n = count * INDEX_BLOCK;

    if (file_pread_full(x->fd, bytes, n, (off_t)((first + 1) * INDEX_BLOCK)) != (ssize_t)n)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const char *block = bytes + i * INDEX_BLOCK;

        if (le_get(block + PAYLOAD) != block_sum(block, first + i, x->salt))
            return -1;
    }
    return 0;
}

/* Reads n bytes of what the blocks hold. */
static int read_bytes(const struct session_index *x, uint64_t at, uint64_t n, char *to)
{
    char bytes[BLOCKS * INDEX_BLOCK];

    if (at > x->size || n > x->size - at)
        return -1;
    while (n > 0) {
        uint64_t first = at / PAYLOAD, count = (at + n - 1) / PAYLOAD - first + 1;

        if (count > BLOCKS)
            count = BLOCKS;
        if (read_blocks(x, first, (size_t)count, bytes) < 0)
            return -1;
        for (size_t i = 0; i < count; i++) {
            size_t skip = (size_t)(at % PAYLOAD);
            size_t part = n < PAYLOAD - skip ? (size_t)n : PAYLOAD - skip;

            memcpy(to, bytes + i * INDEX_BLOCK + skip, part);
            to += part;
            at += part;
            n -= part;
        }
    }
    return 0;
}

/* Reads `count` words from number `first` of a part on. */
static int read_words(const struct session_index *x, enum index_part part, uint64_t first,
                      size_t count, uint64_t *words)
{
    char *bytes = (char *)words;

    if (read_bytes(x, x->at[part] + first * WORD, count * WORD, bytes) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        words[i] = le_get(bytes + i * WORD);
    return 0;
}

static int read_records(const struct session_index *x, uint64_t first, size_t count,
                        uint64_t *records)
{
    return read_words(x, INDEX_RECORDS, first * RECORD_WORDS, count * RECORD_WORDS, records);
}

static bool read_header(struct session_index *x)
{
    struct index_header h;
    struct stat st;
    uint64_t end, blocks;

    if (fstat(x->fd, &st) < 0 || st.st_size < (off_t)INDEX_BLOCK || st.st_size > INDEX_MOST)
        return false;
    blocks = (uint64_t)st.st_size / INDEX_BLOCK - 1;
    x->size = blocks * PAYLOAD;
    if (read_words(x, INDEX_RECORDS, 0, HEADER_WORDS, (uint64_t *)&h) < 0)
        return false;
    /* Nothing can be larger than the file, so that the sum does not overflow. */
    if (h.sessions > x->size || h.ranges > x->size || h.bad > x->size || h.blocks > x->size ||
        h.texts > x->size || h.covered > (uint64_t)x->st.st_size || h.latest > x->h->now ||
        h.ahead <= x->h->now)
        return false;
    end = lay_out(&h, x->at);
    if (end > x->size)
        return false;
    x->header = h;
    return true;
}

/* Returns the size of the texts of a record, or 0 if they are not all in the file. */
static uint64_t record_text_size(const struct session_index *x, const uint64_t *record)
{
    uint64_t size = RECORD_TEXTS, left = x->header.texts;

    for (size_t i = RECORD_LENGTHS; i < RECORD_WORDS; i++) {
        if (record[i] > left)
            return 0;
        size += record[i];
    }
    return record[RECORD_TEXT_AT] <= left && size <= left - record[RECORD_TEXT_AT] ? size : 0;
}

static int read_id(const struct session_index *x, const uint64_t *record, struct buf *id)
{
    uint64_t length = record[RECORD_LENGTHS];

    if (record_text_size(x, record) == 0 ||
        read_bytes(x, x->at[INDEX_TEXTS] + record[RECORD_TEXT_AT], length,
                   buf_room(id, (size_t)length)) < 0)
        return -1;
    buf_grew(id, (size_t)length);
    return 0;
}

/* ---- the orders of the ids ---- */

int session_index_numbers(const struct session_index *x, bool at_end, uint64_t first, size_t count,
                          uint64_t *numbers)
{
    return read_words(x, at_end ? INDEX_BY_END : INDEX_BY_START, first, count, numbers);
}

/* Reads the number of the record at that place of an order, and adds its id to `id`. Returns 0 or
 * -1. */
static int read_place(const struct session_index *x, bool at_end, uint64_t place, uint64_t *number,
                      struct buf *id)
{
    uint64_t record[RECORD_WORDS];

    return session_index_numbers(x, at_end, place, 1, number) == 0 &&
                   *number < x->header.sessions && read_records(x, *number, 1, record) == 0
               ? read_id(x, record, id)
               : -1;
}

/* Compares the beginning, or the end, of the id at that place of an order with a text of the same
 * length. Returns 0 and *order, or -1. */
static int compare_at(const struct session_index *x, bool at_end, uint64_t place, struct str text,
                      int *order)
{
    struct buf found = BUF_INIT(SIZE_MAX);
    uint64_t number;
    int result = read_place(x, at_end, place, &number, &found);

    if (result == 0) {
        struct str id = buf_str(&found);

        if (id.n > text.n)
            id = (struct str){at_end ? id.p + (id.n - text.n) : id.p, text.n};
        *order = compare_ids(id, text, at_end);
    }
    buf_release(&found);
    return result;
}

/* Finds the first place from `low` on, and before `high`, whose id is not before the text, or with
 * `after`, is after it. Without one it is `high`. Returns 0 or -1. */
static int search_order(const struct session_index *x, bool at_end, uint64_t low, uint64_t high,
                        struct str text, bool after, uint64_t *place)
{
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = 0;

        if (compare_at(x, at_end, middle, text, &order) < 0)
            return -1;
        if (order < 0 || (after && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return 0;
}

int session_index_find(const struct session_index *x, struct str id, uint64_t *number)
{
    struct buf found = BUF_INIT(SIZE_MAX);
    uint64_t sessions = x->header.sessions, place;
    int result;

    /* An id comes before its continuations. */
    if (search_order(x, false, 0, sessions, id, false, &place) < 0)
        return -1;
    if (place == sessions)
        return 0;
    result = read_place(x, false, place, number, &found) < 0 ? -1 : str_eq(buf_str(&found), id);
    buf_release(&found);
    return result;
}

int session_index_named(const struct session_index *x, struct str text, bool at_end,
                        uint64_t *first, uint64_t *count)
{
    uint64_t sessions = x->header.sessions, end, named, step = 1;
    int order = 0;

    if (search_order(x, at_end, 0, sessions, text, false, first) < 0)
        return -1;
    /* Mostly few sessions have the name: the end is looked for from here, in growing steps. */
    for (named = end = *first; end < sessions && order == 0; step *= 2) {
        if (compare_at(x, at_end, end, text, &order) < 0)
            return -1;
        if (order == 0) {
            named = end + 1;
            end = step < sessions - end ? end + step : sessions;
        }
    }
    if (search_order(x, at_end, named, end, text, true, &end) < 0)
        return -1;
    *count = end - *first;
    return 0;
}

/* ---- sessions ---- */

static void add_session(struct session_list *to, const uint64_t *record, const char *texts)
{
    struct session *s = session_list_add(to);
    struct str *const own[RECORD_TEXTS] = {&s->id,        &s->first_role, &s->created_at,
                                           &s->last_used, &s->preview,    &s->title,
                                           &s->title_set};

    for (size_t i = 0; i < RECORD_TEXTS; i++) {
        *own[i] = (struct str){texts, (size_t)record[RECORD_LENGTHS + i]};
        texts += own[i]->n + 1;
    }
    s->asked = record[RECORD_ASKED] != 0;
    s->count = record[RECORD_COUNT];
    s->titles = record[RECORD_TITLES];
    s->bytes = record[RECORD_BYTES];
    s->last_line = (off_t)record[RECORD_LAST_LINE];
    s->created = (int64_t)record[RECORD_CREATED];
    s->used = (int64_t)record[RECORD_USED];
}

/* Adds sessions whose texts follow each other. */
static int add_sessions(const struct session_index *x, const uint64_t *records, size_t count,
                        struct session_list *to)
{
    uint64_t begin = records[RECORD_TEXT_AT], size = 0;
    struct buf texts = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < count; i++) {
        const uint64_t *record = records + i * RECORD_WORDS;
        uint64_t own = record_text_size(x, record);

        if (own == 0 || record[RECORD_TEXT_AT] != begin + size)
            return -1;
        size += own;
    }
    if (read_bytes(x, x->at[INDEX_TEXTS] + begin, size, buf_room(&texts, (size_t)size)) < 0) {
        buf_release(&texts);
        return -1;
    }
    buf_grew(&texts, (size_t)size);

    char *block = session_list_own(to, buf_detach(&texts));

    for (size_t i = 0; i < count; i++) {
        const uint64_t *record = records + i * RECORD_WORDS;

        add_session(to, record, block + (record[RECORD_TEXT_AT] - begin));
    }
    return 0;
}

/* ---- times ---- */

int session_index_times(const struct session_index *x, struct time_blocks *to)
{
    const struct time_blocks *tail = &x->tail.blocks;
    size_t count = (size_t)x->header.blocks;
    uint64_t *words = mem_zalloc(count * BLOCK_WORDS * sizeof(*words));
    int result = read_words(x, INDEX_TIMES, 0, count * BLOCK_WORDS, words);
    off_t from = 0;

    to->at = mem_grow(to->at, &to->cap, count + tail->count, sizeof(*to->at));
    for (size_t i = 0; i < count && result == 0; i++) {
        const uint64_t *block = words + i * BLOCK_WORDS;
        off_t end = (off_t)(block[BLOCK_TO] & ~ASCENDING);

        if (end <= from || (uint64_t)end > x->header.covered)
            result = -1;
        to->at[to->count++] = (struct time_block){.from = from,
                                                  .to = end,
                                                  .earliest = (int64_t)block[BLOCK_EARLIEST],
                                                  .latest = (int64_t)block[BLOCK_LATEST],
                                                  .before = (int64_t)block[BLOCK_BEFORE],
                                                  .ascending = (block[BLOCK_TO] & ASCENDING) != 0};
        from = end;
    }
    free(words);
    if ((uint64_t)from != x->header.covered)
        result = -1;
    for (size_t i = 0; i < tail->count; i++)
        to->at[to->count++] = tail->at[i];
    return result;
}

/* Reads `count` ranges from number `first` on. Those of one session must be ascending, and all in
 * the covered part. */
static int read_ranges(const struct session_index *x, uint64_t first, uint64_t count,
                       struct line_range **ranges)
{
    uint64_t *words;
    int result;

    if (first > x->header.ranges || count > x->header.ranges - first)
        return -1;
    words = mem_zalloc((size_t)count * 2 * sizeof(*words));
    *ranges = mem_zalloc((size_t)count * sizeof(**ranges));
    result = read_words(x, INDEX_RANGES, first * 2, (size_t)count * 2, words);
    for (size_t i = 0; i < count && result == 0; i++) {
        uint64_t from = words[i * 2], to = words[i * 2 + 1];

        if (from >= to || to > x->header.covered)
            result = -1;
        (*ranges)[i] = (struct line_range){.from = (off_t)from, .to = (off_t)to};
    }
    free(words);
    return result;
}

/* Finds the first lines of the last `count` sessions of a list, for which these are the records. */
static int add_first_lines(const struct session_index *x, const uint64_t *records, size_t count,
                           struct session_list *to)
{
    struct session *s = to->at + to->count - count;
    struct line_range *first;
    int result = 0;

    for (size_t i = 0; i < count && result == 0; i++) {
        first = NULL;
        result = read_ranges(x, records[i * RECORD_WORDS + RECORD_FIRST_RANGE], 1, &first);
        if (result == 0)
            s[i].first_line = first->from;
        free(first);
    }
    return result;
}

int session_index_sessions(const struct session_index *x, uint64_t first, uint64_t count,
                           struct session_list *to)
{
    uint64_t *records;
    int result;

    if (first > x->header.sessions || count > x->header.sessions - first)
        return -1;
    records = mem_zalloc((size_t)count * RECORD_WORDS * sizeof(*records));
    result = read_records(x, first, (size_t)count, records);
    if (result == 0 && count > 0)
        result = add_sessions(x, records, (size_t)count, to);
    if (result == 0 && count > 0 && x->h->mark.from > 0)
        result = add_first_lines(x, records, (size_t)count, to);
    free(records);
    return result;
}

/* ---- lines ---- */

static bool is_ascending(const struct line_range *ranges, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ranges[i].from < ranges[i - 1].to)
            return false;
    return true;
}

/* Finds the lines of a session in the file. */
static int find_lines(const struct session_index *x, struct str id, struct session_lines *lines)
{
    uint64_t number, record[RECORD_WORDS];
    int found = session_index_find(x, id, &number);

    if (found <= 0)
        return found;
    if (read_records(x, number, 1, record) < 0 ||
        read_ranges(x, record[RECORD_FIRST_RANGE], record[RECORD_RANGES], &lines->at) < 0)
        return -1;
    lines->count = (size_t)record[RECORD_RANGES];
    lines->lines = record[RECORD_COUNT] + record[RECORD_TITLES];
    return is_ascending(lines->at, lines->count) ? 1 : -1;
}

int session_index_lines(const struct session_index *x, struct str id, struct session_lines *lines)
{
    size_t own, cap;
    const struct session *recent = session_table_find(&x->tail, id, &own);

    *lines = (struct session_lines){0};
    if (find_lines(x, id, lines) < 0) {
        free(lines->at);
        *lines = (struct session_lines){0};
        return -1;
    }
    lines->lines += recent ? recent->count + recent->titles : 0;
    cap = lines->count;
    for (size_t i = 0; recent && i < x->tail.range_count; i++) {
        if (x->tail.ranges[i].owner != own)
            continue;
        lines->at = mem_grow(lines->at, &cap, lines->count + 1, sizeof(*lines->at));
        lines->at[lines->count++] = x->tail.ranges[i];
    }
    return 0;
}

/* The byte before a line ends another one. */
static int count_bad_line(struct session_index *x, off_t at, uint64_t *count)
{
    struct line l;

    scan_from(&x->scan, at > 0 ? at - 1 : 0);
    if ((at > 0 && (scan_line(&x->scan, &l, NULL) <= 0 || l.text.n > 0)) ||
        scan_line(&x->scan, &l, NULL) <= 0)
        return -1;
    *count += scan_may_give(&x->scan, l.text);
    return 0;
}

int session_index_count_bad(struct session_index *x, struct str id, uint64_t *count)
{
    int result = 0;

    if (x->header.bad + x->tail.list.bad_lines == 0)
        return 0;
    scan_only(&x->scan, id);
    x->scan.block_size = BAD_BLOCK;
    for (uint64_t i = 0; i < x->header.bad && result == 0; i++) {
        uint64_t at;

        result = read_words(x, INDEX_BAD, i, 1, &at);
        if (result == 0)
            result = count_bad_line(x, (off_t)at, count);
    }
    for (uint64_t i = 0; i < x->tail.list.bad_lines && result == 0; i++)
        result = count_bad_line(x, (off_t)x->tail.bad[i], count);
    return result;
}

/* ---- making ---- */

/* Stops using the file. */
static void drop_file(struct session_index *x)
{
    file_close(x->fd);
    x->fd = -1;
    x->header = (struct index_header){0};
}

/* Returns whether the path still names the history that was read. It may have been replaced by one
 * from which lines were deleted, and these must not stay in an index. */
static bool is_current(const struct session_index *x)
{
    return file_is_named(x->h->dir_fd, x->h->path, x->scan.fd);
}

/* Writes a new file from the tail, which holds all lines. It is not synced: after a power cut
 * its checksums do not match. */
static bool write_file(const struct session_index *x, int fd)
{
    const uint64_t words[] = {(uint64_t)x->tail.end, (uint64_t)getpid(), (uint64_t)time_now()};
    uint64_t salt = checksum_words(words, sizeof(words) / WORD, 0);

    return x->tail.end > 0 && write_index(&x->tail, fd, salt, false) &&
           write_preamble(fd, x->scan.fd, &x->st, salt) == 0 && is_current(x);
}

/* Reads what the file does not cover. */
static int read_tail(struct session_index *x)
{
    if (x->fd >= 0)
        x->tail.clock.latest = x->header.latest;
    return session_table_read(&x->tail, &(struct table_read){.scan = &x->scan,
                                                             .from = (off_t)x->header.covered,
                                                             .to = x->scan.size,
                                                             .work = x->h->work,
                                                             .cancel = x->h->cancel,
                                                             .exact = true});
}

/* Reads the whole history, and makes a new file of it. Returns 0; 1 if a new file cannot be made
 * now, and nothing was read; -1. */
static int make_file(struct session_index *x)
{
    char *name = path_with_suffix(x->h->index, HISTORY_INDEX_MAKING);
    int fd = open_new(x->h->dir_fd, name), result = 1;

    if (fd >= 0) {
        drop_file(x);
        result = read_tail(x);
        if (close_new(x->h, fd, name, result == 0 && write_file(x, fd)) && !is_current(x))
            file_unlink(x->h->dir_fd, x->h->index);
    }
    free(name);
    return result;
}

static bool is_due(const struct session_index *x)
{
    off_t covered = (off_t)x->header.covered, most = covered / TAIL_PART;

    if (most > TAIL_MOST)
        most = TAIL_MOST;
    if (most < TAIL_LEAST)
        most = TAIL_LEAST;
    return x->fd < 0 || x->scan.size - covered > most;
}

/* ---- opening ---- */

/* Opens the file, if it is valid for the history. Returns false if something is in its place that
 * no index may replace. */
static bool open_file(struct session_index *x)
{
    int reason = 0;
    enum index_state state;

    x->fd = open_index_file(x->h->dir_fd, history_index(x->h), &reason);
    if (x->fd < 0)
        return reason == ENOENT;
    state = check_history(x->fd, x->scan.fd, &x->st, &x->salt);
    if (state == INDEX_OTHER || !read_header(x))
        drop_file(x);
    else if (state == INDEX_GROWN)
        (void)write_preamble(x->fd, x->scan.fd, &x->st, x->salt);
    return true;
}

static bool open_history(struct session_index *x, const struct history *h)
{
    *x = (struct session_index){.h = h, .fd = -1};
    session_table_init(&x->tail, h->now);
    return scan_open(&x->scan, h->dir_fd, h->path, NULL) == 0;
}

bool session_index_open(struct session_index *x, const struct history *h)
{
    int result;

    if (!history_index(h) || !open_history(x, h))
        return false;
    if (x->scan.fd < 0 || x->scan.size < SESSION_INDEX_LEAST ||
        fstat(x->scan.fd, &x->st) < 0 || x->st.st_uid != geteuid() || !open_file(x))
        goto none;
    x->scan.size = x->st.st_size;
    result = is_due(x) ? make_file(x) : 1;
    if (result > 0)
        result = x->fd >= 0 ? read_tail(x) : -1;
    if (result == 0 && session_table_read_torn(&x->tail, &x->scan, x->scan.size) == 0)
        return true;
none:
    session_index_close(x);
    return false;
}

void session_index_close(struct session_index *x)
{
    drop_file(x);
    session_table_release(&x->tail);
    scan_close(&x->scan);
}

void session_index_discard(struct session_index *x)
{
    history_remove_index(x->h);
    session_index_close(x);
}

bool session_index_is_wrong(const struct history *h)
{
    struct session_index x;
    struct table_read r;
    bool wrong = false;

    if (!history_index(h) || !open_history(&x, h))
        return false;
    if (x.scan.fd >= 0 && open_file(&x) && x.fd >= 0) {
        r = (struct table_read){.scan = &x.scan, .to = (off_t)x.header.covered};
        wrong = session_table_read(&x.tail, &r) == 0 && !write_index(&x.tail, x.fd, x.salt, true);
    }
    session_index_close(&x);
    return wrong;
}

bool session_index_blocked(const struct history *h, bool *removable)
{
    const char *path = history_index(h);
    struct stat st;
    int reason = 0, fd = path ? open_index_file(h->dir_fd, path, &reason) : -1;

    file_close(fd);
    if (!path || fd >= 0 || reason == ENOENT)
        return false;
    *removable =
        h->dir && reason == EPERM && file_stat(h->dir_fd, path, &st) == 0 && st.st_uid == geteuid();
    return true;
}
