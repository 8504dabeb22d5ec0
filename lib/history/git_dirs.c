#include "history/git_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"

/* `.git` and `commondir` hold one path. */
#define PATH_FILE_MAX ((size_t)16 << 10)

/* What a directory lacks that git would not accept, either. */
static const char not_git[] = "is not a git directory";

static char *sentence(const char *path, const char *why)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    buf_addf(&b, "'%s' %s", path, why);
    return buf_detach(&b);
}

/* Opens a directory of the user's below `at`. Returns its descriptor; -1 with *why set if it is
 * missing or another user's; -1 with *e. */
static int open_own(int at, const char *name, const char *path, const char **why, struct err *e)
{
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) {
        *why = errno == ENOENT ? "does not exist" : "cannot be opened";
    } else if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(e, errno, "cannot open '%s'", path);
    } else if (st.st_uid != geteuid()) {
        *why = "belongs to another user";
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Does the directory have these entries? 1, 0, -1. */
static int has(int dir, const char *path, const char *const *names, struct err *e)
{
    struct stat st;

    for (; *names; names++)
        if (fstatat(dir, *names, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT || errno == ENOTDIR
                       ? 0
                       : err_sys(e, errno, "cannot examine '%s/%s'", path, *names);
    return 1;
}

/* Reads the path that a file of the user's holds, after `prefix`. Returns a path that the caller
 * frees, relative ones joined to `base`; NULL if the file is missing or has another form. */
static char *read_path(int dir, const char *name, const char *prefix, const char *base)
{
    struct buf text = BUF_INIT(PATH_FILE_MAX);
    struct stat st;
    struct str path;
    char *joined = NULL, *copy;
    int fd = file_open_regular_at(dir, name, O_RDONLY, 0, &st, NULL, NULL);

    if (fd < 0)
        return NULL;
    if (st.st_uid == geteuid() && file_read_all(fd, &text) == 0 &&
        str_starts(buf_str(&text), str_of(prefix))) {
        path = buf_str(&text);
        path.p += strlen(prefix);
        path.n -= strlen(prefix);
        while (path.n > 0 && (path.p[path.n - 1] == '\n' || path.p[path.n - 1] == '\r'))
            path.n--;
        copy = mem_copy(path.p, path.n);
        if (path.n > 0 && strlen(copy) == path.n)
            joined = path_join(base, copy);
        free(copy);
    }
    close(fd);
    buf_release(&text);
    return joined;
}

/* Opens the directory `path` below `at` and looks for the entries that it must have. 1, 0 with
 * *unusable, -1 with *e. */
static int open_dir(int *fd, int at, const char *name, const char *path, const char *const *names,
                    char **unusable, struct err *e)
{
    const char *why = NULL;
    int found = -1;

    *fd = open_own(at, name, path, &why, e);
    if (*fd >= 0)
        found = has(*fd, path, names, e);
    if (found == 0)
        why = not_git;
    if (why)
        *unusable = sentence(path, why);
    return why ? 0 : found;
}

static int open_common(struct git_dirs *g, const char *named, char **unusable, struct err *e)
{
    static const char *const names[] = {"objects", "refs", NULL};

    g->common_path =
        named ? mem_copy(named, strlen(named)) : read_path(g->git, "commondir", "", g->git_path);
    if (g->common_path)
        return open_dir(&g->common, AT_FDCWD, g->common_path, g->common_path, names, unusable, e);
    g->common_path = mem_copy(g->git_path, strlen(g->git_path));
    g->common = g->git;

    int found = has(g->common, g->common_path, names, e);

    if (found == 0)
        *unusable = sentence(g->common_path, not_git);
    return found;
}

/* Opens `path` below `at` as the git directory, and the common directory. g->git_path is set. 1, 0
 * with *unusable, -1 with *e. */
static int open_git(struct git_dirs *g, int at, const char *path, const char *common,
                    char **unusable, struct err *e)
{
    static const char *const names[] = {"HEAD", NULL};
    int found = open_dir(&g->git, at, path, g->git_path, names, unusable, e);

    return found > 0 ? open_common(g, common, unusable, e) : found;
}

/* Looks for `.git` in the directory `tree`: 1; 0 if it is missing, or with *unusable; -1 with *e. */
static int look_in(struct git_dirs *g, int tree, const char *tree_path, const char *common,
                   char **unusable, struct err *e)
{
    struct stat st;
    int result = 0;

    if (fstatat(tree, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "cannot examine '%s/.git'", tree_path);
    g->git_path = path_join(tree_path, ".git");
    if (st.st_uid != geteuid()) {
        *unusable = sentence(g->git_path, "belongs to another user");
    } else if (S_ISREG(st.st_mode)) {
        char *named = read_path(tree, ".git", "gitdir: ", tree_path);

        if (!named)
            *unusable = sentence(g->git_path, "names no git directory");
        free(g->git_path);
        g->git_path = named;
        if (named)
            result = open_git(g, AT_FDCWD, named, common, unusable, e);
    } else {
        result = open_git(g, tree, ".git", common, unusable, e);
        /* git ignores a directory of that name that is not a git directory. */
        if (*unusable) {
            free(*unusable);
            *unusable = NULL;
        }
    }
    if (result > 0) {
        g->tree = fcntl(tree, F_DUPFD_CLOEXEC, 0);
        g->tree_path = mem_copy(tree_path, strlen(tree_path));
    }
    return result;
}

struct search {
    struct git_dirs *g;
    const char *common;
    char **unusable;
    struct err *e;
};

/* For file_search_upwards: 1 or -1 ends the search. */
static int look(void *arg, int fd, const char *path)
{
    struct search *s = arg;
    int found = look_in(s->g, fd, path, s->common, s->unusable, s->e);

    if (found == 0 && !*s->unusable)
        git_dirs_close(s->g);
    return found != 0 ? found : *s->unusable != NULL;
}

/* A repository has one path, however it was reached. */
static void resolve(char **path)
{
    char *real = path_real(*path, NULL);

    if (real) {
        free(*path);
        *path = real;
    }
}

int git_dirs_open(struct git_dirs *g, const char *cwd, const char *dir, const char *common,
                  char **unusable, struct err *e)
{
    char *common_path = common ? path_join(cwd, common) : NULL;
    int found;

    *g = (struct git_dirs){.git = -1, .common = -1, .tree = -1};
    *unusable = NULL;
    if (dir) {
        g->git_path = path_join(cwd, dir);
        found = open_git(g, AT_FDCWD, g->git_path, common_path, unusable, e);
    } else {
        found = file_search_upwards(cwd, look, &(struct search){g, common_path, unusable, e}, e);
        if (*unusable)
            found = 0;
    }
    if (found <= 0)
        git_dirs_close(g);
    else
        resolve(&g->common_path);
    free(common_path);
    return found;
}

void git_dirs_close(struct git_dirs *g)
{
    if (g->common >= 0 && g->common != g->git)
        close(g->common);
    if (g->git >= 0)
        close(g->git);
    if (g->tree >= 0)
        close(g->tree);
    free(g->git_path);
    free(g->common_path);
    free(g->tree_path);
    *g = (struct git_dirs){.git = -1, .common = -1, .tree = -1};
}
