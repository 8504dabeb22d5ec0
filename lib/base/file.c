#include "chathist/base/file.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#include "chathist/base/buf.h"
#include "chathist/base/memory.h"
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

/* openat(2) repeated over EINTR; a file that this makes has exactly `mode`, whatever the umask. */
static int open_exact(int dir, const char *path, int flags, mode_t mode)
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
    if (special && file_stat(dir, path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, kind_name(st.st_mode));
    return err_sys(e, errnum, "cannot open '%s'", path);
}

int file_check_regular(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_sys(e, errno, "cannot open '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, kind_name(st.st_mode));
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
    reason = kind_errno(st->st_mode);
    err_set(e, ERR_FAILURE, "cannot open '%s': %s", path, kind_name(st->st_mode));

out:
    file_close(fd);
    if (errnum)
        *errnum = reason;
    return -1;
}

int file_open_regular(const char *path, int flags, mode_t mode, struct stat *st, int *errnum,
                      struct err *e)
{
    return file_open_regular_at(FILE_CWD, path, flags, mode, st, errnum, e);
}

int file_open_input(const char *path, struct err *e)
{
    struct stat st;
    int fd = open_exact(FILE_CWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);

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

/* Should a failed read or write be repeated? Waits for a descriptor that another program, with
 * which a terminal is shared, has made non-blocking. */
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

/* Linux supports this for pipes since 6.4 (pwritev2(2)). */
ssize_t file_write_now(int fd, const void *p, size_t n)
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

/* One read; an offset of -1 is the position of the descriptor. */
static ssize_t read_some(int fd, void *p, size_t n, off_t offset)
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
            read_some(fd, (char *)p + have, n - have, offset < 0 ? offset : offset + (off_t)have);

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
    ssize_t got = to ? read_some(fd, to, want ? want : 1, -1) : 1;

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

/* Locks a new temporary file, so that file_sweep does not remove it. Returns false if file_sweep
 * was faster, which may only have counted the file. Returns true without a lock if the file system
 * has no locks. */
static bool lock_temporary(int fd)
{
    struct stat st;

    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &st) < 0 || st.st_nlink > 0;
}

int file_open_temporary(int dir, const char *path, struct buf *name)
{
    int fd = -1;

    /* If a file has the name, a killed process with the same number has left it. */
    for (int n = 0; n < 100 && fd < 0; n++) {
        buf_clear(name);
        buf_addf(name, "%s.%ld.%d" FILE_TEMPORARY, path, (long)getpid(), n);
        fd = open_exact(dir, buf_c(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
        if (fd >= 0 && !lock_temporary(fd)) {
            (void)file_unlink(dir, buf_c(name));
            close(fd);
            fd = -1;
        }
    }
    return fd;
}

/* Returns what stands before the two numbers and FILE_TEMPORARY in a name that file_open_temporary
 * gives; STR_NONE for any other name. */
static struct str name_of_temporary(struct str name)
{
    if (!str_ends(name, STR(FILE_TEMPORARY)))
        return STR_NONE;
    name.n -= STR(FILE_TEMPORARY).n;
    for (int i = 0; i < 2; i++) {
        size_t end = name.n;

        while (name.n > 0 && name.p[name.n - 1] >= '0' && name.p[name.n - 1] <= '9')
            name.n--;
        if (name.n == end || name.n == 0 || name.p[--name.n] != '.')
            return STR_NONE;
    }
    return name;
}

/* Is it the temporary file of a file of that name, or of one whose name continues with a dot? */
static bool is_beside(struct str name, struct str base)
{
    struct str file = name_of_temporary(name);

    return file.p && str_starts(file, base) && (file.n == base.n || file.p[base.n] == '.');
}

/* Returns 1 if a killed program left the file, and removes it if asked to; else 0, or -1. Its maker
 * holds the lock until the file has another name. If it is removed before its maker has locked it,
 * the maker notices (lock_temporary). */
static int sweep_file(int dir, const char *path, bool remove, struct err *e)
{
    struct stat st;
    int fd = file_open_regular_at(dir, path, O_RDONLY, 0, &st, NULL, NULL);
    int left = fd >= 0 && st.st_uid == geteuid() && (remove || st.st_size > 0) &&
               flock(fd, LOCK_EX | LOCK_NB) == 0 && file_is_named(dir, path, fd);

    if (left && remove && file_unlink(dir, path) < 0 && errno != ENOENT)
        left = err_sys(e, errno, "cannot remove '%s'", path);
    file_close(fd);
    return left;
}

DIR *file_open_dir(int dir, const char *parent)
{
    int fd = open_exact(dir, dir == FILE_CWD ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !list)
        close(fd);
    return list;
}

/* Sweeps the files of a directory for which `is_one` returns true. */
static int sweep(int dir, const char *parent, bool (*is_one)(struct str name, struct str arg),
                 struct str arg, bool remove, struct err *e)
{
    DIR *list = file_open_dir(dir, parent);
    struct dirent *entry;
    int count = 0, left = 0;

    while (list && left >= 0 && (entry = readdir(list))) {
        char *file;

        if (!is_one(str_of(entry->d_name), arg))
            continue;
        file = path_join(parent, entry->d_name);
        left = sweep_file(dir, file, remove, e);
        count += left;
        free(file);
    }
    if (list)
        closedir(list);
    return left < 0 ? -1 : count;
}

static bool is_any(struct str name, struct str none)
{
    (void)none;
    return name_of_temporary(name).p;
}

int file_sweep(int dir, const char *path, bool beside, bool remove, struct err *e)
{
    char *parent = path_parent(path);
    int count = sweep(dir, parent, beside ? is_beside : is_any, str_of(path_base(path)), remove, e);

    free(parent);
    return count;
}

static bool has_suffix(struct str name, struct str suffix)
{
    struct str file = name_of_temporary(name);

    return file.p && file.n > suffix.n && str_ends(file, suffix) &&
           file.p[file.n - suffix.n - 1] == '.';
}

void file_sweep_dir(const char *dir, const char *suffix)
{
    (void)sweep(FILE_CWD, dir, has_suffix, str_of(suffix), true, NULL);
}

static int write_failed(const char *path, struct err *e)
{
    return err_sys(e, errno, "cannot write '%s'", path);
}

int file_replace_begin_at(struct file_replace *r, int dir, const char *path, struct err *e)
{
    struct stat st;

    *r = (struct file_replace){.fd = -1, .dir = dir, .path = path};
    buf_init(&r->name, BUF_SMALL);
    if (file_stat(dir, path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot write '%s': %s", path, kind_name(st.st_mode));
    r->fd = file_open_temporary(dir, path, &r->name);
    if (r->fd < 0) {
        write_failed(path, e);
        buf_release(&r->name);
        return -1;
    }
    return 0;
}

int file_replace_begin(struct file_replace *r, const char *path, struct err *e)
{
    return file_replace_begin_at(r, FILE_CWD, path, e);
}

int file_replace_end(struct file_replace *r, struct err *e)
{
    int result = r->unsynced ? 0 : system_sync(r->fd);

    if (result == 0)
        result = file_rename(r->dir, buf_c(&r->name), r->path);
    if (result < 0) {
        write_failed(r->path, e);
        file_replace_drop(r);
        return -1;
    }
    /* system_sync has reported any failure. */
    close(r->fd);
    buf_release(&r->name);
    if (r->unsynced || r->one_of_many || file_sync_dir(r->dir, r->path) == 0)
        return 0;
    return write_failed(r->path, e);
}

void file_replace_drop(struct file_replace *r)
{
    int saved = errno;

    close(r->fd);
    file_unlink(r->dir, buf_c(&r->name));
    buf_release(&r->name);
    errno = saved;
}

int file_replace_at(int dir, const char *path, struct str content, bool sync, struct err *e)
{
    struct file_replace r;

    (void)file_sweep(dir, path, true, true, NULL);
    if (file_replace_begin_at(&r, dir, path, e) < 0)
        return -1;
    r.unsynced = !sync;
    if (file_write_all(r.fd, content.p, content.n) < 0) {
        write_failed(path, e);
        file_replace_drop(&r);
        return -1;
    }
    return file_replace_end(&r, e);
}

int file_replace(const char *path, struct str content, struct err *e)
{
    return file_replace_at(FILE_CWD, path, content, true, e);
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
    int fd = open_exact(FILE_CWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int result = fd < 0 ? -1 : sync_dir(fd);
    int saved = errno;

    file_close(fd);
    free(dir);
    errno = saved;
    return result;
}

/* ---- directories ---- */

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns 1 if it was made, 0 if it existed, -1 with errno set, ENOENT if the parent is missing. */
static int make_dir(const char *path)
{
    if (mkdir(path, 0700) < 0) {
        /* With a read-only or automounted parent, errno may differ from EEXIST. */
        int saved = errno;

        if (saved != ENOENT && is_dir(path))
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

/* ---- names ---- */

char *path_join(const char *dir, const char *name)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    if (name[0] != '/') {
        buf_add_c(&b, dir);
        if (b.len && b.data[b.len - 1] != '/')
            buf_add_byte(&b, '/');
    }
    buf_add_c(&b, name);
    return buf_detach(&b);
}

char *path_with_suffix(const char *path, const char *suffix)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    buf_add_c(&b, path);
    buf_add_c(&b, suffix);
    return buf_detach(&b);
}

/* Without slashes at its end, but `/` stays. */
static size_t length_without_slashes(const char *path, size_t n)
{
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

char *path_parent(const char *path)
{
    size_t n = length_without_slashes(path, strlen(path));

    while (n && path[n - 1] != '/')
        n--;
    if (n == 0)
        return mem_copy(".", 1);
    return mem_copy(path, length_without_slashes(path, n));
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *path_beside(const char *self, const char *name)
{
    char *parent = strchr(self, '/') ? path_parent(self) : NULL;
    char *dir = parent ? path_real(parent, NULL) : NULL;
    char *path = dir ? path_join(dir, name) : mem_text(name);

    free(parent);
    free(dir);
    return path;
}

static bool same_inode(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && file_is_same(&x, &y);
}

bool path_same(const char *a, const char *b)
{
    struct stat st;
    char *dir_a, *dir_b;
    bool same;

    if (stat(a, &st) == 0 || stat(b, &st) == 0)
        return same_inode(a, b);
    dir_a = path_parent(a);
    dir_b = path_parent(b);
    same = strcmp(path_base(a), path_base(b)) == 0 && same_inode(dir_a, dir_b);
    free(dir_a);
    free(dir_b);
    return same;
}

char *path_real(const char *path, struct err *e)
{
    char *real = realpath(path, NULL);

    if (!real)
        err_sys(e, errno, "cannot resolve '%s'", path);
    return real;
}

/* ---- who may have written a file ---- */

/* The numbers below this one are those of the system's accounts. */
#define FIRST_USER 1000
/* The state of a socket that listens, in /proc/net/tcp. */
#define LISTENING 10

/* The largest entry of the user and group databases that is read, in bytes. */
#define ENTRY_MAX ((size_t)1 << 20)

#ifdef __linux__
/* Returns false for a file system that makes up the modes it shows. The numbers are those of
 * statfs(2). FUSE is not one file system: only files with every permission, as NTFS shows them, are
 * taken as made up. */
static bool keeps_modes(const struct statfs *fs, mode_t mode)
{
    switch ((unsigned long)fs->f_type & 0xffffffffUL) {
    case 0x4d44:     /* FAT */
    case 0x2011bab0: /* exFAT */
    case 0x5346544e: /* NTFS */
    case 0x7366746e: /* NTFS3 */
    case 0x01021997: /* 9p: the drives of Windows in WSL */
    case 0x517b:     /* SMB */
    case 0xff534d42: /* CIFS */
    case 0xfe534d42: /* SMB2 */
    case 0x786f4256: /* shared folders of VirtualBox */
        return false;
    case 0x65735546: /* FUSE */
        return (mode & 0777) != 0777;
    default:
        return true;
    }
}
#endif

/* Is the group the user's private one (owner_fault)? */
static bool is_private_group(gid_t gid)
{
    struct passwd user_entry, *user = NULL;
    struct group entry, *group = NULL;
    char *room[2] = {NULL, NULL};
    bool alone = false;
    int failed = ERANGE;

    for (size_t size = 2048; failed == ERANGE && size <= ENTRY_MAX; size *= 2) {
        for (int i = 0; i < 2; i++)
            room[i] = mem_resize(room[i], size, 1);
        failed = getpwuid_r(geteuid(), &user_entry, room[0], size, &user);
        if (!failed)
            failed = getgrgid_r(gid, &entry, room[1], size, &group);
    }
    if (!failed && user && group && user->pw_gid == gid)
        alone = strcmp(group->gr_name, user->pw_name) == 0;
    for (char **member = alone ? group->gr_mem : NULL; member && *member; member++)
        alone = alone && strcmp(*member, user->pw_name) == 0;
    for (int i = 0; i < 2; i++)
        free(room[i]);
    return alone;
}

static const char *fault(const struct stat *st, bool has_modes, enum owner allowed)
{
    if (st->st_uid != geteuid() && !(allowed == OWNER_USER_OR_ROOT && st->st_uid == 0))
        return "it belongs to another user";
    if (has_modes && (st->st_mode & S_IWOTH))
        return "others can write it (chmod go-w)";
    if (has_modes && (st->st_mode & S_IWGRP) && !is_private_group(st->st_gid))
        return "its group can write it (chmod g-w)";
    return NULL;
}

static const char unknown[] = "its owner cannot be determined";

const char *owner_fault(int fd, enum owner allowed)
{
    bool has_modes = true;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return unknown;
#ifdef __linux__
    struct statfs fs;

    has_modes = fstatfs(fd, &fs) < 0 || keeps_modes(&fs, st.st_mode);
#endif
    return fault(&st, has_modes, allowed);
}

const char *owner_fault_at(const char *path, enum owner allowed)
{
    bool has_modes = true;
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL : unknown;
#ifdef __linux__
    struct statfs fs;

    has_modes = statfs(path, &fs) < 0 || keeps_modes(&fs, st.st_mode);
#endif
    return fault(&st, has_modes, allowed);
}

/* ---- who listens ---- */

static unsigned long number_of(struct str digits, int base)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    unsigned long n;

    buf_add_str(&text, digits);
    n = strtoul(buf_c(&text), NULL, base);
    buf_release(&text);
    return n;
}

/* Is it a loopback address, or the one for all addresses? The digits are those of 32-bit words in
 * the machine's own order; of an IPv6 address the last counts: `::`, `::1`, `::ffff:127.0.0.1`. */
static bool is_local(struct str address)
{
    uint32_t last;

    if (address.n < 8)
        return false;
    last = ntohl((uint32_t)number_of((struct str){address.p + address.n - 8, 8}, 16));
    return last <= 1 || last >> 24 == 127;
}

/* A line: number, local address, remote address, state, two or three words about queues and timers,
 * uid. */
static bool is_foreign_line(struct str line, unsigned port, uid_t *uid)
{
    struct str address, local;

    str_word(&line);
    local = str_word(&line);
    address = str_cut(&local, ':');
    if (number_of(local, 16) != port || !is_local(address))
        return false;
    str_word(&line);
    if (number_of(str_word(&line), 16) != LISTENING)
        return false;
    for (int i = 0; i < 3; i++)
        str_word(&line);
    *uid = (uid_t)number_of(str_word(&line), 10);
    return *uid != geteuid() && *uid >= FIRST_USER;
}

bool owner_foreign_listener(unsigned port, uid_t *uid)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    bool found = false;

    for (size_t i = 0; i < sizeof tables / sizeof *tables && !found; i++) {
        struct buf text = BUF_INIT(SIZE_MAX);
        int fd = open(tables[i], O_RDONLY | O_CLOEXEC);
        struct str rest;

        if (fd >= 0 && file_read_all(fd, &text) < 0)
            buf_clear(&text);
        file_close(fd);
        rest = buf_str(&text);
        while (!found && rest.n > 0)
            found = is_foreign_line(str_cut(&rest, '\n'), port, uid);
        buf_release(&text);
    }
    return found;
}
