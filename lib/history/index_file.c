#include "chathist/history/index_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/le.h"

/* The preamble consists of these 64-bit words, little-endian. */
enum {
    WORD_MAGIC,
    WORD_DEV,
    WORD_INO,
    WORD_SIZE,
    WORD_MTIME,
    WORD_CTIME,
    WORD_HEAD,
    WORD_TAIL,
    WORD_GENERATION,
    WORD_SALT,
    WORD_SUM,
};
#define WORDS ((size_t)INDEX_PREAMBLE / sizeof(uint64_t))
/* "HISTIDX3": the last character is the version. */
#define MAGIC UINT64_C(0x3358444954534948)
/* This many bytes of the history are in each of the two checksums. */
#define SAMPLE ((size_t)4096)
/* Another program may be writing the preamble while it is read. */
#define READ_TRIES 5

/* ---- opening ---- */

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

    /* It may have been renamed or removed before it was locked. */
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
    /* If it was removed meanwhile, a file of that name belongs to another program. */
    bool ours = fstat(m->fd, &st) == 0 && index_file_named(m->dir, m->name, &st);
    bool put = ours && whole && io_rename(m->dir, m->name, m->path) == 0;

    if (ours && !put)
        io_unlink(m->dir, m->name);
    close(m->fd);
    free(m->name);
    return put;
}

/* ---- the preamble ---- */

static uint64_t nanoseconds(struct timespec t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Returns a checksum of the last bytes before `end`, or of all if they are fewer; 0 on error. */
static uint64_t sample(int history_fd, off_t end)
{
    char bytes[SAMPLE];
    size_t n = end < (off_t)SAMPLE ? (size_t)end : SAMPLE;

    if (io_pread_full(history_fd, bytes, n, end - (off_t)n) != (ssize_t)n)
        return 0;
    return le_sum((struct str){bytes, n}, 0) | 1;
}

static uint64_t sample_head(int history_fd, off_t size)
{
    return sample(history_fd, size < (off_t)SAMPLE ? size : (off_t)SAMPLE);
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

static bool read_preamble(int fd, uint64_t words[WORDS])
{
    char bytes[INDEX_PREAMBLE];

    for (int i = 0; i < READ_TRIES; i++) {
        if (io_pread_full(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
            return false;
        le_get_all(words, bytes, WORDS);
        if (words[WORD_SUM] == le_sum_words(words, WORD_SUM, 0))
            return words[WORD_MAGIC] == MAGIC;
    }
    return false;
}

/* Returns a number that is never 0, and different each time. */
static uint64_t new_generation(const struct stat *st)
{
    uint64_t words[] = {(uint64_t)clock_now(), (uint64_t)getpid(), nanoseconds(st->st_ctim)};

    return le_sum_words(words, sizeof(words) / sizeof(*words), 0) | 1;
}

int index_file_note(int fd, int history_fd, const struct stat *st, const struct index_stamp *stamp)
{
    uint64_t words[WORDS] = {[WORD_HEAD] = sample_head(history_fd, st->st_size),
                             [WORD_TAIL] = sample(history_fd, st->st_size),
                             [WORD_GENERATION] =
                                 stamp->generation ? stamp->generation : new_generation(st),
                             [WORD_SALT] = stamp->salt};
    char bytes[INDEX_PREAMBLE];

    set_state(words, st);
    words[WORD_SUM] = le_sum_words(words, WORD_SUM, 0);
    for (size_t i = 0; i < WORDS; i++)
        le_put(bytes + i * sizeof(*words), words[i]);
    return pwrite(fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes) ? 0 : -1;
}

static enum index_state compare(const uint64_t words[WORDS], const struct stat *st)
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

enum index_state index_file_state(int fd, int history_fd, struct stat *st,
                                  struct index_stamp *stamp)
{
    uint64_t words[WORDS];
    enum index_state state;

    /* The history is looked at last, so that it is never older than the preamble. */
    if (!read_preamble(fd, words) || fstat(history_fd, st) < 0)
        return INDEX_OTHER;
    state = compare(words, st);
    if (state == INDEX_OTHER ||
        words[WORD_HEAD] != sample_head(history_fd, (off_t)words[WORD_SIZE]) ||
        words[WORD_TAIL] != sample(history_fd, (off_t)words[WORD_SIZE]))
        return INDEX_OTHER;
    *stamp = (struct index_stamp){words[WORD_GENERATION], words[WORD_SALT]};
    return state;
}

/* ---- the generation ---- */

/* `note`: of a history that has grown, a new generation is noted. */
static uint64_t find_generation(int dir, const char *path, int history_fd, bool note)
{
    struct index_stamp stamp = {0};
    enum index_state state;
    struct stat st;
    int reason, fd = index_file_open(dir, path, &reason);

    if (fd < 0)
        return 0;
    state = index_file_state(fd, history_fd, &st, &stamp);
    stamp.generation = state == INDEX_SAME ? stamp.generation : 0;
    if (state == INDEX_GROWN && note && index_file_note(fd, history_fd, &st, &stamp) == 0)
        (void)index_file_state(fd, history_fd, &st, &stamp);
    close(fd);
    return stamp.generation;
}

uint64_t index_file_generation(int dir, const char *path, int history_fd)
{
    return find_generation(dir, path, history_fd, false);
}

uint64_t index_file_ready(const struct history *h, int history_fd)
{
    const char *path = history_index(h);
    uint64_t generation = path ? find_generation(h->dir_fd, path, history_fd, true) : 0;
    struct index_stamp none = {0};
    struct index_making m;
    struct stat st;
    int reason, fd;

    if (!path || generation)
        return generation;
    fd = index_file_open(h->dir_fd, path, &reason);
    if (fd >= 0)
        close(fd);
    else if (reason != ENOENT)
        return 0;
    if (index_making_begin(&m, h->dir_fd, path))
        (void)index_making_end(&m, fstat(history_fd, &st) == 0 &&
                                       index_file_note(m.fd, history_fd, &st, &none) == 0);
    return index_file_generation(h->dir_fd, path, history_fd);
}
