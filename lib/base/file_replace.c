#include "chathist/base/file_replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"

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
        fd = file_open_exact(dir, buf_c(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                             0600);
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

/* Returns the text before the two numbers and FILE_TEMPORARY in a name that file_open_temporary
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

/* Returns whether it is the temporary file of a file of that name, or of one whose name continues
 * with a dot. */
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
        return err_set(e, ERR_FAILURE, "cannot write '%s': %s", path, file_kind_name(st.st_mode));
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
