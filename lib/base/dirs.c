#include "base/dirs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* 1 made, 0 there already, -1 with errno set: ENOENT when the parent is missing. */
static int make_dir(const char *path)
{
    if (mkdir(path, 0700) < 0) {
        /* A read-only or automounted parent may say something else than EEXIST. */
        int saved = errno;

        if (saved != ENOENT && is_dir(path))
            return 0;
        errno = saved;
        return -1;
    }
    /* The umask may have taken bits away that we need. */
    if (chmod(path, 0700) < 0 || io_sync_dir_of(path) < 0)
        return -1;
    return 1;
}

/* Each level of recursion takes a component off; a path too deep for that is ENAMETOOLONG. */
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
