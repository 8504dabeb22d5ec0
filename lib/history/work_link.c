#include "history/work_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/io.h"
#include "chathist/base/path.h"
#include "chathist/history/append.h"

#define LINK ".aicoder"
#define EXCLUDE "exclude"

static bool has_line(struct str text, const char *line)
{
    while (text.n > 0)
        if (str_eq_c(str_trim(str_cut(&text, '\n')), line))
            return true;
    return false;
}

/* Adds the line to info/exclude unless it is there. 0, -1. */
static int exclude(int common)
{
    struct append_wait wait = APPEND_WAIT_INIT;
    struct buf text = BUF_INIT(BUF_LINE);
    struct append a;
    int info, result;

    if (mkdirat(common, "info", 0777) < 0 && errno != EEXIST)
        return -1;
    info = openat(common, "info", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (info < 0)
        return -1;
    result = append_open(&a, info, EXCLUDE, &wait, NULL);
    if (result == 0) {
        result = io_read_all(a.fd, &text);
        if (result == 0 && !has_line(buf_str(&text), "/" LINK))
            result = append_write(&a, STR("/" LINK "\n"), false, NULL);
        append_close(&a);
    }
    close(info);
    buf_release(&text);
    return result;
}

/* The way from one directory to a file, both absolute and without links. The caller frees it. */
static char *relative(const char *from, const char *to)
{
    struct buf b = BUF_INIT(SIZE_MAX);
    size_t same = 0;

    for (size_t i = 0; from[i] == to[i]; i++) {
        if (from[i] == '/')
            same = i + 1;
        if (!from[i])
            break;
    }
    /* `from` itself leads to `to`. */
    if (strncmp(from, to, strlen(from)) == 0 && to[strlen(from)] == '/')
        same = strlen(from) + 1;
    for (const char *p = from + (same < strlen(from) ? same : strlen(from)); *p;) {
        buf_add_c(&b, "../");
        p = strchr(p, '/');
        p = p ? p + 1 : "";
    }
    buf_add_c(&b, to + same);
    return buf_detach(&b);
}

void work_link_make(const struct git_dirs *g, const char *dir)
{
    char *tree = NULL, *real = NULL, *target;
    struct stat st;
    int fd;

    if (!g->work_tree || g->git != g->common)
        return;
    fd = open(g->work_tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstatat(fd, LINK, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
        tree = path_real(g->work_tree, NULL);
        real = path_real(dir, NULL);
    }
    if (tree && real && exclude(g->common) == 0) {
        target = relative(tree, real);
        if (symlinkat(target, fd, LINK) < 0)
            errno = 0; /* another program was faster, or the file system has no links */
        free(target);
    }
    free(tree);
    free(real);
    if (fd >= 0)
        close(fd);
}
