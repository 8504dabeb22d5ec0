#include "chathist/base/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/path.h"

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
    if (chmod(path, 0700) < 0 || io_sync_dir_of(path) < 0)
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

int dirs_make(const char *path, struct err *e)
{
    int made = make_dirs(path);

    if (made < 0)
        return err_sys(e, errno, "cannot make directory '%s'", path);
    return made;
}

/* Opens one directory on the way up. Returns 1; 0 if it is on another file system; -1 with *e set. *fd
 * is -1 if the directory is skipped. */
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

int dirs_upwards(const char *from, int (*look)(void *arg, int fd, const char *path), void *arg,
                 struct err *e)
{
    struct stat start;
    char *dir;
    int fd = -1, step = 1, found = 0;
    bool top = false;

    if (stat(from, &start) < 0)
        return err_sys(e, errno, "cannot open '%s'", from);
    dir = mem_copy(from, strlen(from));
    while (!top && found == 0 && (step = open_step(dir, start.st_dev, &fd, e)) > 0) {
        char *parent = path_parent(dir);

        top = strcmp(parent, dir) == 0 || strcmp(parent, ".") == 0;
        if (fd >= 0) {
            found = look(arg, fd, dir);
            close(fd);
        }
        free(dir);
        dir = parent;
    }
    free(dir);
    return step < 0 ? -1 : found;
}
