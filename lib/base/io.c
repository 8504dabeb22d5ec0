#include "chathist/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chathist/base/clock.h"
#include "chathist/base/path.h"

/* The most bytes that one read asks for. */
#define READ_SIZE ((size_t)1 << 16)

int io_fill_std_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;

        /* open(2) returns the lowest free number, fd. It is inherited over exec(2), so that a child
         * has three standard streams, too. */
        int got = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_NOCTTY);

        if (got < 0)
            return -1;
        if (got != fd) {
            close(got);
            errno = EBADF;
            return -1;
        }
    }
    return 0;
}

/* Returns the end of a message about a file that is not regular. */
static const char *kind_name(mode_t mode)
{
    if (S_ISDIR(mode))
        return "is a directory";
    if (S_ISLNK(mode))
        return "is a symbolic link";
    if (S_ISFIFO(mode))
        return "is a FIFO";
    if (S_ISSOCK(mode))
        return "is a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return "is a device";
    return "is not a regular file";
}

static int kind_errno(mode_t mode)
{
    if (S_ISDIR(mode))
        return EISDIR;
    return S_ISLNK(mode) ? ELOOP : EINVAL;
}

/* The name to use with openat(2) and its relatives. */
static const char *name_in(int dir, const char *path)
{
    return dir == IO_CWD ? path : path_base(path);
}

int io_stat(int dir, const char *path, struct stat *st)
{
    if (dir == IO_ABSENT) {
        errno = ENOENT;
        return -1;
    }
    return fstatat(dir, name_in(dir, path), st, AT_SYMLINK_NOFOLLOW);
}

int io_unlink(int dir, const char *path)
{
    if (dir == IO_ABSENT) {
        errno = ENOENT;
        return -1;
    }
    return dir == IO_CWD ? unlink(path) : unlinkat(dir, path_base(path), 0);
}

int io_rename(int dir, const char *from, const char *to)
{
    if (dir == IO_CWD)
        return rename(from, to);
    return renameat(dir, path_base(from), dir, path_base(to));
}

/* openat(2) repeated over EINTR; a file that this makes has exactly `mode`, whatever the umask. */
static int open_exact(int dir, const char *path, int flags, mode_t mode)
{
    int fd;

    if (dir == IO_ABSENT) {
        errno = ENOENT;
        return -1;
    }
    do {
        fd = openat(dir, name_in(dir, path), flags, mode);
    } while (fd < 0 && errno == EINTR);
    if (fd >= 0 && (flags & O_CREAT) && (flags & O_EXCL) && fchmod(fd, mode) < 0) {
        int saved = errno;

        close(fd);
        io_unlink(dir, path);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Opens the file, or creates it in a second call, so that the mode of a new file can be set. */
static int open_or_create(int dir, const char *path, int flags, mode_t mode)
{
    if (!(flags & O_CREAT) || (flags & O_EXCL))
        return open_exact(dir, path, flags, mode);

    int fd = -1;

    /* Another process may remove it or make it between the two calls. */
    for (int tries = 0; tries < 100; tries++) {
        fd = open_exact(dir, path, flags & ~O_CREAT, mode);
        if (fd >= 0 || errno != ENOENT)
            break;
        fd = open_exact(dir, path, flags | O_EXCL, mode);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    return fd;
}

/* Sets *e to why `path` could not be opened; if it is no regular file, to what it is. */
static int open_failed(int dir, const char *path, int errnum, struct err *e)
{
    struct stat st;
    bool special = errnum == ELOOP || errnum == ENXIO || errnum == EISDIR || errnum == ENODEV;

    /* ELOOP may also come from the directories above: then lstat fails or shows no link. */
    if (special && io_stat(dir, path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, kind_name(st.st_mode));
    return err_sys(e, errnum, "cannot open '%s'", path);
}

int io_check_regular(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, kind_name(st.st_mode));
    return 0;
}

int io_open_regular_at(int dir, const char *path, int flags, mode_t mode, struct stat *st,
                       int *errnum, struct err *e)
{
    struct stat own;
    int reason;

    if (!st)
        st = &own;

    /* With O_NONBLOCK, opening a FIFO does not wait for its other end. For regular files, the only ones
     * that pass the check below, it has no effect. */
    int fd =
        open_or_create(dir, path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);

    if (fd < 0) {
        reason = errno;
        open_failed(dir, path, reason, e);
        goto out;
    }
    if (fstat(fd, st) < 0) {
        reason = errno;
        err_sys(e, reason, "cannot open '%s'", path);
        goto out;
    }
    if (S_ISREG(st->st_mode))
        return fd;
    reason = kind_errno(st->st_mode);
    err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, kind_name(st->st_mode));

out:
    if (fd >= 0)
        close(fd);
    if (errnum)
        *errnum = reason;
    return -1;
}

int io_open_regular(const char *path, int flags, mode_t mode, struct stat *st, int *errnum,
                    struct err *e)
{
    return io_open_regular_at(IO_CWD, path, flags, mode, st, errnum, e);
}

int io_open_input(const char *path, struct err *e)
{
    struct stat st;
    int fd = open_exact(IO_CWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);

    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    if (fstat(fd, &st) < 0)
        err_sys(e, errno, "cannot open '%s'", path);
    else if (S_ISDIR(st.st_mode))
        err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, kind_name(st.st_mode));
    else
        return fd;
    close(fd);
    return -1;
}

/* Should a failed read or write be repeated? Waits for a descriptor that another program, with which a
 * terminal is shared, has made non-blocking. */
static bool try_again(int fd, short events)
{
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return false;

    struct pollfd pfd = {.fd = fd, .events = events};

    return poll(&pfd, 1, -1) > 0 || errno == EINTR;
}

int io_wait(int fd, int64_t ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    int64_t until = clock_ticks() + ms, left = ms;

    for (;;) {
        int n = poll(&pfd, 1, left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);

        if (n > 0)
            return 1;
        if (n < 0 && errno != EINTR)
            return -1;
        left = until - clock_ticks();
        if (left <= 0)
            return 0;
    }
}

/* An offset of -1 is the position of the descriptor. */
static int write_all(int fd, const char *p, size_t n, off_t offset)
{
    for (size_t done = 0; done < n;) {
        ssize_t some = offset < 0 ? write(fd, p + done, n - done)
                                  : pwrite(fd, p + done, n - done, offset + (off_t)done);

        if (some == 0)
            errno = EIO;
        if (some == 0 || (some < 0 && !try_again(fd, POLLOUT)))
            return -1;
        done += some > 0 ? (size_t)some : 0;
    }
    return 0;
}

int io_write_all(int fd, const void *p, size_t n)
{
    return write_all(fd, p, n, -1);
}

int io_pwrite_all(int fd, const void *p, size_t n, off_t offset)
{
    return write_all(fd, p, n, offset);
}

/* Linux supports this for pipes since 6.4 (pwritev2(2)). */
ssize_t io_write_now(int fd, const void *p, size_t n)
{
#ifdef RWF_NOWAIT
    /* The bytes are not changed, although an iovec has no const. */
    union {
        const void *in;
        void *out;
    } from = {.in = p};
    struct iovec bytes = {.iov_base = from.out, .iov_len = n};

    return pwritev2(fd, &bytes, 1, -1, RWF_NOWAIT);
#else
    (void)fd;
    (void)p;
    (void)n;
    errno = ENOTSUP;
    return -1;
#endif
}

static ssize_t read_some(int fd, void *p, size_t n)
{
    ssize_t got;

    do {
        got = read(fd, p, n);
    } while (got < 0 && try_again(fd, POLLIN));
    return got;
}

ssize_t io_read_full(int fd, void *p, size_t n)
{
    size_t have = 0;

    while (have < n) {
        ssize_t got = read_some(fd, (char *)p + have, n - have);

        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

ssize_t io_pread_full(int fd, void *p, size_t n, off_t offset)
{
    size_t have = 0;

    while (have < n) {
        ssize_t got = pread(fd, (char *)p + have, n - have, offset + (off_t)have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

#define HOLE ((off_t)1 << 20)

/* Returns the first offset with data at `at` or after it; `none` if only holes follow, and `at` if the
 * file system does not support the question. */
static off_t data_from(int fd, off_t at, off_t none)
{
    off_t data = at;

#ifdef SEEK_DATA
    data = lseek(fd, at, SEEK_DATA);
    if (data < 0)
        data = errno == ENXIO ? none : at;
#endif
    return data;
}

bool io_is_sparse(int fd, const struct stat *st)
{
#ifdef SEEK_HOLE
    /* Compression also saves blocks. */
    if (st->st_blocks < (st->st_size - HOLE) / 512) {
        off_t hole = lseek(fd, 0, SEEK_HOLE);

        return hole >= 0 && hole < st->st_size;
    }
#endif
    return false;
}

off_t io_hole_end(int fd, off_t at, off_t size)
{
    off_t data = data_from(fd, at, size);

    return data < size ? data : size;
}

off_t io_hole_begin(int fd, off_t at)
{
    off_t step = HOLE;
    bool growing = true;

    while (at > 0 && step >= HOLE) {
        off_t from = at > step ? at - step : 0;

        if (data_from(fd, from, at) < at) {
            growing = false;
            step /= 2;
        } else {
            at = from;
            step = growing ? step * 2 : step;
        }
    }
    return at;
}

int io_read_some(int fd, struct buf *b)
{
    size_t left = b->max - b->len;
    size_t want = left < READ_SIZE ? left : READ_SIZE;
    char beyond = '\0';
    /* At the maximum, reading one more byte shows whether the file ends there. */
    char *to = want ? buf_room(b, want) : &beyond;
    ssize_t got = to ? read_some(fd, to, want ? want : 1) : 1;

    if (got <= 0)
        return (int)got;
    if (!to || to == &beyond) {
        b->overflow = true;
        errno = EFBIG;
        return -1;
    }
    buf_grew(b, (size_t)got);
    return 1;
}

int io_read_all(int fd, struct buf *b)
{
    int more;

    do {
        more = io_read_some(fd, b);
    } while (more > 0);
    return more;
}

static int read_and_close(int fd, const char *path, struct buf *b, struct err *e)
{
    int result = io_read_all(fd, b);

    if (result < 0)
        err_sys(e, errno, "cannot read '%s'", path);
    close(fd);
    return result;
}

int io_read_file(const char *path, struct buf *b, struct err *e)
{
    int fd = io_open_input(path, e);

    return fd < 0 ? -1 : read_and_close(fd, path, b, e);
}

int io_read_state_at(int dir, const char *path, struct buf *b, struct err *e)
{
    int reason = 0, fd = io_open_regular_at(dir, path, O_RDONLY, 0, NULL, &reason, e);

    if (fd >= 0)
        return read_and_close(fd, path, b, e) < 0 ? -1 : 1;
    if (reason == ENOENT && e)
        err_release(e);
    return reason == ENOENT ? 0 : -1;
}

int io_read_state(const char *path, struct buf *b, struct err *e)
{
    return io_read_state_at(IO_CWD, path, b, e);
}

/* Locks a new temporary file, so that io_sweep does not remove it. Returns false if io_sweep was
 * faster. Returns true without a lock if the file system has no locks. */
static bool lock_temporary(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &st) < 0 || st.st_nlink > 0;
}

int io_open_temporary(int dir, const char *path, struct buf *name)
{
    int fd = -1;

    /* If a file has the name, a killed process with the same number has left it. */
    for (int n = 0; n < 100 && fd < 0; n++) {
        buf_clear(name);
        buf_addf(name, "%s.%ld.%d" IO_TEMPORARY, path, (long)getpid(), n);
        fd = open_exact(dir, buf_c(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
        if (fd >= 0 && !lock_temporary(fd)) {
            close(fd);
            fd = -1;
        }
    }
    return fd;
}

/* Is the name `base` (any text if that is empty), two numbers with a dot before each, and
 * IO_TEMPORARY? */
static bool is_temporary_name(struct str name, struct str base)
{
    size_t n = name.n;

    if (!str_starts(name, base) || !str_ends(name, STR(IO_TEMPORARY)))
        return false;
    n -= STR(IO_TEMPORARY).n;
    for (int i = 0; i < 2; i++) {
        size_t end = n;

        while (n > base.n && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
            n--;
        if (n == end || n <= base.n || name.p[--n] != '.')
            return false;
    }
    return base.n == 0 || name.p[base.n] == '.';
}

/* Returns 1 if a killed program left the file, and removes it if asked to; else 0, or -1. Its maker
 * holds the lock until the file has another name. */
static int sweep_file(int dir, const char *path, bool remove, struct err *e)
{
    struct stat st, named;
    int fd = io_open_regular_at(dir, path, O_RDONLY, 0, &st, NULL, NULL);
    int left = fd >= 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
               io_stat(dir, path, &named) == 0 && named.st_ino == st.st_ino;

    if (left && remove && io_unlink(dir, path) < 0 && errno != ENOENT)
        left = err_sys(e, errno, "cannot remove '%s'", path);
    if (fd >= 0)
        close(fd);
    return left;
}

DIR *io_open_dir(int dir, const char *parent)
{
    int fd = open_exact(dir, dir == IO_CWD ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !list)
        close(fd);
    return list;
}

int io_sweep(int dir, const char *path, bool beside, bool remove, struct err *e)
{
    struct str base = beside ? str_of(path_base(path)) : STR("");
    char *parent = path_parent(path);
    DIR *list = io_open_dir(dir, parent);
    struct dirent *entry;
    int count = 0, left = 0;

    while (list && left >= 0 && (entry = readdir(list))) {
        char *file;

        if (!is_temporary_name(str_of(entry->d_name), base))
            continue;
        file = path_join(parent, entry->d_name);
        left = sweep_file(dir, file, remove, e);
        count += left;
        free(file);
    }
    if (list)
        closedir(list);
    free(parent);
    return left < 0 ? -1 : count;
}

static int write_failed(const char *path, struct err *e)
{
    return err_sys(e, errno, "cannot write '%s'", path);
}

int io_replace_begin_at(struct io_replace *r, int dir, const char *path, struct err *e)
{
    struct stat st;

    *r = (struct io_replace){.fd = -1, .dir = dir, .path = path};
    buf_init(&r->name, BUF_SMALL);
    if (io_stat(dir, path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot write '%s': %s", path, kind_name(st.st_mode));
    r->fd = io_open_temporary(dir, path, &r->name);
    if (r->fd < 0) {
        write_failed(path, e);
        buf_release(&r->name);
        return -1;
    }
    return 0;
}

int io_replace_begin(struct io_replace *r, const char *path, struct err *e)
{
    return io_replace_begin_at(r, IO_CWD, path, e);
}

int io_replace_end(struct io_replace *r, struct err *e)
{
    int result = r->unsynced ? 0 : fsync(r->fd);

    if (result == 0)
        result = io_rename(r->dir, buf_c(&r->name), r->path);
    if (result < 0) {
        write_failed(r->path, e);
        io_replace_drop(r);
        return -1;
    }
    /* fsync has reported any failure. */
    close(r->fd);
    buf_release(&r->name);
    return !r->unsynced && io_sync_dir(r->dir, r->path) < 0 ? write_failed(r->path, e) : 0;
}

void io_replace_drop(struct io_replace *r)
{
    int saved = errno;

    close(r->fd);
    io_unlink(r->dir, buf_c(&r->name));
    buf_release(&r->name);
    errno = saved;
}

int io_replace_file_at(int dir, const char *path, struct str content, bool sync, struct err *e)
{
    struct io_replace r;

    if (io_replace_begin_at(&r, dir, path, e) < 0)
        return -1;
    r.unsynced = !sync;
    if (io_write_all(r.fd, content.p, content.n) < 0) {
        write_failed(path, e);
        io_replace_drop(&r);
        return -1;
    }
    return io_replace_end(&r, e);
}

int io_replace_file(const char *path, struct str content, struct err *e)
{
    return io_replace_file_at(IO_CWD, path, content, true, e);
}

/* Syncs a directory. Some network file systems cannot sync directories and need not. */
static int sync_dir(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL ? 0 : -1;
}

int io_sync_dir(int dir, const char *path)
{
    return dir == IO_CWD ? io_sync_dir_of(path) : sync_dir(dir);
}

int io_sync_dir_of(const char *path)
{
    char *dir = path_parent(path);
    int fd = open_exact(IO_CWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int result = fd < 0 ? -1 : sync_dir(fd);
    int saved = errno;

    if (fd >= 0)
        close(fd);
    free(dir);
    errno = saved;
    return result;
}
