#include "chathist/embed/vectors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/simd.h"
#include "chathist/base/thread_pool.h"
#include "chathist/base/utf8.h"
#include "chathist/history/append.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"

/* The file, in little-endian numbers of 8 bytes:
 *
 *     "VECTORS\2", dimensions, hash of the model, inode of the history, checksum of these
 *     for each message, in the order of the history: hash of the rest of this row; offset, length
 *         and hash of the line; factor (the bits of a float), and the numbers
 *
 * A factor of 0 stands for a message of which the model makes no vector.
 */
#define MAGIC (((uint64_t)2 << 56) | 0x53524f54434556) /* VECTORS, and the version */
enum { HEAD_MAGIC, HEAD_DIMENSIONS, HEAD_MODEL, HEAD_INODE, HEAD_SUM, HEAD_WORDS };
enum { ROW_SUM, ROW_AT, ROW_LENGTH, ROW_HASH, ROW_FACTOR, ROW_WORDS };
#define WORD sizeof(uint64_t)
/* The most messages of a batch. The server gets them in one request, and a kill loses one batch. */
#define BATCH_MAX ((size_t)32)
/* The most rows at the end that a crash of the machine is taken to have left unfinished. */
#define UNFINISHED_MAX ((size_t)100000)

/* ---- a vector ---- */

int vector_read(struct vector *v, struct str json, struct err *e)
{
    struct buf numbers = BUF_INIT(VECTORS_DIMENSIONS * sizeof(double));
    struct json_iter it = json_iter(json);
    bool usable = json_type(json) == JSON_ARRAY;
    const double *all;
    double most = 0;
    float length;

    *v = (struct vector){0};
    while (usable && json_next(&it)) {
        /* A number in an array is followed by a comma, white space or a bracket. */
        double number = json_type(it.value) == JSON_NUMBER ? strtod(it.value.p, NULL) : NAN;

        buf_add(&numbers, (const char *)&number, sizeof number);
        usable = isfinite(number) && !numbers.overflow;
        most = number > most ? number : -number > most ? -number : most;
    }
    if (!usable || most == 0) {
        buf_release(&numbers);
        return err_set(e, ERR_FAILURE, "the server sent a vector that cannot be used");
    }
    all = (const double *)(const void *)numbers.data;
    v->dimensions = numbers.len / sizeof *all;
    v->n = (v->dimensions + SIMD_DOT - 1) / SIMD_DOT * SIMD_DOT;
    v->at = mem_zalloc(v->n);
    for (size_t i = 0; i < v->dimensions; i++)
        v->at[i] = (int8_t)(all[i] / most * 127 + (all[i] < 0 ? -0.5 : 0.5));
    /* One number at least is 127. Newton's method: no other use of libm is worth linking it. */
    length = (float)simd_dot(v->at, v->at, v->n);
    v->factor = 1 / length;
    for (int i = 0; i < 40; i++)
        v->factor *= (3 - length * v->factor * v->factor) / 2;
    buf_release(&numbers);
    return 0;
}

/* ---- the file ---- */

struct store {
    const struct history *history;
    const struct vectors_model *model;
    int fd;
    uint64_t inode;
    size_t row;   /* bytes of a row */
    size_t count; /* of the rows */
    bool begun;   /* it has a head */
    off_t end;    /* the offset in the history after the last line that has a row */
};

static off_t place_of_row(const struct store *s, size_t i)
{
    return (off_t)(HEAD_WORDS * WORD + i * s->row);
}

static void fill_head(const struct store *s, char head[HEAD_WORDS * WORD])
{
    uint64_t w[HEAD_WORDS] = {MAGIC, s->model->dimensions, s->model->name, s->inode};

    w[HEAD_SUM] = checksum_words(w, HEAD_SUM, 0);
    for (size_t i = 0; i < HEAD_WORDS; i++)
        le_put(head + i * WORD, w[i]);
}

static uint64_t row_word(const char *row, size_t i)
{
    return le_get(row + i * WORD);
}

static uint64_t sum_of_row(const struct store *s, const char *row)
{
    return hash64((struct str){row + WORD, s->row - WORD}, 0);
}

/* Reads a row. Returns false if its checksum is wrong. */
static bool read_row(const struct store *s, size_t i, char *row)
{
    return file_pread_full(s->fd, row, s->row, place_of_row(s, i)) == (ssize_t)s->row &&
           row_word(row, ROW_SUM) == sum_of_row(s, row);
}

/* Returns whether the history has the line of a row at its place: it has only grown since. */
static bool is_of_history(const struct store *s, const char *row)
{
    int fd =
        file_open_regular_at(s->history->dir_fd, s->history->path, O_RDONLY, 0, NULL, NULL, NULL);
    struct buf line = BUF_INIT(BUF_LINE);
    size_t n = (size_t)row_word(row, ROW_LENGTH);
    char *room = buf_room(&line, n);
    bool right = fd >= 0 && room &&
                 file_pread_full(fd, room, n, (off_t)row_word(row, ROW_AT)) == (ssize_t)n &&
                 hash64((struct str){room, n}, 0) == row_word(row, ROW_HASH);

    file_close(fd);
    buf_release(&line);
    return right;
}

/* Looks at the stored rows. Another model, another history and another version begin a new file;
 * the rows that a crash left unfinished at the end are made again. */
static void store_load(struct store *s)
{
    char head[HEAD_WORDS * WORD], stored[sizeof head];
    char *row = mem_zalloc(s->row);
    size_t stored_rows;
    struct stat st;

    fill_head(s, head);
    s->begun = fstat(s->fd, &st) == 0 &&
               file_pread_full(s->fd, stored, sizeof stored, 0) == (ssize_t)sizeof stored &&
               memcmp(head, stored, sizeof head) == 0;
    s->count = s->begun ? (size_t)(st.st_size - place_of_row(s, 0)) / s->row : 0;
    stored_rows = s->count;
    while (s->count > 0 && stored_rows - s->count <= UNFINISHED_MAX &&
           !read_row(s, s->count - 1, row))
        s->count--;
    s->begun = s->begun && stored_rows - s->count <= UNFINISHED_MAX &&
               (s->count == 0 || is_of_history(s, row));
    s->count = s->begun ? s->count : 0;
    s->end = s->count > 0 ? (off_t)(row_word(row, ROW_AT) + row_word(row, ROW_LENGTH) + 1) : 0;
    free(row);
}

/* Opens the file of a history. Returns 0; or -1, with errno set if the history exists and can have
 * one. */
static int store_open(struct store *s, const struct history *h, const struct vectors_model *m)
{
    struct stat st;
    int reason = 0;

    *s = (struct store){.history = h, .model = m, .fd = -1};
    s->row = ROW_WORDS * WORD + (m->dimensions + SIMD_DOT - 1) / SIMD_DOT * SIMD_DOT;
    errno = 0;
    if (!history_index_path(h))
        return -1;
    if (file_stat(h->dir_fd, h->path, &st) < 0) {
        errno = errno == ENOENT ? 0 : errno;
        return -1;
    }
    s->inode = (uint64_t)st.st_ino;
    s->fd = history_open_index(h->dir_fd, h->vectors, O_RDWR | O_CREAT, &reason);
    errno = reason;
    return s->fd < 0 ? -1 : 0;
}

static int store_failed(const struct history *h, struct err *e)
{
    if (errno == EPERM)
        return err_set(e, ERR_USAGE, "'%s' is not a private file of vectors", h->vectors);
    return err_sys(e, errno, "cannot write '%s'", h->vectors);
}

/* Writes rows from the row `first` on. The first ones come after a head. */
static int store_write(struct store *s, size_t first, struct str rows)
{
    char head[HEAD_WORDS * WORD];

    if (!s->begun) {
        fill_head(s, head);
        if (ftruncate(s->fd, 0) < 0 || file_pwrite_all(s->fd, head, sizeof head, 0) < 0)
            return -1;
        s->begun = true;
    }
    return file_pwrite_all(s->fd, rows.p, rows.n, place_of_row(s, first));
}

/* ---- making vectors ---- */

struct batch {
    struct buf texts, rows; /* what the model gets; what it will be stored in */
    size_t count, refused;
};

/* Adds the text of a prompt or an answer, and a row without its vector. */
static void add_row(struct batch *b, const struct store *s, const struct message *m,
                    const struct line *l)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = utf8_first(str_trim(message_content(m, &scratch)), VECTORS_TEXT);
    char *row;

    if ((m->role == ROLE_USER || m->role == ROLE_ASSISTANT) && text.n > 0) {
        json_add_string(&b->texts, text);
        buf_add_byte(&b->texts, '\n');
        row = buf_room(&b->rows, s->row);
        memset(row, 0, s->row);
        le_put(row + ROW_AT * WORD, (uint64_t)l->at);
        le_put(row + ROW_LENGTH * WORD, l->text.n);
        le_put(row + ROW_HASH * WORD, hash64(l->text, 0));
        buf_grew(&b->rows, s->row);
        b->count++;
    }
    buf_release(&scratch);
}

/* Puts the vector that the model made into a row. */
static void fill_row(struct batch *b, const struct store *s, char *row, struct str json)
{
    struct vector v;
    uint32_t bits;

    (void)vector_read(&v, json, NULL);
    if (v.at && v.dimensions == s->model->dimensions) {
        memcpy(&bits, &v.factor, sizeof bits);
        le_put(row + ROW_FACTOR * WORD, bits);
        memcpy(row + ROW_WORDS * WORD, v.at, v.n);
    } else {
        b->refused++;
    }
    free(v.at);
    le_put(row + ROW_SUM * WORD, sum_of_row(s, row));
}

/* Makes the vectors of the messages that are waiting, and stores them from the row `first` on. The
 * model also gets a text that it is known to take. If it refuses all others, they are at fault; if it
 * refuses that one, it is itself at fault, and nothing is stored. */
static int make_vectors_of(struct batch *b, struct store *s, size_t first, struct err *e)
{
    struct buf made = BUF_INIT(SIZE_MAX);
    size_t refused = b->refused;
    struct vector sure = {0};
    struct str rest;
    int rc;

    buf_add_str(&b->texts, s->model->sure);
    rc = s->model->make(s->model->arg, buf_str(&b->texts), &made, e);
    rest = buf_str(&made);
    for (size_t i = 0; rc == 0 && i < b->count; i++)
        fill_row(b, s, b->rows.data + i * s->row, str_cut(&rest, '\n'));
    if (rc == 0)
        rc = vector_read(&sure, str_cut(&rest, '\n'), e);
    free(sure.at);
    if (rc < 0)
        b->refused = refused;
    if (rc == 0 && store_write(s, first, buf_str(&b->rows)) < 0)
        rc = store_failed(s->history, e);
    buf_clear(&b->texts);
    buf_clear(&b->rows);
    buf_release(&made);
    return rc;
}

/* Makes up to `most` rows from `first` on, of the messages that begin at `from`. */
static int make_rows(struct store *s, size_t first, size_t most, off_t from, size_t *refused,
                     struct err *e)
{
    struct batch b = {.texts = BUF_INIT(SIZE_MAX), .rows = BUF_INIT(SIZE_MAX)};
    struct message message = MESSAGE_INIT;
    size_t end = first;
    struct scan scan;
    struct line l;
    int rc = 0, more = 1;

    if (scan_open(&scan, s->history->dir_fd, s->history->path, e) < 0)
        return -1;
    scan_from(&scan, from);
    while (rc == 0 && more > 0) {
        more = most > end - first + b.count ? scan_message(&scan, &message, &l, e) : 0;
        if (more < 0)
            rc = -1;
        if (more > 0 && l.terminated && !message_is_title(&message))
            add_row(&b, s, &message, &l);
        if (rc == 0 && b.count > 0 && (b.count == BATCH_MAX || more == 0)) {
            if (s->model->work)
                s->model->work(&(struct task){"embed", NULL, (uint64_t)from, (uint64_t)scan.size});
            rc = make_vectors_of(&b, s, end, e);
            end += b.count;
            b.count = 0;
            from = scan_offset(&scan);
        }
    }
    *refused += b.refused;
    s->count = end > s->count ? end : s->count;
    scan_close(&scan);
    message_release(&message);
    buf_release(&b.texts);
    buf_release(&b.rows);
    return rc;
}

/* Asks again for the vectors of rows that are damaged, from the row `first` on. The rows around one
 * say which message it is of. */
static int repair(struct store *s, size_t first, struct err *e)
{
    char *row = mem_zalloc(s->row);
    size_t refused = 0;
    off_t from = 0;
    int rc = 0;

    if (first > 0 && read_row(s, first - 1, row))
        first--;
    for (size_t i = first; rc == 0 && i < s->count; i++) {
        if (!read_row(s, i, row)) {
            rc = make_rows(s, i, 1, from, &refused, e);
            if (rc == 0 && !read_row(s, i, row))
                rc = err_set(e, ERR_FAILURE, "'%s' is damaged: remove it", s->history->vectors);
        }
        from = (off_t)(row_word(row, ROW_AT) + row_word(row, ROW_LENGTH) + 1);
    }
    free(row);
    return rc;
}

/* ---- the nearest ---- */

struct nearest {
    struct store *store;
    const struct vector *vector;
    struct vectors_hit *hits;
    size_t count, most;
    size_t next;    /* row */
    size_t damaged; /* the first row that is, or SIZE_MAX */
    struct piece {
        size_t first, end, damaged;
        struct buf rows;
        struct vectors_hit *at;
        size_t count, cap;
    } slots[THREAD_POOL_SLOTS];
};

/* About the bytes of a piece of work, which stay in the cache of a processor. */
#define PIECE_BYTES ((size_t)256 << 10)

static int begin_rows(void *ctx, size_t slot, struct err *e)
{
    struct nearest *x = ctx;
    struct piece *p = &x->slots[slot];
    size_t left = x->store->count - x->next, n = PIECE_BYTES / x->store->row + 1;

    (void)e;
    p->first = x->next;
    x->next = p->end = x->next + (n < left ? n : left);
    return p->first < p->end;
}

static int compare_rows(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct nearest *x = ctx;
    const struct store *s = x->store;
    struct piece *p = &x->slots[slot];
    size_t n = (p->end - p->first) * s->row;
    char *row;

    (void)thread;
    buf_clear(&p->rows);
    p->count = 0;
    p->damaged = SIZE_MAX;
    row = buf_room(&p->rows, n);
    if (file_pread_full(s->fd, row, n, place_of_row(s, p->first)) != (ssize_t)n)
        return err_sys(e, errno, "cannot read '%s'", s->history->vectors);
    for (size_t i = p->first; i < p->end; i++, row += s->row) {
        uint32_t bits = (uint32_t)row_word(row, ROW_FACTOR);
        const int8_t *numbers = (const int8_t *)row + ROW_WORDS * WORD;
        float factor;

        if (row_word(row, ROW_SUM) != sum_of_row(s, row)) {
            p->damaged = p->damaged < i ? p->damaged : i;
            continue;
        }
        memcpy(&factor, &bits, sizeof factor);
        if (factor == 0)
            continue;
        p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
        p->at[p->count++] = (struct vectors_hit){
            (off_t)row_word(row, ROW_AT), (size_t)row_word(row, ROW_LENGTH),
            factor * x->vector->factor * (float)simd_dot(numbers, x->vector->at, x->vector->n)};
    }
    return 0;
}

/* Puts the messages of a piece into their places among the nearest. */
static int join_rows(void *ctx, size_t slot, struct err *e)
{
    struct nearest *x = ctx;
    const struct piece *p = &x->slots[slot];

    (void)e;
    x->damaged = p->damaged < x->damaged ? p->damaged : x->damaged;
    for (size_t i = 0; i < p->count; i++) {
        size_t k = x->count;

        if (k == x->most && p->at[i].score <= x->hits[k - 1].score)
            continue;
        if (k == x->most)
            k--;
        else
            x->count++;
        for (; k > 0 && x->hits[k - 1].score < p->at[i].score; k--)
            x->hits[k] = x->hits[k - 1];
        x->hits[k] = p->at[i];
    }
    return 0;
}

static int compare_vectors(struct nearest *x, struct err *e)
{
    x->count = x->next = 0;
    x->damaged = SIZE_MAX;
    return thread_pool_run(&(struct thread_pool_job){.threads = thread_pool_size(),
                                                     .ctx = x,
                                                     .begin = begin_rows,
                                                     .work = compare_rows,
                                                     .join = join_rows},
                           e);
}

int vectors_nearest(const struct history *h, const struct vectors_model *m, const struct vector *v,
                    struct vectors_found *found, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct store s;
    struct nearest x = {.store = &s, .vector = v, .hits = found->hits, .most = found->most};
    int rc;

    found->count = found->refused = 0;
    if (store_open(&s, h, m) < 0)
        return errno == 0 ? 0 : store_failed(h, e);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        buf_init(&x.slots[i].rows, SIZE_MAX);
    /* Another process may be about to append to it. */
    rc = append_lock(s.fd, h->vectors, &wait, e);
    if (rc == 0) {
        store_load(&s);
        rc = make_rows(&s, s.count, SIZE_MAX, s.end, &found->refused, e);
    }
    if (rc == 0)
        rc = compare_vectors(&x, e);
    if (rc == 0 && x.damaged < SIZE_MAX)
        rc = repair(&s, x.damaged, e) < 0 ? -1 : compare_vectors(&x, e);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        buf_release(&x.slots[i].rows);
        free(x.slots[i].at);
    }
    file_close(s.fd);
    found->count = rc == 0 ? x.count : 0;
    return rc;
}
