#include "chathist/base/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/buf.h"
#include "chathist/base/memory.h"

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

bool path_glob(const char *dir, const char *pattern, glob_t *files)
{
    struct buf whole = BUF_INIT(BUF_SMALL);
    bool found;

    for (const char *p = dir; *p; p++) {
        if (strchr("*?[\\", *p))
            buf_add_byte(&whole, '\\');
        buf_add_byte(&whole, *p);
    }
    buf_addf(&whole, "/%s", pattern);
    found = glob(buf_c(&whole), 0, NULL, files) == 0;
    buf_release(&whole);
    return found;
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

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
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
