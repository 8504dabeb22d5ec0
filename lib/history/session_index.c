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
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"

#define WORD sizeof(uint64_t)
#define PAYLOAD (INDEX_BLOCK - WORD)
/* The words of the preamble. */
struct preamble {
    uint64_t magic, dev, ino, born; /* `dev` to `samples` describe the history */
    uint64_t size, modified, changed, samples;
    uint64_t salt, sum; /* a checksum of the words before it */
};
#define PREAMBLE_WORDS (sizeof(struct preamble) / WORD)
/* "HISTIDXD": the last character is the version. */
#define MAGIC UINT64_C(0x4458444954534948)
/* The checksum of the history is computed from this many samples of SAMPLE bytes, at equal
 * distances. */
#define SAMPLES ((size_t)8)
#define SAMPLE ((size_t)4096)
/* Blocks that are read or written at once. */
#define BLOCKS ((size_t)8)
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

/* id, first role, first and last timestamp, preview, title, set of titles */
#define SESSION_TEXTS 7
/* The words of a session, before its texts. */
struct session_words {
    uint64_t count, titles, bytes, asked, first_line, last_line, created, used;
    uint64_t first_range, ranges;
    uint64_t lengths[SESSION_TEXTS];
};
#define SESSION_WORDS (sizeof(struct session_words) / WORD)
enum id_word { ID_PLACE, ID_LENGTH, ID_WORDS };
enum range_word { RANGE_FROM, RANGE_TO, RANGE_WORDS };

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

/* ---- the preamble ---- */

/* Returns a checksum of the samples of the first `size` bytes; 0 on error. The first sample is at
 * the beginning and the last one at the end. */
static uint64_t sum_samples(int history_fd, off_t size)
{
    char bytes[SAMPLE];
    size_t n = size < (off_t)SAMPLE ? (size_t)size : SAMPLE;
    off_t last = size - (off_t)n;
    uint64_t sum = 0;

    for (size_t i = 0; i < SAMPLES; i++) {
        off_t at = i + 1 < SAMPLES ? last / (off_t)(SAMPLES - 1) * (off_t)i : last;

        if (file_pread_full(history_fd, bytes, n, at) != (ssize_t)n)
            return 0;
        sum = checksum((struct str){bytes, n}, sum);
    }
    return sum | 1;
}

static void add_words(struct buf *b, const uint64_t *words, size_t count)
{
    char *to = buf_room(b, count * WORD);

    for (size_t i = 0; i < count; i++)
        le_put(to + i * WORD, words[i]);
    buf_grew(b, count * WORD);
}

static struct preamble preamble_of(int history_fd, const struct stat *st)
{
    return (struct preamble){.magic = MAGIC,
                             .dev = (uint64_t)st->st_dev,
                             .ino = (uint64_t)st->st_ino,
                             .born = (uint64_t)system_birth(history_fd),
                             .size = (uint64_t)st->st_size,
                             .modified = (uint64_t)system_mtime(st),
                             .changed = (uint64_t)system_ctime(st)};
}

/* Writes the preamble: the state of the history, and the salt of the blocks. Returns 0 or -1. */
static int write_preamble(const struct session_index *x, int fd, uint64_t salt)
{
    struct preamble p = preamble_of(x->scan.fd, &x->st);
    struct buf bytes = BUF_INIT(BUF_SMALL);
    int result;

    p.samples = sum_samples(x->scan.fd, x->st.st_size);
    p.salt = salt;
    p.sum = checksum_words((const uint64_t *)&p, PREAMBLE_WORDS - 1, 0);
    add_words(&bytes, (const uint64_t *)&p, PREAMBLE_WORDS);
    result = pwrite(fd, bytes.data, bytes.len, 0) == (ssize_t)bytes.len ? 0 : -1;
    buf_release(&bytes);
    return result;
}

/* Compares the history with the preamble. Sets x->st to the state of the history, and x->salt.
 * Returns 1 if lines were appended, 0 if it is unchanged, -1 if it was changed or is another one.
 */
static int compare_preamble(struct session_index *x)
{
    struct preamble was, is;
    char bytes[sizeof(was)];

    /* The history is looked at last, so that it is never older than the preamble. */
    if (file_pread_full(x->fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes) ||
        fstat(x->scan.fd, &x->st) < 0)
        return -1;
    le_get_all((uint64_t *)&was, bytes, PREAMBLE_WORDS);
    is = preamble_of(x->scan.fd, &x->st);
    x->salt = was.salt;
    if (was.sum != checksum_words((const uint64_t *)&was, PREAMBLE_WORDS - 1, 0) ||
        was.magic != is.magic || was.dev != is.dev || was.ino != is.ino || was.born != is.born ||
        was.size > is.size || was.samples != sum_samples(x->scan.fd, (off_t)was.size))
        return -1;
    if (was.size < is.size)
        return 1;
    return was.modified == is.modified && was.changed == is.changed ? 0 : -1;
}

static uint64_t block_sum(const char *block, uint64_t number, uint64_t salt)
{
    return checksum((struct str){block, PAYLOAD}, salt ^ number);
}

/* ---- writing ---- */

static void write_session_words(struct buf *b, const struct session *s, uint64_t first_range,
                                uint64_t ranges)
{
    const struct str texts[SESSION_TEXTS] = {s->id,      s->first_role, s->created_at, s->last_used,
                                             s->preview, s->title,      s->title_set};
    struct session_words w = {.count = s->count,
                              .titles = s->titles,
                              .bytes = s->bytes,
                              .asked = s->asked,
                              .first_line = (uint64_t)s->first_line,
                              .last_line = (uint64_t)s->last_line,
                              .created = (uint64_t)s->created,
                              .used = (uint64_t)s->used,
                              .first_range = first_range,
                              .ranges = ranges};

    for (size_t i = 0; i < SESSION_TEXTS; i++)
        w.lengths[i] = texts[i].n;
    add_words(b, (const uint64_t *)&w, SESSION_WORDS);
    for (size_t i = 0; i < SESSION_TEXTS; i++) {
        buf_add_str(b, texts[i]);
        buf_add_byte(b, '\0');
    }
}

static int by_use(const void *a, const void *b)
{
    return session_compare(*(const struct session *const *)a, *(const struct session *const *)b);
}

/* Adds the sessions, the last used first, their ids, and their ranges: a counting sort. */
static void add_sessions(struct buf *b, const struct session_table *t, uint64_t at[INDEX_PARTS + 1])
{
    size_t count = t->list.count, *ranges = mem_zalloc(count * sizeof(*ranges)), first = 0;
    const struct session **sorted = mem_zalloc(count * sizeof(struct session *));
    const struct line_range **places = mem_zalloc(t->range_count * sizeof(struct line_range *));
    struct buf ids = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < count; i++)
        sorted[i] = &t->list.at[i];
    qsort(sorted, count, sizeof(struct session *), by_use);
    for (size_t i = 0; i < t->range_count; i++)
        ranges[t->ranges[i].owner]++;
    for (size_t i = 0; i < count; i++) {
        const struct session *s = sorted[i];
        size_t *own = &ranges[s - t->list.at], next = first + *own;

        add_words(&ids, (uint64_t[]){b->len - at[INDEX_SESSIONS], s->id.n}, ID_WORDS);
        buf_add_str(&ids, s->id);
        write_session_words(b, s, first, *own);
        *own = first;
        first = next;
    }
    at[INDEX_IDS] = b->len;
    buf_add_str(b, buf_str(&ids));
    at[INDEX_RANGES] = b->len;
    for (size_t i = 0; i < t->range_count; i++)
        places[ranges[t->ranges[i].owner]++] = &t->ranges[i];
    for (size_t i = 0; i < t->range_count; i++) {
        add_words(b, (uint64_t[]){(uint64_t)places[i]->from, (uint64_t)places[i]->to}, RANGE_WORDS);
    }
    buf_release(&ids);
    free(places);
    free(sorted);
    free(ranges);
}

static void add_times(struct buf *b, const struct time_blocks *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        const struct time_block *block = &blocks->at[i];
        uint64_t words[BLOCK_WORDS] = {[BLOCK_TO] = (uint64_t)block->to,
                                       [BLOCK_EARLIEST] = (uint64_t)block->earliest,
                                       [BLOCK_LATEST] = (uint64_t)block->latest,
                                       [BLOCK_BEFORE] = (uint64_t)block->before};

        if (block->ascending)
            words[BLOCK_TO] |= ASCENDING;
        add_words(b, words, BLOCK_WORDS);
    }
}

/* Adds what the blocks of the index of a table hold. */
static void add_payload(struct buf *b, const struct session_table *t)
{
    struct index_header h = {.covered = (uint64_t)t->end,
                             .bad = t->list.bad_lines,
                             .latest = t->clock.latest,
                             .ahead = t->clock.ahead,
                             .at[INDEX_SESSIONS] = sizeof(h)};
    struct buf header = BUF_INIT(BUF_SMALL);

    add_words(b, (const uint64_t *)&h, HEADER_WORDS);
    add_sessions(b, t, h.at);
    h.at[INDEX_BAD] = b->len;
    add_words(b, t->bad, (size_t)t->list.bad_lines);
    h.at[INDEX_TIMES] = b->len;
    add_times(b, &t->blocks);
    h.at[INDEX_PARTS] = b->len;
    add_words(&header, (const uint64_t *)&h, HEADER_WORDS);
    memcpy(b->data, header.data, header.len);
    buf_release(&header);
}

/* Writes the blocks of a new file, which follow the place of the preamble. */
static bool write_blocks(int fd, struct str payload, uint64_t salt)
{
    char bytes[BLOCKS * INDEX_BLOCK];
    uint64_t number = 0;

    while (payload.n > 0) {
        off_t at = (off_t)((number + 1) * INDEX_BLOCK);
        size_t used = 0;

        memset(bytes, 0, sizeof(bytes));
        for (; payload.n > 0 && used < sizeof(bytes); used += INDEX_BLOCK) {
            char *block = bytes + used;
            size_t n = payload.n < PAYLOAD ? payload.n : PAYLOAD;

            memcpy(block, payload.p, n);
            le_put(block + PAYLOAD, block_sum(block, number++, salt));
            payload = str_skip(payload, n);
        }
        if (file_pwrite_all(fd, bytes, used, at) < 0)
            return false;
    }
    return true;
}

/* ---- reading ---- */

/* Reads the blocks from that of offset `at` on, those with `n` bytes and some more. Returns 0 or
 * -1. */
static int read_window(struct session_index *x, uint64_t at, uint64_t n)
{
    uint64_t first = at / PAYLOAD, count = (at % PAYLOAD + n - 1) / PAYLOAD + 1;
    struct buf *w = &x->window;
    char *bytes;

    buf_clear(w);
    if (count < BLOCKS)
        count = BLOCKS;
    if (count > x->blocks - first)
        count = x->blocks - first;
    bytes = buf_room(w, (size_t)count * INDEX_BLOCK);
    if (!bytes ||
        file_pread_full(x->fd, bytes, (size_t)count * INDEX_BLOCK,
                        (off_t)((first + 1) * INDEX_BLOCK)) != (ssize_t)(count * INDEX_BLOCK))
        return -1;
    for (size_t i = 0; i < count; i++) {
        const char *block = bytes + i * INDEX_BLOCK;

        if (le_get(block + PAYLOAD) != block_sum(block, first + i, x->salt))
            return -1;
        memmove(bytes + i * PAYLOAD, block, PAYLOAD);
    }
    buf_grew(w, (size_t)count * PAYLOAD);
    x->window_at = first * PAYLOAD;
    return 0;
}

/* Returns at least `n` bytes at the offset `at` of what the blocks hold, valid until the next call;
 * or STR_NONE if the blocks are damaged, or there are fewer bytes up to `end`. */
static struct str get_bytes(struct session_index *x, uint64_t at, uint64_t n, uint64_t end)
{
    uint64_t have;

    if (at > end || n > end - at)
        return STR_NONE;
    if (n == 0)
        return STR("");
    if ((at < x->window_at || at + n > x->window_at + x->window.len) && read_window(x, at, n) < 0)
        return STR_NONE;
    have = x->window_at + x->window.len;
    return (struct str){x->window.data + (at - x->window_at),
                        (size_t)((have < end ? have : end) - at)};
}

/* The same of one part. */
static struct str part_bytes(struct session_index *x, enum index_part part, uint64_t at, uint64_t n)
{
    uint64_t begin = x->header.at[part], end = x->header.at[part + 1];

    return at > end - begin ? STR_NONE : get_bytes(x, begin + at, n, end);
}

static uint64_t part_size(const struct session_index *x, enum index_part part)
{
    return x->header.at[part + 1] - x->header.at[part];
}

static bool read_header(struct session_index *x)
{
    struct index_header h;
    struct str bytes;
    struct stat st;
    bool right;

    if (fstat(x->fd, &st) < 0 || st.st_size < (off_t)INDEX_BLOCK || st.st_size > INDEX_MOST)
        return false;
    x->blocks = (uint64_t)st.st_size / INDEX_BLOCK - 1;
    bytes = get_bytes(x, 0, sizeof(h), x->blocks * PAYLOAD);
    if (!bytes.p)
        return false;
    le_get_all((uint64_t *)&h, bytes.p, HEADER_WORDS);
    right = h.covered <= (uint64_t)x->st.st_size && h.latest <= x->h->now && h.ahead > x->h->now &&
            h.at[INDEX_PARTS] <= x->blocks * PAYLOAD;
    for (size_t i = 0; i < INDEX_PARTS; i++)
        right = right && h.at[i] <= h.at[i + 1];
    if (right)
        x->header = h;
    return right;
}

/* ---- sessions ---- */

int session_index_each_id(struct session_index *x,
                          bool (*found)(void *arg, struct str id, uint64_t place), void *arg)
{
    const size_t head = ID_WORDS * WORD;
    uint64_t size = part_size(x, INDEX_IDS), n = 0;

    for (uint64_t at = 0; at < size;) {
        struct str rest = part_bytes(x, INDEX_IDS, at, head + n);

        if (!rest.p)
            return -1;
        while (rest.n >= head && (n = le_get(rest.p + ID_LENGTH * WORD)) <= rest.n - head) {
            if (found(arg, (struct str){rest.p + head, (size_t)n}, le_get(rest.p)))
                return 0;
            at += head + n;
            rest = str_skip(rest, head + (size_t)n);
        }
        if (rest.n < head)
            n = 0;
        else if (n > size)
            return -1;
    }
    return 0;
}

/* Reads the words of a session. Returns 0 or -1. */
static int read_session(struct session_index *x, uint64_t place, struct session_words *w)
{
    struct str bytes = part_bytes(x, INDEX_SESSIONS, place, sizeof(*w));

    if (!bytes.p)
        return -1;
    le_get_all((uint64_t *)w, bytes.p, SESSION_WORDS);
    return 0;
}

int session_index_session(struct session_index *x, uint64_t *place, struct session_list *to)
{
    struct session_words w;
    uint64_t size = SESSION_TEXTS;
    const char *texts;
    struct session *s;

    if (*place == part_size(x, INDEX_SESSIONS))
        return 0;
    if (read_session(x, *place, &w) < 0)
        return -1;
    for (size_t i = 0; i < SESSION_TEXTS; i++) {
        if (w.lengths[i] > (uint64_t)INDEX_MOST)
            return -1;
        size += w.lengths[i];
    }
    *place += sizeof(w);
    if (!(texts = part_bytes(x, INDEX_SESSIONS, *place, size).p))
        return -1;
    *place += size;
    texts = session_list_copy(to, (struct str){texts, (size_t)size}).p;
    s = session_list_add(to);
    *s = (struct session){.asked = w.asked != 0,
                          .count = w.count,
                          .titles = w.titles,
                          .bytes = w.bytes,
                          .first_line = (off_t)w.first_line,
                          .last_line = (off_t)w.last_line,
                          .created = (int64_t)w.created,
                          .used = (int64_t)w.used};

    struct str *const own[SESSION_TEXTS] = {&s->id,        &s->first_role, &s->created_at,
                                            &s->last_used, &s->preview,    &s->title,
                                            &s->title_set};

    for (size_t i = 0; i < SESSION_TEXTS; i++) {
        *own[i] = (struct str){texts, (size_t)w.lengths[i]};
        texts += own[i]->n + 1;
    }
    return 1;
}

/* ---- times ---- */

int session_index_times(struct session_index *x, struct time_blocks *to)
{
    const struct time_blocks *tail = &x->tail.blocks;
    uint64_t words[BLOCK_WORDS], size = part_size(x, INDEX_TIMES);
    const char *bytes = part_bytes(x, INDEX_TIMES, 0, size).p;
    off_t from = 0;

    to->at =
        mem_grow(to->at, &to->cap, (size_t)(size / sizeof(words)) + tail->count, sizeof(*to->at));
    for (uint64_t i = 0; i < size / sizeof(words) && bytes; i++) {
        le_get_all(words, bytes + i * sizeof(words), BLOCK_WORDS);

        off_t end = (off_t)(words[BLOCK_TO] & ~ASCENDING);

        if (end <= from || (uint64_t)end > x->header.covered)
            return -1;
        to->at[to->count++] = (struct time_block){.from = from,
                                                  .to = end,
                                                  .earliest = (int64_t)words[BLOCK_EARLIEST],
                                                  .latest = (int64_t)words[BLOCK_LATEST],
                                                  .before = (int64_t)words[BLOCK_BEFORE],
                                                  .ascending = (words[BLOCK_TO] & ASCENDING) != 0};
        from = end;
    }
    if ((uint64_t)from != x->header.covered)
        return -1;
    for (size_t i = 0; i < tail->count; i++)
        to->at[to->count++] = tail->at[i];
    return 0;
}

/* ---- lines ---- */

struct wanted_id {
    struct str id;
    uint64_t place;
    bool found;
};

static bool is_wanted_id(void *arg, struct str id, uint64_t place)
{
    struct wanted_id *w = arg;

    w->found = str_eq(id, w->id);
    w->place = place;
    return w->found;
}

/* Finds the lines of a session in the file. They must be ascending, and in the covered part.
 * Returns 0, also without a line; or -1. */
static int find_lines(struct session_index *x, struct str id, struct session_lines *lines)
{
    struct wanted_id wanted = {.id = id};
    struct session_words w;
    uint64_t range[RANGE_WORDS], size = part_size(x, INDEX_RANGES);
    const char *bytes;
    off_t end = 0;

    if (session_index_each_id(x, is_wanted_id, &wanted) < 0)
        return -1;
    if (!wanted.found)
        return 0;
    if (read_session(x, wanted.place, &w) < 0 || w.first_range > size || w.ranges > size ||
        !(bytes =
              part_bytes(x, INDEX_RANGES, w.first_range * sizeof(range), w.ranges * sizeof(range))
                  .p))
        return -1;
    lines->lines = w.count + w.titles;
    lines->at = mem_zalloc((size_t)w.ranges * sizeof(*lines->at));
    for (; lines->count < w.ranges; lines->count++, bytes += sizeof(range)) {
        struct line_range *r = &lines->at[lines->count];

        le_get_all(range, bytes, RANGE_WORDS);
        *r = (struct line_range){.from = (off_t)range[RANGE_FROM], .to = (off_t)range[RANGE_TO]};
        if (r->from < end || r->from >= r->to || range[RANGE_TO] > x->header.covered)
            return -1;
        end = r->to;
    }
    return 0;
}

int session_index_lines(struct session_index *x, struct str id, struct session_lines *lines)
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

/* The byte before a line ends another one. Of a line that is too long only the beginning is looked
 * at, so nothing beyond that is read. */
static int count_bad_line(struct session_index *x, off_t at, uint64_t *count)
{
    off_t size = x->scan.size, most = (off_t)x->scan.line_max + 2 * (off_t)BAD_BLOCK;
    struct line l;
    int result = 0;

    if (at < 0 || at >= size)
        return -1;
    x->scan.size = size - at > most ? at + most : size;
    scan_from(&x->scan, at > 0 ? at - 1 : 0);
    if ((at > 0 && (scan_line(&x->scan, &l, NULL) <= 0 || l.text.n > 0)) ||
        scan_line(&x->scan, &l, NULL) <= 0)
        result = -1;
    else
        *count += scan_may_match(&x->scan, l.text);
    x->scan.size = size;
    return result;
}

int session_index_count_bad(struct session_index *x, struct str id, uint64_t *count)
{
    const char *bytes;
    int result = 0;

    if (x->header.bad + x->tail.list.bad_lines == 0)
        return 0;
    scan_only(&x->scan, id);
    x->scan.block_size = BAD_BLOCK;
    for (uint64_t i = 0; i < x->header.bad && result == 0; i++) {
        bytes = part_bytes(x, INDEX_BAD, i * WORD, WORD).p;
        result = bytes ? count_bad_line(x, (off_t)le_get(bytes), count) : -1;
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
    buf_release(&x->window);
}

/* Returns whether the path still names the history that was read. It may have been replaced by one
 * from which lines were deleted, and these must not stay in an index. */
static bool is_current(const struct session_index *x)
{
    return file_is_named(x->h->dir_fd, x->h->path, x->scan.fd);
}

/* Reads what the file does not cover. */
static int read_tail(struct session_index *x)
{
    if (x->fd >= 0)
        x->tail.clock.latest = x->header.latest;
    return session_table_read(&x->tail, &(struct table_read){.scan = &x->scan,
                                                             .from = (off_t)x->header.covered,
                                                             .to = x->scan.size,
                                                             .cancel = x->h->cancel,
                                                             .exact = true});
}

/* Reads the whole history, and makes a new file of it, which is not synced: after a power cut its
 * checksums do not match. Returns 0; 1 if a new file cannot be made now, and nothing was read; -1. */
static int make_index(struct session_index *x)
{
    char *name = path_with_suffix(x->h->index, HISTORY_INDEX_MAKING);
    int fd = open_new(x->h->dir_fd, name), result = 1;
    bool made, ours;

    if (fd >= 0) {
        struct buf payload = BUF_INIT(SIZE_MAX);

        drop_file(x);
        result = read_tail(x);
        made = result == 0 && x->tail.end > 0;
        if (made) {
            const uint64_t words[] = {(uint64_t)x->tail.end, (uint64_t)getpid(),
                                      (uint64_t)time_now()};
            uint64_t salt = checksum_words(words, sizeof(words) / WORD, 0);

            add_payload(&payload, &x->tail);
            made = write_blocks(fd, buf_str(&payload), salt) && write_preamble(x, fd, salt) == 0 &&
                   is_current(x);
        }
        buf_release(&payload);
        /* If it was removed meanwhile, a file of that name belongs to another program. */
        ours = file_is_named(x->h->dir_fd, name, fd);
        if (ours && !(made && file_rename(x->h->dir_fd, name, x->h->index) == 0))
            file_unlink(x->h->dir_fd, name);
        else if (ours && !is_current(x))
            file_unlink(x->h->dir_fd, x->h->index);
        close(fd);
    }
    free(name);
    return result;
}

static bool is_due(const struct session_index *x)
{
    off_t covered = (off_t)x->header.covered, most = covered / TAIL_PART;

    most = most > TAIL_MOST ? TAIL_MOST : most < TAIL_LEAST ? TAIL_LEAST : most;
    return x->fd < 0 || x->scan.size - covered > most;
}

/* ---- opening ---- */

/* Opens the file, if it is valid for the history. Returns false if something is in its place that
 * no index may replace. */
static bool open_valid(struct session_index *x)
{
    int reason = 0, grown;

    x->fd = open_index_file(x->h->dir_fd, history_index_path(x->h), &reason);
    if (x->fd < 0)
        return reason == ENOENT;
    grown = compare_preamble(x);
    if (grown < 0 || !read_header(x))
        drop_file(x);
    else if (grown > 0)
        (void)write_preamble(x, x->fd, x->salt);
    return true;
}

static bool open_history(struct session_index *x, const struct history *h)
{
    *x = (struct session_index){.h = h, .fd = -1, .window = BUF_INIT(SIZE_MAX)};
    session_table_init(&x->tail, h->now);
    if (scan_open(&x->scan, h->dir_fd, h->path, NULL) < 0)
        return false;
    x->scan.work = h->work;
    x->scan.task = "index";
    return true;
}

bool session_index_open(struct session_index *x, const struct history *h)
{
    int result;

    if (!history_index_path(h) || !open_history(x, h))
        return false;
    if (x->scan.fd < 0 || x->scan.size < SESSION_INDEX_LEAST || fstat(x->scan.fd, &x->st) < 0 ||
        x->st.st_uid != geteuid() || !open_valid(x))
        goto none;
    x->scan.size = x->st.st_size;
    result = is_due(x) ? make_index(x) : 1;
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
    struct buf payload = BUF_INIT(SIZE_MAX);
    struct session_index x;
    struct table_read r;
    struct str rest = STR_NONE;
    bool wrong = false;

    if (!history_index_path(h) || !open_history(&x, h))
        return false;
    if (x.scan.fd >= 0 && open_valid(&x) && x.fd >= 0) {
        r = (struct table_read){.scan = &x.scan, .to = (off_t)x.header.covered};
        if (session_table_read(&x.tail, &r) == 0) {
            add_payload(&payload, &x.tail);
            rest = buf_str(&payload);
        }
        for (uint64_t at = 0; rest.n > 0 && !wrong; at += PAYLOAD) {
            size_t n = rest.n < PAYLOAD ? rest.n : PAYLOAD;
            struct str bytes = get_bytes(&x, at, n, x.header.at[INDEX_PARTS]);

            wrong = !bytes.p || memcmp(bytes.p, rest.p, n) != 0;
            rest = str_skip(rest, n);
        }
    }
    buf_release(&payload);
    session_index_close(&x);
    return wrong;
}

bool session_index_blocked(const struct history *h, bool *removable)
{
    const char *path = history_index_path(h);
    struct stat st;
    int reason = 0, fd = path ? open_index_file(h->dir_fd, path, &reason) : -1;

    file_close(fd);
    if (!path || fd >= 0 || reason == ENOENT)
        return false;
    *removable =
        h->dir && reason == EPERM && file_stat(h->dir_fd, path, &st) == 0 && st.st_uid == geteuid();
    return true;
}
