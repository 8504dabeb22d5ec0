#include "browse/browse_watch.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/io.h"
#include "chathist/base/le.h"
#include "chathist/history/index_file.h"

/* So much of the beginning is in the sample, and before the end all that is read without an
 * index. */
#define HEAD ((off_t)4 << 10)
#define TAIL INDEX_LEAST

static uint64_t sum_of(int fd, off_t from, off_t to, uint64_t before)
{
    struct buf bytes = BUF_INIT(SIZE_MAX);
    size_t n = (size_t)(to - from);
    char *room = buf_room(&bytes, n);
    ssize_t got = io_pread_full(fd, room, n, from);
    uint64_t sum = le_sum((struct str){room, got < 0 ? 0 : (size_t)got}, before);

    buf_release(&bytes);
    return sum;
}

/* Of the first `size` bytes. 0: they cannot be read. */
static uint64_t sample_of(const char *path, off_t size)
{
    struct stat st;
    int reason, fd = io_open_regular(path, O_RDONLY, 0, &st, &reason, NULL);
    off_t tail = size < TAIL ? 0 : size - TAIL;
    uint64_t sum;

    if (fd < 0)
        return 0;
    sum = sum_of(fd, 0, tail < HEAD ? tail : HEAD, (uint64_t)size);
    sum = sum_of(fd, tail, size, sum) | 1;
    close(fd);
    return sum;
}

static struct browse_watch stamp_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return (struct browse_watch){.exists = false};
    return (struct browse_watch){.exists = true,
                                 .dev = st.st_dev,
                                 .ino = st.st_ino,
                                 .size = st.st_size,
                                 .changed = st.st_ctim};
}

static bool is_same_file(const struct browse_watch *a, const struct browse_watch *b)
{
    return a->exists && b->exists && a->dev == b->dev && a->ino == b->ino;
}

static bool is_same(const struct browse_watch *a, const struct browse_watch *b)
{
    if (!a->exists && !b->exists)
        return true;
    return is_same_file(a, b) && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

enum browse_change browse_watch_look(struct browse_watch *w, const char *path)
{
    struct browse_watch before = *w, now = stamp_of(path);

    if (is_same(&before, &now))
        return BROWSE_SAME;
    *w = now;
    if (!now.exists)
        return BROWSE_OTHER;
    w->sample = sample_of(path, now.size);
    if (is_same_file(&before, &now) && now.size > before.size && before.sample != 0 &&
        before.sample == sample_of(path, before.size))
        return BROWSE_GROWN;
    return BROWSE_OTHER;
}
