#include "chathist/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/base/time.h"

/* The most bytes that one read asks for. */
#define READ_SIZE ((size_t)1 << 16)
#define COPY_SIZE ((size_t)256 << 10)

int file_fill_std_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
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

const char *file_kind_name(mode_t mode)
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

/* The name to use with openat(2) and its relatives. */
static const char *name_in(int dir, const char *path)
{
    return dir == FILE_CWD ? path : path_base(path);
}

int file_stat(int dir, const char *path, struct stat *st)
{
    if (dir == FILE_ABSENT) {
        errno = ENOENT;
        return -1;
    }
    return fstatat(dir, name_in(dir, path), st, AT_SYMLINK_NOFOLLOW);
}

int file_unlink(int dir, const char *path)
{
    if (dir == FILE_ABSENT) {
        errno = ENOENT;
        return -1;
    }
    return dir == FILE_CWD ? unlink(path) : unlinkat(dir, path_base(path), 0);
}

int file_rename(int dir, const char *from, const char *to)
{
    if (dir == FILE_CWD)
        return rename(from, to);
    return renameat(dir, path_base(from), dir, path_base(to));
}

void file_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

bool file_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool file_is_named(int dir, const char *path, int fd)
{
    struct stat named, st;

    return fstat(fd, &st) == 0 && file_stat(dir, path, &named) == 0 && file_is_same(&named, &st);
}

int file_open_exact(int dir, const char *path, int flags, mode_t mode)
{
    int fd;

    if (dir == FILE_ABSENT) {
        errno = ENOENT;
        return -1;
    }
    do {
        fd = openat(dir, name_in(dir, path), flags, mode);
    } while (fd < 0 && errno == EINTR);
    if (fd >= 0 && (flags & O_CREAT) && (flags & O_EXCL) && fchmod(fd, mode) < 0) {
        int saved = errno;

        close(fd);
        file_unlink(dir, path);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Opens the file, or creates it in a second call, so that the mode of a new file can be set. */
static int open_or_create(int dir, const char *path, int flags, mode_t mode)
{
    if (!(flags & O_CREAT) || (flags & O_EXCL))
        return file_open_exact(dir, path, flags, mode);

    int fd = -1;

    /* Another process may remove it or make it between the two calls. */
    for (int tries = 0; tries < 100; tries++) {
        fd = file_open_exact(dir, path, flags & ~O_CREAT, mode);
        if (fd >= 0 || errno != ENOENT)
            break;
        fd = file_open_exact(dir, path, flags | O_EXCL, mode);
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
    if (special && file_stat(dir, path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, file_kind_name(st.st_mode));
    return err_sys(e, errnum, "cannot open '%s'", path);
}

int file_check_regular(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, file_kind_name(st.st_mode));
    return 0;
}

int file_open_regular_at(int dir, const char *path, int flags, mode_t mode, struct stat *st,
                         int *errnum, struct err *e)
{
    struct stat own;
    int reason;

    if (!st)
        st = &own;

    /* With O_NONBLOCK, opening a FIFO does not wait for its other end. For regular files, the only
     * ones that pass the check below, it has no effect. */
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
    reason = S_ISDIR(st->st_mode) ? EISDIR : EINVAL;
    err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, file_kind_name(st->st_mode));

out:
    file_close(fd);
    if (errnum)
        *errnum = reason;
    return -1;
}

int file_open_input(const char *path, struct err *e)
{
    struct stat st;
    int fd = file_open_exact(FILE_CWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);

    if (fd < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    if (fstat(fd, &st) < 0)
        err_sys(e, errno, "cannot open '%s'", path);
    else if (S_ISDIR(st.st_mode))
        err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, file_kind_name(st.st_mode));
    else
        return fd;
    close(fd);
    return -1;
}

/* Returns whether a failed read or write should be repeated. Waits for a descriptor that another
 * program, with which a terminal is shared, has made non-blocking. */
static bool try_again(int fd, short events)
{
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return false;

    struct pollfd pfd = {.fd = fd, .events = events};

    return poll(&pfd, 1, -1) > 0 || errno == EINTR;
}

int file_wait(int fd, int64_t ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    int64_t until = time_ticks() + ms, left = ms;

    for (;;) {
        int n = poll(&pfd, 1, left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);

        if (n > 0)
            return 1;
        if (n < 0 && errno != EINTR)
            return -1;
        left = until - time_ticks();
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

int file_write_all(int fd, const void *p, size_t n)
{
    return write_all(fd, p, n, -1);
}

int file_pwrite_all(int fd, const void *p, size_t n, off_t offset)
{
    return write_all(fd, p, n, offset);
}

ssize_t file_write_now(int fd, const void *p, size_t n)
{
    struct pollfd at = {.fd = fd, .events = POLLOUT};
#ifdef RWF_NOWAIT
    /* Linux supports this for pipes since 6.4 (pwritev2(2)). */
    /* The bytes are not changed, although an iovec has no const. */
    union {
        const void *in;
        void *out;
    } from = {.in = p};
    struct iovec bytes = {.iov_base = from.out, .iov_len = n};

    ssize_t done = pwritev2(fd, &bytes, 1, -1, RWF_NOWAIT);

    if (done >= 0 || errno == EAGAIN || errno == EINTR || errno == EPIPE)
        return done;
#endif
    /* A pipe that can be written accepts this much without waiting. */
    if (poll(&at, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, p, n < PIPE_BUF ? n : PIPE_BUF);
}

/* One read; an offset of -1 is the position of the descriptor. */
static ssize_t read_once(int fd, void *p, size_t n, off_t offset)
{
    ssize_t got;

    do {
        got = offset < 0 ? read(fd, p, n) : pread(fd, p, n, offset);
    } while (got < 0 && try_again(fd, POLLIN));
    return got;
}

static ssize_t read_full(int fd, void *p, size_t n, off_t offset)
{
    size_t have = 0;

    while (have < n) {
        ssize_t got =
            read_once(fd, (char *)p + have, n - have, offset < 0 ? offset : offset + (off_t)have);

        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

ssize_t file_read_full(int fd, void *p, size_t n)
{
    return read_full(fd, p, n, -1);
}

ssize_t file_pread_full(int fd, void *p, size_t n, off_t offset)
{
    if (offset < 0) {
        errno = EINVAL;
        return -1;
    }
    return read_full(fd, p, n, offset);
}

int file_copy(int to, int from, off_t at, off_t n)
{
    struct buf piece = BUF_INIT(COPY_SIZE);
    int error = 0;

    while (n > 0 && error == 0) {
        size_t want = n < (off_t)COPY_SIZE ? (size_t)n : COPY_SIZE;
        ssize_t got = file_pread_full(from, buf_room(&piece, want), want, at);

        if (got != (ssize_t)want)
            error = got < 0 ? errno : EIO;
        else if (file_write_all(to, piece.data, want) < 0)
            error = errno;
        at += (off_t)want;
        n -= (off_t)want;
    }
    buf_release(&piece);
    errno = error;
    return error == 0 ? 0 : -1;
}

#define HOLE ((off_t)1 << 20)

bool file_is_sparse(int fd, const struct stat *st)
{
#ifdef SEEK_HOLE
    /* Compression also saves blocks. */
    if (st->st_blocks < (st->st_size - HOLE) / 512) {
        off_t at = lseek(fd, 0, SEEK_CUR), hole = lseek(fd, 0, SEEK_HOLE);

        /* The caller may read on from where it is. */
        (void)lseek(fd, at, SEEK_SET);
        return hole >= 0 && hole < st->st_size;
    }
#endif
    return false;
}

int file_refuse_holes(int fd, const struct stat *st, const char *path, struct err *e)
{
    if (!file_is_sparse(fd, st))
        return 0;
    return err_set(
        e, ERR_USAGE,
        "'%s' has holes, which none of these programs makes: 'cp --sparse=never' makes a "
        "copy without them",
        path);
}

int file_read_some(int fd, struct buf *b)
{
    size_t left = b->max - b->len;
    size_t want = left < READ_SIZE ? left : READ_SIZE;
    char beyond = '\0';
    /* At the maximum, reading one more byte shows whether the file ends there. */
    char *to = want ? buf_room(b, want) : &beyond;
    ssize_t got = to ? read_once(fd, to, want ? want : 1, -1) : 1;

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

int file_read_all(int fd, struct buf *b)
{
    int more;

    do {
        more = file_read_some(fd, b);
    } while (more > 0);
    return more;
}

static int read_and_close(int fd, const char *path, struct buf *b, struct err *e)
{
    int result = file_read_all(fd, b);

    if (result < 0)
        err_sys(e, errno, "cannot read '%s'", path);
    close(fd);
    return result;
}

int file_read(const char *path, struct buf *b, struct err *e)
{
    int fd = file_open_input(path, e);

    return fd < 0 ? -1 : read_and_close(fd, path, b, e);
}

int file_read_state(const char *path, struct buf *b, struct err *e)
{
    int reason = 0, fd = file_open_regular_at(FILE_CWD, path, O_RDONLY, 0, NULL, &reason, e);

    if (fd >= 0)
        return read_and_close(fd, path, b, e) < 0 ? -1 : 1;
    if (reason == ENOENT && e)
        err_release(e);
    return reason == ENOENT ? 0 : -1;
}

DIR *file_open_dir(int dir, const char *parent)
{
    int fd =
        file_open_exact(dir, dir == FILE_CWD ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !list)
        close(fd);
    return list;
}

/* Syncs a directory. Some network file systems cannot sync directories and need not. */
static int sync_dir(int fd)
{
    return system_sync(fd) == 0 || errno == EINVAL ? 0 : -1;
}

int file_sync_dir(int dir, const char *path)
{
    return dir == FILE_CWD ? file_sync_dir_of(path) : sync_dir(dir);
}

int file_sync_dir_of(const char *path)
{
    char *dir = path_parent(path);
    int fd = file_open_exact(FILE_CWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int result = fd < 0 ? -1 : sync_dir(fd);
    int saved = errno;

    file_close(fd);
    free(dir);
    errno = saved;
    return result;
}

/* ---- directories ---- */

/* Returns 1 if it was made, 0 if it existed, -1 with errno set, ENOENT if the parent is missing. */
static int make_dir(const char *path)
{
    if (mkdir(path, 0700) < 0) {
        /* With a read-only or automounted parent, errno may differ from EEXIST. */
        int saved = errno;
        struct stat st;

        if (saved != ENOENT && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            return 0;
        errno = saved;
        return -1;
    }
    /* The umask may have removed bits. */
    if (chmod(path, 0700) < 0 || file_sync_dir_of(path) < 0)
        return -1;
    return 1;
}

/* Each level of recursion removes a component. The system limits the length of a path, and so the
 * depth. */
static int make_dirs(const char *path)
{
    int made = make_dir(path);

    if (made >= 0 || errno != ENOENT)
        return made;

    char *parent = path_parent(path);
    int above = -1;

    if (strcmp(parent, path) != 0 && strcmp(parent, ".") != 0)
        above = make_dirs(parent);
    free(parent);
    return above < 0 ? -1 : make_dir(path);
}

int file_make_dirs(const char *path, struct err *e)
{
    int made = make_dirs(path);

    if (made < 0)
        return err_sys(e, errno, "cannot make directory '%s'", path);
    return made;
}

/* Opens one directory on the way up. Returns 1; 0 if it is on another file system; -1 with *e set.
 * *fd is -1 if the directory is skipped. */
static int open_step(const char *path, dev_t device, int *fd, struct err *e)
{
    struct stat st;

    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0 && (errno == EACCES || errno == ENOENT || errno == ENOTDIR))
        return 1;
    if (*fd < 0 || fstat(*fd, &st) < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    if (st.st_dev != device || st.st_uid != geteuid()) {
        close(*fd);
        *fd = -1;
    }
    return st.st_dev == device;
}

int file_search_upwards(const char *from, int (*look)(void *arg, int fd, const char *path),
                        void *arg, struct err *e)
{
    struct stat start;
    char *dir;
    int fd = -1, step = 1, found = 0;
    bool top = false;

    if (stat(from, &start) < 0)
        return err_sys(e, errno, "cannot open '%s'", from);
    dir = mem_text(from);
    while (!top && found == 0 && (step = open_step(dir, start.st_dev, &fd, e)) > 0) {
        char *parent = path_parent(dir);

        top = strcmp(parent, dir) == 0 || strcmp(parent, ".") == 0;
        found = look(arg, fd, dir);
        file_close(fd);
        free(dir);
        dir = parent;
    }
    free(dir);
    return step < 0 ? -1 : found;
}
