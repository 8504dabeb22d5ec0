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
 *     "VECTORS\1", dimensions, hash of the model, inode of the history, checksum of these
 *     for each batch: number of messages, end (an offset in the history), checksum of the batch
 *         for each message: offset, length, hash of the line, factor (the bits of a float), and
 *         the numbers
 */
#define MAGIC (((uint64_t)1 << 56) | 0x53524f54434556) /* VECTORS, and the version */
enum { HEAD_MAGIC, HEAD_DIMENSIONS, HEAD_MODEL, HEAD_INODE, HEAD_SUM, HEAD_WORDS };
enum { BATCH_COUNT, BATCH_END, BATCH_SUM, BATCH_WORDS };
enum { ROW_AT, ROW_LENGTH, ROW_HASH, ROW_FACTOR, ROW_WORDS };
#define WORD sizeof(uint64_t)
/* The most messages of a batch. The server gets them in one request, and a kill loses one batch. */
#define BATCH_MAX ((size_t)32)

static size_t padded(size_t dimensions)
{
    return (dimensions + SIMD_DOT - 1) / SIMD_DOT * SIMD_DOT;
}

static size_t vector_row_size(size_t dimensions)
{
    return ROW_WORDS * WORD + padded(dimensions);
}

/* ---- a vector ---- */

int vector_read(struct vector *v, struct str json, struct err *e)
{
    struct buf numbers = BUF_INIT(VECTORS_DIMENSIONS * sizeof(double));
    struct json_iter it;
    const double *all;
    double most = 0;
    bool usable = json_type(json) == JSON_ARRAY;
    float length;
    size_t n;

    *v = (struct vector){0};
    it = json_iter(json);
    while (usable && json_next(&it)) {
        /* A number in an array is followed by a comma, white space or a bracket. */
        double number = json_type(it.value) == JSON_NUMBER ? strtod(it.value.p, NULL) : NAN;

        buf_add(&numbers, (const char *)&number, sizeof number);
        usable = isfinite(number) && !numbers.overflow;
        most = number > most ? number : -number > most ? -number : most;
    }
    all = (const double *)(const void *)numbers.data;
    n = numbers.len / sizeof *all;
    if (!usable || most == 0) {
        buf_release(&numbers);
        return err_set(e, ERR_FAILURE, "the server sent a vector that cannot be used");
    }
    v->dimensions = n;
    v->n = padded(n);
    v->at = mem_zalloc(v->n);
    for (size_t i = 0; i < n; i++)
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

struct batch {
    off_t at; /* of its rows */
    size_t count;
    uint64_t end, sum;
};

struct store {
    int fd;
    size_t dimensions; /* 0: nothing is stored yet */
    uint64_t model, inode;
    off_t size; /* of the head and the batches that are whole */
    off_t end;  /* the offset in the history up to which vectors were made */
    struct batch *batches;
    size_t count, cap;
};

static uint64_t sum_of_batch(uint64_t count, uint64_t end, struct str rows)
{
    uint64_t words[] = {count, end};

    return hash64(rows, checksum_words(words, 2, 0));
}

static void store_forget(struct store *s)
{
    s->dimensions = s->count = 0;
    s->size = s->end = 0;
}

/* Reads the head and the places of the batches, up to the first that is not whole. */
static void store_read(struct store *s)
{
    char head[HEAD_WORDS * WORD], bytes[BATCH_WORDS * WORD];
    uint64_t w[HEAD_WORDS], b[BATCH_WORDS];
    struct stat st;

    store_forget(s);
    if (fstat(s->fd, &st) < 0 ||
        file_pread_full(s->fd, head, sizeof head, 0) != (ssize_t)sizeof head)
        return;
    le_get_all(w, head, HEAD_WORDS);
    if (w[HEAD_MAGIC] != MAGIC || w[HEAD_SUM] != checksum_words(w, HEAD_SUM, 0) ||
        w[HEAD_MODEL] != s->model || w[HEAD_INODE] != s->inode || w[HEAD_DIMENSIONS] == 0 ||
        w[HEAD_DIMENSIONS] > VECTORS_DIMENSIONS)
        return;
    s->dimensions = (size_t)w[HEAD_DIMENSIONS];
    s->size = (off_t)sizeof head;
    while (file_pread_full(s->fd, bytes, sizeof bytes, s->size) == (ssize_t)sizeof bytes) {
        struct batch batch = {.at = s->size + (off_t)sizeof bytes};

        le_get_all(b, bytes, BATCH_WORDS);
        batch.count = (size_t)b[BATCH_COUNT];
        batch.end = b[BATCH_END];
        batch.sum = b[BATCH_SUM];
        if (batch.count == 0 || batch.count > BATCH_MAX || b[BATCH_END] <= (uint64_t)s->end ||
            b[BATCH_END] > INT64_MAX ||
            batch.at + (off_t)(batch.count * vector_row_size(s->dimensions)) > st.st_size)
            break;
        s->end = (off_t)b[BATCH_END];
        s->size = batch.at + (off_t)(batch.count * vector_row_size(s->dimensions));
        s->batches = mem_grow(s->batches, &s->cap, s->count + 1, sizeof *s->batches);
        s->batches[s->count++] = batch;
    }
}

/* Reads the rows of a batch. Returns false if they are not those that were written. */
static bool read_stored_rows(const struct store *s, const struct batch *b, struct buf *rows)
{
    size_t n = b->count * vector_row_size(s->dimensions);
    char *room;

    buf_clear(rows);
    room = buf_room(rows, n);
    return room && file_pread_full(s->fd, room, n, b->at) == (ssize_t)n &&
           sum_of_batch(b->count, b->end, (struct str){room, n}) == b->sum;
}

/* Returns whether the history has the line of the last message at its place: it has only grown. */
static bool is_of_history(const struct store *s, const struct history *h)
{
    const struct batch *last = &s->batches[s->count - 1];
    struct buf rows = BUF_INIT(SIZE_MAX), line = BUF_INIT(BUF_LINE);
    bool right = read_stored_rows(s, last, &rows);
    int fd = file_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, NULL, NULL, NULL);
    const char *row = rows.data + (last->count - 1) * vector_row_size(s->dimensions);
    size_t n = right ? (size_t)le_get(row + ROW_LENGTH * WORD) : 0;
    char *room = buf_room(&line, n);

    right = right && fd >= 0 && room &&
            file_pread_full(fd, room, n, (off_t)le_get(row)) == (ssize_t)n &&
            hash64((struct str){room, n}, 0) == le_get(row + ROW_HASH * WORD);
    file_close(fd);
    buf_release(&rows);
    buf_release(&line);
    return right;
}

/* Reads what is stored, if it is of the history. */
static void store_load(struct store *s, const struct history *h)
{
    store_read(s);
    if (s->count > 0 && !is_of_history(s, h))
        store_forget(s);
}

/* Opens the file of a history; `flags` are those of open(2). Returns 0; or -1, with errno set if the
 * history exists and can have one. */
static int store_open(struct store *s, const struct history *h, uint64_t model, int flags)
{
    struct stat st;
    int reason = 0;

    *s = (struct store){.fd = -1, .model = model};
    errno = 0;
    if (!history_index_path(h))
        return -1;
    if (file_stat(h->dir_fd, h->path, &st) < 0) {
        errno = errno == ENOENT ? 0 : errno;
        return -1;
    }
    s->inode = (uint64_t)st.st_ino;
    s->fd = history_open_index(h->dir_fd, h->vectors, flags, &reason);
    errno = reason;
    if (s->fd < 0)
        return -1;
    store_load(s, h);
    return 0;
}

static void store_close(struct store *s)
{
    file_close(s->fd);
    free(s->batches);
}

static int store_failed(const struct history *h, struct err *e)
{
    if (errno == EPERM)
        return err_set(e, ERR_USAGE, "'%s' is not a private file of vectors", h->vectors);
    return err_sys(e, errno, "cannot write '%s'", h->vectors);
}

static void put_words(struct buf *out, const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char bytes[WORD];

        le_put(bytes, words[i]);
        buf_add(out, bytes, sizeof bytes);
    }
}

/* Appends a batch, at the beginning after a head. */
static int store_append(struct store *s, size_t dimensions, size_t count, off_t end,
                        struct str rows)
{
    struct buf out = BUF_INIT(SIZE_MAX);
    uint64_t batch[BATCH_WORDS] = {count, (uint64_t)end, sum_of_batch(count, (uint64_t)end, rows)};
    uint64_t head[HEAD_WORDS] = {MAGIC, dimensions, s->model, s->inode};
    int rc = 0;

    if (s->dimensions == 0) {
        head[HEAD_SUM] = checksum_words(head, HEAD_SUM, 0);
        put_words(&out, head, HEAD_WORDS);
        s->size = 0;
        rc = ftruncate(s->fd, 0);
    }
    put_words(&out, batch, BATCH_WORDS);
    buf_add_str(&out, rows);
    if (rc == 0)
        rc = file_pwrite_all(s->fd, out.data, out.len, s->size);
    if (rc == 0) {
        s->dimensions = dimensions;
        s->size += (off_t)out.len;
        s->end = end;
    }
    buf_release(&out);
    return rc;
}

/* The model is another one than its name says. */
static int dimensions_differ(const struct history *h, size_t sent, size_t stored, struct err *e)
{
    return err_set(e, ERR_FAILURE,
                   "the server sent a vector of %zu numbers, but '%s' has vectors of %zu: remove "
                   "that file to begin it anew",
                   sent, h->vectors, stored);
}

/* ---- making vectors ---- */

struct made {
    struct store store;
    const struct vectors_model *model;
    struct buf texts; /* of the messages that are waiting */
    off_t at[BATCH_MAX];
    size_t n[BATCH_MAX], count;
    uint64_t hash[BATCH_MAX];
    off_t end;
};

/* Adds the text of a prompt or an answer. */
static void add_message_text(struct made *d, const struct message *m, const struct line *l)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str text = utf8_first(str_trim(message_content(m, &scratch)), VECTORS_TEXT);

    d->end = l->at + (off_t)l->text.n;
    if ((m->role == ROLE_USER || m->role == ROLE_ASSISTANT) && text.n > 0) {
        json_add_string(&d->texts, text);
        buf_add_byte(&d->texts, '\n');
        d->at[d->count] = l->at;
        d->hash[d->count] = hash64(l->text, 0);
        d->n[d->count++] = l->text.n;
    }
    buf_release(&scratch);
}

/* Makes the vectors of the messages that are waiting and stores them. */
static int make_batch(struct made *d, const struct history *h, struct err *e)
{
    struct buf made = BUF_INIT(SIZE_MAX), rows = BUF_INIT(SIZE_MAX);
    size_t dimensions = d->store.dimensions;
    struct str rest;
    int rc = d->model->make(d->model->arg, buf_str(&d->texts), &made, e);

    rest = buf_str(&made);
    for (size_t i = 0; rc == 0 && i < d->count; i++) {
        struct vector v = {0};
        uint32_t bits;

        rc = vector_read(&v, str_cut(&rest, '\n'), e);
        if (rc == 0 && d->store.dimensions > 0 && v.dimensions != d->store.dimensions)
            rc = dimensions_differ(h, v.dimensions, d->store.dimensions, e);
        else if (rc == 0 && dimensions > 0 && v.dimensions != dimensions)
            rc = err_set(e, ERR_FAILURE, "the server sent a vector of %zu numbers instead of %zu",
                         v.dimensions, dimensions);
        if (rc == 0) {
            dimensions = v.dimensions;
            memcpy(&bits, &v.factor, sizeof bits);
            put_words(&rows, (uint64_t[]){(uint64_t)d->at[i], d->n[i], d->hash[i], bits},
                      ROW_WORDS);
            buf_add(&rows, (const char *)v.at, v.n);
        }
        free(v.at);
    }
    if (rc == 0 && store_append(&d->store, dimensions, d->count, d->end, buf_str(&rows)) < 0)
        rc = store_failed(h, e);
    d->count = 0;
    buf_clear(&d->texts);
    buf_release(&made);
    buf_release(&rows);
    return rc;
}

int vectors_update(const struct history *h, const struct vectors_model *m, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct made d = {.model = m, .texts = BUF_INIT(SIZE_MAX)};
    struct message message = MESSAGE_INIT;
    struct scan scan;
    struct line l;
    int rc = 0, more = 1;

    if (store_open(&d.store, h, m->name, O_RDWR | O_CREAT) < 0)
        return errno == 0 ? 0 : store_failed(h, e);
    if (append_lock(d.store.fd, h->vectors, &wait, e) < 0 ||
        scan_open(&scan, h->dir_fd, h->path, e) < 0) {
        store_close(&d.store);
        return -1;
    }
    /* Another process may have appended before this one had the lock. */
    store_load(&d.store, h);
    scan_from(&scan, d.store.end > 0 ? d.store.end + 1 : 0);
    while (rc == 0 && more > 0) {
        more = scan_message(&scan, &message, &l, e);
        if (more < 0)
            rc = -1;
        if (more > 0 && l.terminated && !message_is_title(&message))
            add_message_text(&d, &message, &l);
        if (rc == 0 && d.count > 0 && (d.count == BATCH_MAX || more == 0))
            rc = make_batch(&d, h, e);
    }
    scan_close(&scan);
    message_release(&message);
    buf_release(&d.texts);
    store_close(&d.store);
    return rc;
}

/* ---- the nearest ---- */

struct nearest {
    const struct store *store;
    const struct vector *vector;
    struct vectors_hit *hits;
    size_t count, most;
    size_t next; /* batch */
    struct found {
        struct buf rows;
        size_t first, end;
        struct vectors_hit *at;
        size_t count, cap;
    } slots[THREAD_POOL_SLOTS];
};

/* Batches of a piece of work. */
#define PIECE_BATCHES ((size_t)32)

static int begin_batches(void *ctx, size_t slot, struct err *e)
{
    struct nearest *x = ctx;
    struct found *f = &x->slots[slot];

    (void)e;
    f->first = x->next;
    f->count = 0;
    x->next += PIECE_BATCHES;
    if (x->next > x->store->count)
        x->next = x->store->count;
    f->end = x->next;
    return f->first < f->end;
}

static int compare_batches(void *ctx, size_t slot, size_t thread, struct err *e)
{
    struct nearest *x = ctx;
    struct found *f = &x->slots[slot];
    size_t size = vector_row_size(x->store->dimensions);

    (void)thread;
    (void)e;
    for (size_t i = f->first; i < f->end; i++) {
        if (!read_stored_rows(x->store, &x->store->batches[i], &f->rows))
            continue;
        for (size_t k = 0; k < x->store->batches[i].count; k++) {
            const char *row = f->rows.data + k * size;
            const int8_t *numbers = (const int8_t *)row + ROW_WORDS * WORD;
            uint32_t bits = (uint32_t)le_get(row + ROW_FACTOR * WORD);
            float factor;

            memcpy(&factor, &bits, sizeof factor);
            f->at = mem_grow(f->at, &f->cap, f->count + 1, sizeof *f->at);
            f->at[f->count++] = (struct vectors_hit){
                (off_t)le_get(row), (size_t)le_get(row + ROW_LENGTH * WORD),
                factor * x->vector->factor * (float)simd_dot(numbers, x->vector->at, x->vector->n)};
        }
    }
    return 0;
}

/* Puts the messages of a piece into their places among the nearest. */
static int join_batches(void *ctx, size_t slot, struct err *e)
{
    struct nearest *x = ctx;
    const struct found *f = &x->slots[slot];

    (void)e;
    for (size_t i = 0; i < f->count; i++) {
        size_t k = x->count;

        if (k == x->most && f->at[i].score <= x->hits[k - 1].score)
            continue;
        if (k == x->most)
            k--;
        else
            x->count++;
        for (; k > 0 && x->hits[k - 1].score < f->at[i].score; k--)
            x->hits[k] = x->hits[k - 1];
        x->hits[k] = f->at[i];
    }
    return 0;
}

int vectors_nearest(const struct history *h, uint64_t model, const struct vector *v,
                    struct vectors_hit *hits, size_t most, size_t *count, struct err *e)
{
    struct nearest x = {.vector = v, .hits = hits, .most = most};
    struct store s;
    int rc = 0;

    *count = 0;
    if (store_open(&s, h, model, O_RDONLY) < 0)
        return 0;
    if (s.dimensions > 0 && s.dimensions != v->dimensions)
        rc = dimensions_differ(h, v->dimensions, s.dimensions, e);
    x.store = &s;
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++)
        buf_init(&x.slots[i].rows, SIZE_MAX);
    if (s.dimensions == v->dimensions && most > 0)
        (void)thread_pool_run(&(struct thread_pool_job){.threads = thread_pool_size(),
                                                        .ctx = &x,
                                                        .begin = begin_batches,
                                                        .work = compare_batches,
                                                        .join = join_batches},
                              NULL);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        buf_release(&x.slots[i].rows);
        free(x.slots[i].at);
    }
    store_close(&s);
    *count = x.count;
    return rc;
}
