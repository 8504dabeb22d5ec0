#include "chathist/history/index_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/le.h"
#include "chathist/base/mem.h"

enum {
    WORD_MAGIC,
    WORD_DEV,
    WORD_INO,
    WORD_SIZE,
    WORD_MTIME,
    WORD_CTIME,
    WORD_HEAD,
    WORD_GENERATION,
    WORD_SUM,
};
#define WORDS ((size_t)INDEX_PREAMBLE / sizeof(uint64_t))
/* The last digit is the version. */
#define MAGIC UINT64_C(0x3258444954534948)
/* So much of the history is in a checksum. */
#define SAMPLE ((size_t)4096)
/* This much of the history is read at once for a checksum of all of it. */
#define SUMMED ((size_t)1 << 20)
/* How often, and how long in milliseconds, it is waited for a writer. */
#define LOOKS 5
#define NAP_MS 1

/* ---- opening ---- */

/* Is it ours alone to write, and no other file by another name? */
static bool is_own(const struct stat *st)
{
    return st->st_uid == geteuid() && (st->st_mode & 022) == 0 && st->st_nlink == 1;
}

int index_file_open(int dir, const char *path, int *errnum)
{
    struct stat st;
    int fd = io_open_regular_at(dir, path, O_RDWR, 0, &st, errnum, NULL);

    if (fd < 0 && (*errnum == EACCES || *errnum == EROFS || *errnum == EPERM))
        fd = io_open_regular_at(dir, path, O_RDONLY, 0, &st, errnum, NULL);
    if (fd >= 0 && (!is_own(&st) || !history_is_sidecar(fd))) {
        close(fd);
        *errnum = EPERM;
        return -1;
    }
    return fd;
}

bool index_file_named(int dir, const char *path, const struct stat *st)
{
    struct stat named;

    return io_stat(dir, path, &named) == 0 && named.st_dev == st->st_dev &&
           named.st_ino == st->st_ino;
}

int index_file_lock(int dir, const char *path)
{
    struct stat st;
    int fd = io_open_regular_at(dir, path, O_RDWR | O_CREAT, 0600, &st, NULL, NULL);

    /* By now it may have been renamed or removed. */
    if (fd >= 0 && (!is_own(&st) || !history_is_sidecar(fd) || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
                    !index_file_named(dir, path, &st))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool index_making_begin(struct index_making *m, int dir, const char *path)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    buf_addf(&name, "%s" HISTORY_INDEX_MAKING, path);
    *m = (struct index_making){.dir = dir, .path = path, .name = buf_detach(&name)};
    m->fd = index_file_lock(m->dir, m->name);
    if (m->fd >= 0 && ftruncate(m->fd, 0) == 0)
        return true;
    if (m->fd >= 0)
        close(m->fd);
    free(m->name);
    return false;
}

bool index_making_end(struct index_making *m, bool whole)
{
    struct stat st;
    /* It may have been removed, and what has its name be another program's, who is still at it. */
    bool ours = fstat(m->fd, &st) == 0 && index_file_named(m->dir, m->name, &st);
    bool put = ours && whole && io_rename(m->dir, m->name, m->path) == 0;

    if (ours && !put)
        io_unlink(m->dir, m->name);
    close(m->fd);
    free(m->name);
    return put;
}

/* ---- the state of a history ---- */

static uint64_t nanoseconds(struct timespec t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

uint64_t index_file_sample(int history_fd, off_t end)
{
    char bytes[SAMPLE];
    size_t n = end < (off_t)SAMPLE ? (size_t)end : SAMPLE;

    /* What cannot be read is like nothing. */
    if (io_pread_full(history_fd, bytes, n, end - (off_t)n) != (ssize_t)n)
        return 0;
    return le_sum((struct str){bytes, n}, 0) | 1;
}

uint64_t index_file_sum(int history_fd, off_t from, off_t to)
{
    char *bytes = mem_zalloc(SUMMED);
    uint64_t sum = 0;

    while (from < to) {
        size_t n = to - from < (off_t)SUMMED ? (size_t)(to - from) : SUMMED;

        if (io_pread_full(history_fd, bytes, n, from) != (ssize_t)n) {
            sum = 0;
            break;
        }
        sum = le_sum((struct str){bytes, n}, sum);
        from += (off_t)n;
    }
    free(bytes);
    return sum;
}

static uint64_t sample_head(int history_fd)
{
    return index_file_sample(history_fd, (off_t)SAMPLE);
}

static void set_state(uint64_t words[WORDS], const struct stat *st)
{
    words[WORD_MAGIC] = MAGIC;
    words[WORD_DEV] = (uint64_t)st->st_dev;
    words[WORD_INO] = (uint64_t)st->st_ino;
    words[WORD_SIZE] = (uint64_t)st->st_size;
    words[WORD_MTIME] = nanoseconds(st->st_mtim);
    words[WORD_CTIME] = nanoseconds(st->st_ctim);
}

static int write_preamble(int fd, uint64_t words[WORDS])
{
    char bytes[INDEX_PREAMBLE];

    words[WORD_SUM] = le_sum_words(words, WORD_SUM, 0);
    for (size_t i = 0; i < WORDS; i++)
        le_put(bytes + i * sizeof(*words), words[i]);
    return pwrite(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) ? 0 : -1;
}

/* Another program may be writing it. */
static bool read_preamble(int fd, uint64_t words[WORDS])
{
    char bytes[INDEX_PREAMBLE];

    for (int i = 0; i < LOOKS; i++) {
        if (io_pread_full(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
            return false;
        le_get_all(words, bytes, WORDS);
        if (words[WORD_SUM] == le_sum_words(words, WORD_SUM, 0))
            return words[WORD_MAGIC] == MAGIC;
    }
    return false;
}

/* Like no other one of this history, and never 0. */
static uint64_t new_generation(const struct stat *st)
{
    uint64_t words[] = {(uint64_t)clock_now(), (uint64_t)getpid(), nanoseconds(st->st_ctim)};

    return le_sum_words(words, sizeof(words) / sizeof(*words), 0) | 1;
}

int index_file_begin(int fd, int history_fd, const struct stat *st, uint64_t generation)
{
    uint64_t words[WORDS] = {[WORD_HEAD] = sample_head(history_fd),
                             [WORD_GENERATION] = generation ? generation : new_generation(st)};

    set_state(words, st);
    return write_preamble(fd, words);
}

void index_file_note(int fd, const struct stat *st, bool ours)
{
    uint64_t words[WORDS];

    if (!read_preamble(fd, words))
        return;
    if (!ours)
        words[WORD_GENERATION] = new_generation(st);
    set_state(words, st);
    if (write_preamble(fd, words) < 0)
        errno = 0; /* it is as it was, or none at all */
}

/* *unsure: it is as long as it was, but seems to be changed. */
static enum index_state compare(const uint64_t words[WORDS], const struct stat *st, bool *unsure)
{
    uint64_t now[WORDS];

    set_state(now, st);
    *unsure = false;
    if (words[WORD_DEV] != now[WORD_DEV] || words[WORD_INO] != now[WORD_INO] ||
        words[WORD_SIZE] > now[WORD_SIZE])
        return INDEX_OTHER;
    if (words[WORD_SIZE] < now[WORD_SIZE])
        return INDEX_GROWN;
    *unsure = words[WORD_MTIME] != now[WORD_MTIME] || words[WORD_CTIME] != now[WORD_CTIME];
    return *unsure ? INDEX_OTHER : INDEX_SAME;
}

enum index_state index_file_state(int fd, int history_fd, struct stat *st)
{
    enum index_state state = INDEX_OTHER;
    uint64_t words[WORDS];
    bool unsure = true;

    for (int i = 0; i < LOOKS && unsure; i++) {
        if (i > 0)
            io_wait(-1, NAP_MS);
        /* The history is looked at last: so it is never older than what the preamble says. */
        if (!read_preamble(fd, words) || fstat(history_fd, st) < 0)
            return INDEX_OTHER;
        state = compare(words, st, &unsure);
    }
    if (state != INDEX_OTHER && words[WORD_HEAD] != sample_head(history_fd))
        return INDEX_OTHER;
    return state;
}

static uint64_t generation(int fd)
{
    uint64_t words[WORDS];

    return read_preamble(fd, words) ? words[WORD_GENERATION] : 0;
}

uint64_t index_file_generation(int dir, const char *path, int history_fd)
{
    struct stat st;
    uint64_t now = 0;
    int reason, fd = index_file_open(dir, path, &reason);

    if (fd < 0)
        return 0;
    now = generation(fd);
    /* Another one may begin while the history is looked at. */
    if (index_file_state(fd, history_fd, &st) != INDEX_SAME || generation(fd) != now)
        now = 0;
    close(fd);
    return now;
}

/* Puts one without segments in the place of what is there. */
static void make_empty(const struct history *h, int history_fd)
{
    struct index_making m;
    struct stat st;

    if (index_making_begin(&m, h->dir_fd, history_index(h)))
        (void)index_making_end(&m, fstat(history_fd, &st) == 0 &&
                                       index_file_begin(m.fd, history_fd, &st, 0) == 0);
}

uint64_t index_file_ready(const struct history *h, int history_fd)
{
    const char *path = history_index(h);
    enum index_state state = INDEX_OTHER;
    struct stat st;
    int reason = 0, fd = path ? index_file_open(h->dir_fd, path, &reason) : -1;

    if (!path || (fd < 0 && reason != ENOENT))
        return 0;
    if (fd >= 0) {
        state = index_file_state(fd, history_fd, &st);
        close(fd);
    }
    /* After growth nobody has compared the segments with the lines: index_open does, and notes it. */
    if (state != INDEX_SAME)
        make_empty(h, history_fd);
    return index_file_generation(h->dir_fd, path, history_fd);
}

/* ---- who appends ---- */

void index_watch_begin(struct index_watch *w, const struct history *h, int history_fd)
{
    const char *path = history_index(h);
    struct stat st;
    enum index_state state;
    int reason;

    w->fd = path ? index_file_open(h->dir_fd, path, &reason) : -1;
    if (w->fd < 0)
        return;
    state = index_file_state(w->fd, history_fd, &st);
    if (state == INDEX_SAME)
        return;
    /* When it has grown, it would look as if only that had happened to it. */
    if (state == INDEX_OTHER)
        history_remove_index(h);
    close(w->fd);
    w->fd = -1;
}

void index_watch_note(void *watch, int history_fd)
{
    const struct index_watch *w = watch;
    struct stat st;

    if (w->fd >= 0 && fstat(history_fd, &st) == 0)
        index_file_note(w->fd, &st, true);
}

void index_watch_end(struct index_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}
