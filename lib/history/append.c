#include "chathist/history/append.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"

/* The longest sleep between two attempts at a lock. */
#define NAP_MAX_MS 50
/* How long it is still tried once the caller wants to be gone. */
#define HURRY_MS 80

/* A wait for a lock: until when, and what cuts it short. */
struct patience {
    struct append_wait *wait;
    int64_t deadline; /* time_ticks */
    int64_t tell_at;
    int cancel_fd; /* -1: nothing, or it has happened */
};

/* Sleeps. If the sleep is interrupted by cancel_fd, the rest of the wait becomes short. */
static void nap(struct patience *p, int ms)
{
    struct pollfd cancel = {.fd = p->cancel_fd, .events = POLLIN};
    int64_t soon;

    if (poll(&cancel, 1, ms) <= 0)
        return;
    soon = time_ticks() + HURRY_MS;
    p->cancel_fd = -1;
    if (soon < p->deadline)
        p->deadline = soon;
}

static int acquire_lock(int fd, const char *path, struct patience *p, struct err *e)
{
    int ms = 1;

    /* flock would wait without a limit, and an alarm to end it would interrupt the whole
     * program. */
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return err_sys(e, errno, "cannot lock '%s'", path);
        if (time_ticks() >= p->deadline) {
            p->wait->timed_out = true;
            return err_set(e, ERR_FAILURE, "cannot lock '%s': another program holds it", path);
        }
        if (p->wait->tell && time_ticks() >= p->tell_at) {
            p->wait->tell(path);
            p->tell_at = INT64_MAX;
        }
        nap(p, ms);
        ms = ms * 2 < NAP_MAX_MS ? ms * 2 : NAP_MAX_MS;
    }
    return 0;
}

static struct patience begin_patience(struct append_wait *wait)
{
    int64_t now = time_ticks();

    return (struct patience){wait, now + wait->ms, now + APPEND_TELL_MS, wait->cancel_fd};
}

int append_lock(int fd, const char *path, struct append_wait *wait, struct err *e)
{
    struct patience patience = begin_patience(wait);

    return acquire_lock(fd, path, &patience, e) < 0 ? -1 : 0;
}

static int open_locked(struct append *a, int dir, const char *path, int flags,
                       struct append_wait *wait, struct err *e)
{
    struct patience patience = begin_patience(wait);

    *a = (struct append){.fd = -1, .dir = dir, .path = path};
    for (;;) {
        struct stat st;
        char last = '\n';

        a->fd = file_open_regular_at(dir, path, O_RDWR | O_APPEND | flags, 0600, NULL, NULL, e);
        if (a->fd < 0)
            return -1;
        if (acquire_lock(a->fd, path, &patience, e) < 0)
            break;
        if (fstat(a->fd, &st) < 0) {
            err_sys(e, errno, "cannot open '%s'", path);
            break;
        }
        if (file_refuse_holes(a->fd, &st, path, e) < 0)
            break;
        /* Another program may have renamed a new file over it during the wait, and lines that are
         * appended to the old one would be lost. */
        if (file_is_named(dir, path, a->fd)) {
            a->end = st.st_size;
            a->fresh = st.st_size == 0;
            if (a->end > 0 && file_pread_full(a->fd, &last, 1, a->end - 1) < 0) {
                err_sys(e, errno, "cannot read '%s'", path);
                break;
            }
            a->torn = last != '\n';
            return 0;
        }
        append_close(a);
        if (time_ticks() >= patience.deadline)
            return err_set(e, ERR_FAILURE, "cannot open '%s': it is replaced all the time", path);
    }
    append_close(a);
    return -1;
}

int append_open(struct append *a, int dir, const char *path, struct append_wait *wait,
                struct err *e)
{
    return open_locked(a, dir, path, O_CREAT, wait, e);
}

int append_open_present(struct append *a, int dir, const char *path, struct append_wait *wait,
                        struct err *e)
{
    return open_locked(a, dir, path, 0, wait, e);
}

int append_open_alone(struct append *a, int dir, const char *path, struct append_wait *wait,
                      struct err *e)
{
    struct stat st;

    if (append_open(a, dir, path, wait, e) < 0)
        return -1;
    if (fstat(a->fd, &st) < 0)
        err_sys(e, errno, "cannot write '%s'", path);
    else if (st.st_nlink > 1)
        err_set(e, ERR_FAILURE, "cannot write '%s': it has other names (hard links)", path);
    else
        return 0;
    append_close(a);
    return -1;
}

/* Ends a write that had this result (0, or -1 with errno set): syncs it, or takes it back. */
static int end_write(struct append *a, int written, off_t n, bool sync, struct err *e)
{
    if (written == 0 && sync &&
        (system_sync_data(a->fd) < 0 || (a->fresh && file_sync_dir(a->dir, a->path) < 0)))
        written = -1;
    if (written < 0) {
        int reason = errno;

        /* A sync that failed is not tried again in the hope that it succeeds: the pages may be
         * gone, and the second call would know nothing of it. The lines go instead. */
        if (ftruncate(a->fd, a->end) < 0)
            err_sys(e, reason, "cannot write '%s', and a part stays in it", a->path);
        else
            err_sys(e, reason, "cannot write '%s'", a->path);
        if (sync)
            (void)system_sync_data(a->fd);
        return -1;
    }
    a->end += n + a->torn;
    a->fresh = false;
    a->torn = false;
    return 0;
}

int append_put(struct append *a, struct str lines, bool sync, struct err *e)
{
    struct buf healed = BUF_INIT(SIZE_MAX);
    struct str all = lines;
    int result;

    if (a->torn) {
        buf_add_byte(&healed, '\n');
        buf_add_str(&healed, lines);
        all = buf_str(&healed);
    }
    a->put = (off_t)lines.n;
    result = file_write_all(a->fd, all.p, all.n);
    if (result < 0)
        result = end_write(a, result, 0, sync, e);
    buf_release(&healed);
    return result;
}

int append_finish(struct append *a, bool sync, struct err *e)
{
    return end_write(a, 0, a->put, sync, e);
}

int append_write(struct append *a, struct str lines, bool sync, struct err *e)
{
    return append_put(a, lines, sync, e) < 0 ? -1 : append_finish(a, sync, e);
}

void append_close(struct append *a)
{
    file_close(a->fd);
    a->fd = -1;
}
