#include "chathist/history/location.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "history/links.h"
#include "history/trust.h"

/* The names of the directories of histories: below git's common directory and the user's data
 * directory, and elsewhere. */
#define DIR_NAME "aicoder"
#define HERE_NAME ".aicoder"
#define FILE_NAME "history.jsonl"
#define POINTER_NAME "session"
#define INDEX_NAME "history.idx"
#define SKIP_NAME "history.skip"
#define VECTORS_NAME "history.vectors"
#define COPIES_NAME DIR_NAME "/repositories"

/* The caller frees it. */
static char *sentence(const char *path, const char *fault)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    buf_addf(&b, "'%s' %s", path, fault);
    return buf_detach(&b);
}

/* ---- git's directories ---- */

/*
 * A repository has a common directory, which all of its worktrees share, and a git directory for
 * each worktree; for the main work tree both are the same. They are found as git finds them
 * (gitrepository-layout(5), git(1) "GIT_DIR"): through $GIT_DIR and $GIT_COMMON_DIR, or through
 * `.git` in the nearest parent directory that has it: a directory, or a file that holds
 * "gitdir: PATH". A git directory has an entry HEAD; its file `commondir` names the common
 * directory, which holds `objects` and `refs`. A bare repository is recognised only through
 * $GIT_DIR.
 *
 * Nothing that belongs to another user is used. The directories are opened here, and everything
 * below them is reached through these descriptors.
 */
struct git_dirs {
    int git, common;   /* descriptors; the same number in the main work tree */
    int tree;          /* the directory that holds `.git`; -1 when $GIT_DIR was used */
    char *git_path;    /* absolute, as are those below; for messages */
    char *common_path; /* its path without links */
    char *tree_path;   /* NULL when $GIT_DIR was used */
    bool is_led;       /* `.git` is a file or a link */
    enum way {
        WAY_BACK,    /* and git's own entry in the repository names this work tree */
        WAY_UNKNOWN, /* there is no such entry */
        WAY_OTHER,   /* it is the repository of another work tree */
    } way;
};

/* `.git` and `commondir` hold one path. */
#define PATH_FILE_MAX ((size_t)16 << 10)

/* What a directory lacks that git would not accept, either. */
static const char not_git[] = "is not a git directory";

static void git_dirs_close(struct git_dirs *g)
{
    if (g->common >= 0 && g->common != g->git)
        close(g->common);
    file_close(g->git);
    file_close(g->tree);
    free(g->git_path);
    free(g->common_path);
    free(g->tree_path);
    *g = (struct git_dirs){.git = -1, .common = -1, .tree = -1};
}

/* Opens the directory `name` in `parent`, a link to one only with `link`. Returns 1; 0 if it does
 * not exist, or with *fault if it cannot be used, for example because it is another user's; -1 with
 * *e set. */
static int open_own_directory(int parent, const char *name, bool link, const char *path, int *fd,
                              const char **fault, struct err *e)
{
    struct stat st;

    *fault = NULL;
    *fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (link ? 0 : O_NOFOLLOW));
    if (*fd < 0) {
        if (errno == ENOENT)
            return 0;
        if (errno == EACCES)
            *fault = "cannot be opened";
        else if (errno == ELOOP || errno == ENOTDIR)
            *fault = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)
                         ? "is a symbolic link"
                         : "is not a directory";
        return *fault ? 0 : err_sys(e, errno, "cannot open '%s'", path);
    }
    if (fstat(*fd, &st) < 0)
        err_sys(e, errno, "cannot open '%s'", path);
    else if (st.st_uid == geteuid())
        return 1;
    else
        *fault = "belongs to another user";
    close(*fd);
    *fd = FILE_ABSENT;
    return *fault ? 0 : -1;
}

/* Returns 1 if the directory has these entries, 0 if not, or -1. */
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
        path = str_skip(path, strlen(prefix));
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

/* A search for the directories. Its functions return 1; 0 if the directory is in no repository, or
 * in one that cannot be used; -1 with *e set. */
struct git_search {
    struct git_dirs *g;
    char *common;   /* $GIT_COMMON_DIR, absolute, or NULL; owned, as are the two below */
    char *unusable; /* the end of a sentence: why the repository cannot be used: it is missing,
                     * damaged, or another user's; else NULL */
    char *passed;   /* the nearest `.git` in a directory of another user; else NULL */
    struct err *e;
};

/* Opens the directory `path`, `name` below `at`, which must have these entries. */
static int open_dir(struct git_search *s, int *fd, int at, const char *name, const char *path,
                    const char *const *names)
{
    const char *fault;
    int found = open_own_directory(at, name, true, path, fd, &fault, s->e);

    if (found == 0 && !fault)
        fault = "does not exist";
    if (found > 0)
        found = has(*fd, path, names, s->e);
    if (found == 0)
        s->unusable = sentence(path, fault ? fault : not_git);
    return found;
}

static int open_common(struct git_search *s)
{
    static const char *const names[] = {"objects", "refs", NULL};
    struct git_dirs *g = s->g;
    int found;

    g->common_path =
        s->common ? mem_text(s->common) : read_path(g->git, "commondir", "", g->git_path);
    if (g->common_path)
        return open_dir(s, &g->common, AT_FDCWD, g->common_path, g->common_path, names);
    g->common_path = mem_text(g->git_path);
    g->common = g->git;
    found = has(g->common, g->common_path, names, s->e);
    if (found == 0)
        s->unusable = sentence(g->common_path, not_git);
    return found;
}

/* Opens the git directory g->git_path, `name` below `at`, and the common directory. */
static int open_git(struct git_search *s, int at, const char *name)
{
    static const char *const names[] = {"HEAD", NULL};
    int found = open_dir(s, &s->g->git, at, name, s->g->git_path, names);

    return found > 0 ? open_common(s) : found;
}

/* Looks for `.git` in the directory `tree`. */
static int examine_dot_git(struct git_search *s, int tree, const char *tree_path)
{
    struct git_dirs *g = s->g;
    struct stat st;
    int result = 0;

    if (fstatat(tree, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(s->e, errno, "cannot examine '%s/.git'", tree_path);
    g->git_path = path_join(tree_path, ".git");
    if (st.st_uid != geteuid()) {
        s->unusable = sentence(g->git_path, "belongs to another user");
    } else if (S_ISREG(st.st_mode)) {
        char *named = read_path(tree, ".git", "gitdir: ", tree_path);

        if (!named)
            s->unusable = sentence(g->git_path, "names no git directory");
        free(g->git_path);
        g->git_path = named;
        if (named)
            result = open_git(s, AT_FDCWD, named);
    } else {
        result = open_git(s, tree, ".git");
        /* git ignores a directory of that name that is not a git directory. */
        free(s->unusable);
        s->unusable = NULL;
    }
    if (result > 0) {
        g->tree = fcntl(tree, F_DUPFD_CLOEXEC, 0);
        g->tree_path = mem_text(tree_path);
        g->is_led = !S_ISDIR(st.st_mode);
    }
    return result;
}

/* For file_search_upwards: anything but 0 ends the search. */
static int stop_at_repository(void *arg, int fd, const char *path)
{
    struct git_search *s = arg;
    struct stat st;
    int found;

    if (fd < 0) {
        char *git = path_join(path, ".git");

        if (!s->passed && lstat(git, &st) == 0)
            s->passed = mem_text(git);
        free(git);
        return 0;
    }
    found = examine_dot_git(s, fd, path);
    if (found == 0 && !s->unusable)
        git_dirs_close(s->g);
    return found != 0 ? found : s->unusable != NULL;
}

/* Returns core.worktree of the repository (git-config(1)) as a path that the caller frees; NULL if
 * it has none. */
static char *config_worktree(const struct git_dirs *g)
{
    struct buf text = BUF_INIT(BUF_LINE);
    int fd = file_open_regular_at(g->git, "config", O_RDONLY, 0, NULL, NULL, NULL);
    struct str rest, line, key = STR("worktree");
    char *path = NULL, *copy;

    if (fd >= 0 && file_read_all(fd, &text) < 0)
        buf_clear(&text);
    file_close(fd);
    rest = buf_str(&text);
    while (rest.n > 0) {
        line = str_trim(str_cut(&rest, '\n'));
        if (!str_starts(line, key))
            continue;
        line = str_trim(str_skip(line, key.n));
        if (line.n == 0 || line.p[0] != '=')
            continue;
        line = str_trim(str_skip(line, 1));
        if (line.n > 1 && line.p[0] == '"' && line.p[line.n - 1] == '"')
            line = (struct str){line.p + 1, line.n - 2};
        free(path);
        copy = mem_copy(line.p, line.n);
        path = path_join(g->git_path, copy);
        free(copy);
    }
    buf_release(&text);
    return path;
}

/* Finds out whether the repository knows the work tree that leads to it: a linked worktree is
 * listed in it, and a submodule has its path. */
static void check_way_back(struct git_dirs *g)
{
    char *named = NULL, *real = NULL, *parent = NULL, *listed = NULL;
    bool linked = g->git != g->common;
    struct stat st, there;

    g->way = WAY_BACK;
    if (g->tree < 0 || (!g->is_led && !linked))
        return;
    g->way = WAY_UNKNOWN;
    real = path_real(g->git_path, NULL);
    named = linked ? read_path(g->git, "gitdir", "", g->git_path) : config_worktree(g);
    if (linked && real) {
        parent = path_parent(real);
        listed = path_join(g->common_path, "worktrees");
        g->way = strcmp(parent, listed) == 0 ? WAY_UNKNOWN : WAY_OTHER;
    }
    if (g->way == WAY_UNKNOWN && named &&
        (linked ? fstatat(g->tree, ".git", &st, AT_SYMLINK_NOFOLLOW) : fstat(g->tree, &st)) == 0) {
        if (stat(named, &there) == 0)
            g->way = file_is_same(&there, &st) ? WAY_BACK : WAY_OTHER;
    } else if (g->way == WAY_UNKNOWN && !linked && real && strcmp(path_base(real), ".git") == 0) {
        g->way = WAY_OTHER;
    }
    free(listed);
    free(parent);
    free(real);
    free(named);
}

/* Finds the directories for from->cwd, and opens them. */
static int git_dirs_open(struct git_search *s, const struct locate_from *from)
{
    struct git_dirs *g = s->g;
    char *real;
    int found;

    *g = (struct git_dirs){.git = -1, .common = -1, .tree = -1};
    if (from->git_common_dir)
        s->common = path_join(from->cwd, from->git_common_dir);
    if (from->git_dir) {
        g->git_path = path_join(from->cwd, from->git_dir);
        found = open_git(s, AT_FDCWD, g->git_path);
    } else {
        found = file_search_upwards(from->cwd, stop_at_repository, s, s->e);
        if (s->unusable)
            found = 0;
    }
    /* A repository has one path, however it was reached. */
    if (found > 0 && (real = path_real(g->common_path, NULL))) {
        free(g->common_path);
        g->common_path = real;
    }
    if (found > 0)
        check_way_back(g);
    return found;
}

/* ---- names ---- */

static void free_paths(struct history *h)
{
    free(h->path);
    free(h->pointer);
    free(h->index);
    free(h->skip);
    free(h->vectors);
    free(h->dir);
}

/* The directory `name` in `parent` holds the history, and also the pointer if `pointer_parent` is
 * NULL. */
static void set_paths(struct history *h, const char *parent, const char *name,
                      const char *pointer_parent)
{
    char *pointer_dir;

    free_paths(h);
    h->dir = path_join(parent, name);
    h->path = path_join(h->dir, FILE_NAME);
    h->index = path_join(h->dir, INDEX_NAME);
    h->skip = path_join(h->dir, SKIP_NAME);
    h->vectors = path_join(h->dir, VECTORS_NAME);
    pointer_dir = path_join(pointer_parent ? pointer_parent : parent, name);
    h->pointer = path_join(pointer_dir, POINTER_NAME);
    free(pointer_dir);
}

static void close_dirs(struct history *h)
{
    if (h->pointer_fd >= 0 && h->pointer_fd != h->dir_fd)
        close(h->pointer_fd);
    file_close(h->dir_fd);
    h->dir_fd = h->pointer_fd = FILE_ABSENT;
}

static void close_git(struct history *h)
{
    if (h->git)
        git_dirs_close(h->git);
    free(h->git);
    h->git = NULL;
}

/* Returns whether this is a linked worktree. Its pointer is in its own git directory. */
static bool is_linked(const struct history *h)
{
    return h->git && h->git->git != h->git->common;
}

/* ---- trust ---- */

/* Returns whether programs of several accounts, or an archive, write there, so that a mark says
 * whose it is. */
static bool has_mark(const struct history *h)
{
    return h->dir && h->kind != HISTORY_USER;
}

/* Returns whether the history has no other name than its second one. That may be in the data
 * directory of another account. */
static bool has_own_names(const struct history *h, const struct stat *st)
{
    return !has_mark(h) || st->st_nlink <= (h->kind == HISTORY_REPOSITORY ? 2 : 1);
}

/* Returns whether only the user can have written the history; true for one that is absent or cannot
 * be opened. Sets its file in h->mark, and its size. */
static bool is_own_history(struct history *h, off_t *size)
{
    struct stat st;
    int fd = file_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, &st, NULL, NULL);
    bool own = fd < 0 || (!owner_fault(fd, OWNER_USER) && has_own_names(h, &st) &&
                          mark_set_file(&h->mark, fd) == 0);

    *size = fd < 0 ? 0 : st.st_size;
    if (fd < 0)
        h->mark.inode = 0;
    file_close(fd);
    return own;
}

/* Returns whether only the user can have written the directory and the pointer in it. */
static bool is_own_dir(const struct history *h)
{
    const char *fault =
        h->dir_fd >= 0 ? owner_fault(h->dir_fd, OWNER_USER) : owner_fault_at(h->dir, OWNER_USER);
    char *pointer = path_join(h->dir, POINTER_NAME);
    int fd = fault ? -1 : file_open_regular_at(h->dir_fd, pointer, O_RDONLY, 0, NULL, NULL, NULL);
    bool own = !fault && (fd < 0 || !owner_fault(fd, OWNER_USER));

    file_close(fd);
    free(pointer);
    return own;
}

char *history_marks(const struct history *h)
{
    char *parent = path_parent(h->path), *owner = path_join(parent, TRUST_OWNER);

    free(parent);
    return owner;
}

/* Looks for the mark. Sets what it says about the history. */
static void read_mark(struct history *h, off_t size)
{
    struct err e = ERR_INIT;
    int found = mark_find(&h->mark, h->dir_fd, TRUST_OWNER, h->token_path, &e);

    free(h->trust_fault);
    h->trust_fault = found < 0 ? mem_text(err_text(&e)) : NULL;
    h->marked = found >= MARK_OLD && h->mark.from <= size;
    h->outdated = found == MARK_OLD;
    err_release(&e);
}

static void set_trust(struct history *h)
{
    struct stat st;
    off_t size = 0;

    h->marked = h->outdated = false;
    h->safe = !h->dir_exists || !h->dir || is_own_dir(h);
    if (h->dir_exists)
        h->safe = is_own_history(h, &size) && h->safe;
    if (h->safe && h->dir_exists && has_mark(h)) {
        read_mark(h, size);
        /* The history may just have been replaced: a rewrite adds the mark of the new one first. */
        if (!h->marked && h->mark.inode != 0 && file_stat(h->dir_fd, h->path, &st) == 0 &&
            (uint64_t)st.st_ino != h->mark.inode && is_own_history(h, &size))
            read_mark(h, size);
    }
    h->trusted = h->safe && (h->marked || !h->dir_exists || !has_mark(h));
    if (!h->trusted)
        buf_clear(&h->mark.named);
    if (!h->marked)
        h->mark.from = h->trusted ? 0 : HISTORY_NOTHING_OWN;
}

/* ---- finding ---- */

/* Uses an open directory, `name` in `parent`, as the place of the history and of the pointer. */
static void set_place(struct history *h, enum history_kind kind, int fd, const char *parent,
                      const char *name)
{
    h->kind = kind;
    h->dir_fd = h->pointer_fd = fd;
    h->dir_exists = true;
    set_paths(h, parent, name, NULL);
    set_trust(h);
}

/* Returns whether a program of this account has stored something in the directory, or in what it is
 * a copy of. */
static bool is_marked_dir(int fd, const char *token_path)
{
    struct owner_mark m = MARK_INIT;
    bool marked = !owner_fault(fd, OWNER_USER) &&
                  mark_find(&m, fd, TRUST_OWNER, token_path, NULL) >= MARK_ELSEWHERE;

    buf_release(&m.named);
    return marked;
}

/* Looks for `.aicoder` in the work tree, which hist-new --here made before there was a repository,
 * or another program uses. One on another file system than git's directory could not be moved, and
 * counts as another program's. */
static void find_in_work_tree(struct history *h, bool reader)
{
    const char *fault;
    struct stat st, own, git;
    char *dir;
    int fd = FILE_ABSENT;
    bool ours;

    if (h->git->tree < 0)
        return;
    dir = path_join(h->git->tree_path, HERE_NAME);
    if (open_own_directory(h->git->tree, HERE_NAME, false, dir, &fd, &fault, NULL) <= 0 ||
        file_stat(fd, FILE_NAME, &st) < 0)
        goto out;
    ours = !h->dir_exists && fstat(fd, &own) == 0 && fstat(h->git->common, &git) == 0 &&
           own.st_dev == git.st_dev && is_marked_dir(fd, h->token_path);
    if (!ours)
        h->other = path_join(dir, FILE_NAME);
    if (ours || (reader && file_stat(h->dir_fd, FILE_NAME, &st) < 0)) {
        close_dirs(h);
        h->dir_fd = fd;
        fd = FILE_ABSENT;
        set_paths(h, h->git->tree_path, HERE_NAME, NULL);
        h->dir_exists = true;
        h->is_old = ours;
    }

out:
    file_close(fd);
    free(dir);
}

/* Opens the directory of the pointer. That of a linked worktree counts as absent without the user's
 * mark: whoever made the worktree, as part of an archive, may have named any repository as its
 * own. */
static int open_pointer_place(struct history *h, struct err *e)
{
    struct owner_mark m = MARK_INIT;
    const char *fault;

    h->pointer_fd = h->dir_fd;
    if (!is_linked(h))
        return 0;
    if (open_own_directory(h->git->git, DIR_NAME, false, h->pointer, &h->pointer_fd, &fault, e) < 0)
        return -1;
    if (h->pointer_fd >= 0 &&
        (owner_fault(h->pointer_fd, OWNER_USER) || mark_set_file(&m, h->pointer_fd) < 0 ||
         mark_find(&m, h->pointer_fd, TRUST_OWNER, h->token_path, NULL) < MARK_OLD)) {
        close(h->pointer_fd);
        h->pointer_fd = FILE_ABSENT;
    }
    buf_release(&m.named);
    return 0;
}

/* Returns 1; 0 with *unusable set to why the repository cannot have a history; -1 with *e set. */
static int locate_in_repository(struct history *h, bool reader, char **unusable, struct err *e)
{
    struct buf pointer = BUF_INIT(BUF_SMALL);
    const char *fault;

    h->kind = HISTORY_REPOSITORY;
    set_paths(h, h->git->common_path, DIR_NAME, h->git->git_path);
    /* Whoever made this work tree, as part of an archive, may have let it lead to any repository of
     * the user's: it does not continue the conversation of another work tree. */
    if (h->git->is_led && h->git->way == WAY_OTHER) {
        buf_addf(&pointer, "%s.%016" PRIx64, h->pointer, hash64(str_of(h->git->tree_path), 0));
        free(h->pointer);
        h->pointer = buf_detach(&pointer);
    }
    if (open_own_directory(h->git->common, DIR_NAME, false, h->dir, &h->dir_fd, &fault, e) < 0)
        return -1;
    if (fault) {
        *unusable = sentence(h->dir, fault);
        return 0;
    }
    h->dir_exists = h->dir_fd >= 0;
    if (open_pointer_place(h, e) < 0)
        return -1;
    find_in_work_tree(h, reader);
    if (!h->dir_exists && faccessat(h->git->common, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        *unusable = sentence(h->git->common_path, "cannot be written");
        return 0;
    }
    set_trust(h);
    return 1;
}

/* For file_search_upwards. Returns 1 if `.aicoder` in this directory is a history of the user, else
 * 0. */
static int is_own_here(void *arg, int parent, const char *path)
{
    struct history *h = arg;
    const char *fault;
    char *dir = path_join(path, HERE_NAME);
    int fd = -1, found = parent < 0
                             ? 0
                             : open_own_directory(parent, HERE_NAME, false, dir, &fd, &fault, NULL);

    if (found > 0 && is_marked_dir(fd, h->token_path)) {
        set_place(h, HISTORY_HERE, fd, path, HERE_NAME);
    } else if (fd >= 0) {
        close(fd);
        found = 0;
    }
    free(dir);
    return found > 0;
}

static int locate_nowhere(struct history *h, bool may_be_nowhere, enum err_kind kind,
                          const char *why, struct err *e)
{
    if (!may_be_nowhere)
        return err_set(e, kind, "%s", why);
    h->kind = HISTORY_USER;
    h->path = mem_text("");
    h->pointer = mem_text("");
    h->dir = mem_text("");
    h->nowhere = mem_text(why);
    h->trusted = true;
    return 0;
}

static int locate_of_user(struct history *h, const struct locate_from *from, struct err *e)
{
    if (!from->data_home)
        return locate_nowhere(
            h, from->may_be_nowhere, ERR_USAGE,
            "no place for a history: neither HOME nor XDG_DATA_HOME is an absolute path", e);
    h->kind = HISTORY_USER;
    set_paths(h, from->data_home, DIR_NAME, NULL);
    h->dir_fd = open(h->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    h->dir_exists = h->dir_fd >= 0;
    /* A directory that cannot be listed may still be used: its files are opened by their paths. */
    if (h->dir_fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        h->dir_fd = FILE_CWD;
        h->dir_exists = true;
    }
    h->pointer_fd = h->dir_fd;
    set_trust(h);
    return 0;
}

static int locate_explicit(struct history *h, const char *file)
{
    h->kind = HISTORY_EXPLICIT;
    h->dir_fd = h->pointer_fd = FILE_CWD;
    h->path = mem_text(file);
    h->pointer = path_with_suffix(file, ".session");
    h->index = path_with_suffix(file, ".idx");
    h->skip = path_with_suffix(file, ".skip");
    h->vectors = path_with_suffix(file, ".vectors");
    h->dir_exists = true;
    set_trust(h);
    return 0;
}

/* Sets why this is the history of that place, if it is not what it seems. */
static void set_notice(struct history *h, const char *unusable)
{
    struct buf text = BUF_INIT(BUF_LINE);

    if (unusable)
        buf_add_c(&text, unusable);
    else if (h->git && h->git->way != WAY_BACK)
        buf_addf(&text, "'%s/.git' leads to '%s'", h->git->tree_path, h->git->common_path);
    if (text.len > 0)
        buf_addf(&text, ": using %s'%s'", h->kind == HISTORY_USER ? "your own history " : "",
                 h->path);
    if (text.len > 0)
        h->notice = buf_detach(&text);
}

/* Applies rules 2 to 4. */
static int locate_by_directory(struct history *h, const struct locate_from *from, struct err *e)
{
    struct git_search s = {.g = h->git = mem_zalloc(sizeof *h->git), .e = e};
    int found = git_dirs_open(&s, from);

    if (found > 0) {
        found = locate_in_repository(h, from->reader, &s.unusable, e);
        h->displaced = found == 0;
    }
    if (found <= 0) {
        close_dirs(h);
        close_git(h);
    }
    /* A repository that cannot be used is not left for a directory around it. */
    if (found == 0 && !s.unusable)
        found = file_search_upwards(from->cwd, is_own_here, h, e);
    if (found == 0)
        found = locate_of_user(h, from, e);
    if (!s.unusable && s.passed)
        s.unusable = sentence(s.passed, "belongs to another user");
    if (found >= 0)
        set_notice(h, s.unusable);
    free(s.common);
    free(s.unusable);
    free(s.passed);
    return found < 0 ? -1 : 0;
}

static void init(struct history *h, const struct locate_from *from)
{
    *h = (struct history){
        .dir_fd = FILE_ABSENT, .pointer_fd = FILE_ABSENT, .sync = true, .cancel_fd = -1};
    buf_init(&h->mark.named, BUF_LINE);
    if (from->state_home) {
        h->register_path = path_join(from->state_home, "chathist/histories");
        h->token_path = path_join(from->state_home, "chathist/token");
    }
    h->now = from->now;
    h->keeps_copies = !from->no_copies;
    if (from->data_home)
        h->copies = path_join(from->data_home, COPIES_NAME);
}

int locate(struct history *h, const struct locate_from *from, struct err *e)
{
    int result;

    init(h, from);
    if (from->explicit_file)
        result = locate_explicit(h, from->explicit_file);
    else if (!from->cwd)
        result = locate_nowhere(h, from->may_be_nowhere, ERR_FAILURE,
                                "cannot tell the working directory", e);
    else
        result = locate_by_directory(h, from, e);
    if (result < 0)
        history_release(h);
    return result;
}

void history_release(struct history *h)
{
    close_dirs(h);
    close_git(h);
    free_paths(h);
    free(h->register_path);
    free(h->token_path);
    free(h->copies);
    buf_release(&h->mark.named);
    free(h->other);
    free(h->nowhere);
    free(h->notice);
    free(h->trust_fault);
    *h = (struct history){.dir_fd = FILE_ABSENT, .pointer_fd = FILE_ABSENT};
}

/* ---- all histories of the user ---- */

/* A search for all histories. */
struct all {
    const struct locate_from *from;
    void (*found)(void *arg, struct history h);
    void *arg;
};

/* For register_each: gives the history in a directory, if the directory can be the user's. */
static void visit_registered(void *arg, const char *dir)
{
    const struct all *a = arg;
    struct history h;
    const char *fault;
    char *parent = path_parent(dir);
    int fd;

    init(&h, a->from);
    if (open_own_directory(AT_FDCWD, dir, false, dir, &fd, &fault, NULL) > 0) {
        set_place(&h, strcmp(path_base(dir), HERE_NAME) == 0 ? HISTORY_HERE : HISTORY_REPOSITORY,
                  fd, parent, path_base(dir));
        a->found(a->arg, h);
    } else {
        history_release(&h);
    }
    free(parent);
}

/* Gives the second names. Those whose repositories exist name files that were given already. */
static void visit_second_names(const struct all *a)
{
    char *dir = a->from->data_home ? path_join(a->from->data_home, COPIES_NAME) : NULL;
    DIR *list = dir ? opendir(dir) : NULL;
    struct locate_from from = *a->from;
    struct dirent *entry;
    struct history h;

    while (list && (entry = readdir(list))) {
        char *file = path_join(dir, entry->d_name);

        from.explicit_file = file;
        if (str_ends(str_of(file), STR(".jsonl")) && locate(&h, &from, NULL) == 0)
            a->found(a->arg, h);
        free(file);
    }
    if (list)
        closedir(list);
    free(dir);
}

int locate_all(const struct locate_from *from, void (*found)(void *arg, struct history h),
               void *arg, struct err *e)
{
    struct all a = {from, found, arg};
    struct history own;
    char *path;
    int result;

    /* Each history has two or three. */
    system_open_many();
    init(&own, from);
    if (!own.register_path) {
        history_release(&own);
        return err_set(e, ERR_FAILURE,
                       "no register is known: neither HOME nor XDG_STATE_HOME is an absolute path");
    }
    path = mem_text(own.register_path);
    if (locate_of_user(&own, from, NULL) == 0)
        found(arg, own);
    else
        history_release(&own);
    result = register_each(path, visit_registered, &a, e);
    if (result == 0)
        visit_second_names(&a);
    free(path);
    return result;
}

/* ---- facts ---- */

bool history_has_worktrees(const struct history *h)
{
    struct stat st;

    /* git removes this directory with the last linked worktree. */
    return h->git && (is_linked(h) || h->git->way == WAY_OTHER ||
                      fstatat(h->git->common, "worktrees", &st, AT_SYMLINK_NOFOLLOW) == 0);
}

int history_git_dir(const struct history *h)
{
    /* Without h->git the history was found by its directory, in the register. */
    return openat(h->git ? h->git->common : h->dir_fd, h->git ? "." : "..",
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool history_forbidden(const struct history *h)
{
    int reason = 0;
    int fd = file_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, NULL, &reason, NULL);

    file_close(fd);
    return fd < 0 && (reason == EACCES || reason == EPERM);
}

struct append_wait history_wait(const struct history *h)
{
    return (struct append_wait){.ms = h->impatient ? HISTORY_IMPATIENT_MS : APPEND_LOCK_MS,
                                .cancel_fd = h->cancel_fd,
                                .tell = h->tell};
}

/* Returns the path by which people know the repository, or NULL if no second name is made. The
 * caller frees it. */
static char *repository_path(const struct history *h)
{
    struct str path;

    if (!h->git || h->is_old || !h->keeps_copies)
        return NULL;
    path = str_of(h->git->common_path);
    if (str_ends(path, STR("/.git")))
        path.n -= strlen("/.git");
    return mem_copy(path.p, path.n);
}

char *history_earlier(const struct history *h)
{
    char *repository = repository_path(h), *earlier = NULL;
    struct stat st = {0};

    if (repository &&
        ((file_stat(h->dir_fd, h->path, &st) < 0 && errno == ENOENT) || st.st_nlink == 1))
        earlier = second_name_of_earlier(h->copies, repository, st.st_ino);
    /* Another program has begun the history in the meantime, perhaps with its directory, and what
     * was found may be its second name. */
    if (earlier && st.st_nlink == 0 && stat(h->path, &st) == 0) {
        free(earlier);
        earlier = NULL;
    }
    free(repository);
    return earlier;
}

char *history_second_name(const struct history *h, const struct stat *st)
{
    char *name = second_name_find(h->copies, st, h->dir_fd, h->path);
    char *path = name ? path_join(h->copies, name) : NULL;

    free(name);
    return path;
}

void history_make_second_name(const struct history *h, const struct stat *st)
{
    char *repository = repository_path(h);

    if (repository)
        second_name_make(h->copies, repository, h->dir_fd, h->path, st);
    free(repository);
}

/* ---- the index files ---- */

const char *history_index_path(const struct history *h)
{
    return h->trusted && !h->unreadable ? h->index : NULL;
}

const char *history_file_of(const struct history *h, const char *path)
{
    char *files[] = {path_with_suffix(h->path, HISTORY_DELETED),
                     path_with_suffix(h->path, HISTORY_QUARANTINE),
                     h->dir ? history_marks(h) : NULL};
    bool own = path_same(path, h->pointer) || path_same(path, h->index) ||
               path_same(path, h->skip) || path_same(path, h->vectors);

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        own = own || (files[i] && path_same(path, files[i]));
        free(files[i]);
    }
    if (path_same(path, h->path))
        return "is the history";
    return own ? "belongs to the history" : NULL;
}

bool history_is_sidecar(int fd)
{
    static const char *const begins[] = {"\0\0\0\0\0\0\0", "HISTIDX", "SKIPIDX", "VECTORS"};
    char begin[7]; /* the next byte is the version */
    ssize_t n = file_pread_full(fd, begin, sizeof(begin), 0);

    /* A power cut may leave zeros, or a part. */
    for (size_t i = 0; n >= 0 && i < sizeof(begins) / sizeof(*begins); i++)
        if (memcmp(begin, begins[i], (size_t)n) == 0)
            return true;
    return false;
}

int history_open_index(int dir, const char *path, int flags, int *errnum)
{
    struct stat st;
    int fd = file_open_regular_at(dir, path, flags, 0600, &st, errnum, NULL);

    if (fd < 0 || (st.st_uid == geteuid() && (st.st_mode & 022) == 0 && st.st_nlink == 1 &&
                   history_is_sidecar(fd)))
        return fd;
    close(fd);
    *errnum = EPERM;
    return -1;
}

void history_remove_index(const struct history *h)
{
    char *making = h->index ? path_with_suffix(h->index, HISTORY_INDEX_MAKING) : NULL;
    const char *const paths[] = {making, h->index, h->skip, h->vectors};

    for (size_t i = 0; h->index && i < sizeof(paths) / sizeof(*paths); i++) {
        int fd = paths[i] ? file_open_regular_at(h->dir_fd, paths[i], O_RDONLY, 0, NULL, NULL, NULL)
                          : -1;

        if (fd >= 0 && history_is_sidecar(fd))
            file_unlink(h->dir_fd, paths[i]);
        file_close(fd);
    }
    free(making);
}

/* ---- making the directories ---- */

/* Makes the directory `name` in `parent`, or finds it made by another program, and opens it. */
static int make_place(int parent, const char *name, const char *path, int *fd, struct err *e)
{
    const char *fault;
    bool made = mkdirat(parent, name, 0700) == 0;
    int found;

    if (!made && errno != EEXIST)
        return err_sys(e, errno, "cannot make directory '%s'", path);
    /* The umask may have removed the permission to open it. A file system without modes refuses. */
    if (made && fchmodat(parent, name, 0700, 0) < 0 && errno != EPERM && errno != ENOTSUP)
        return err_sys(e, errno, "cannot make directory '%s'", path);
    found = open_own_directory(parent, name, false, path, fd, &fault, e);
    if (found < 0)
        return -1;
    if (found == 0)
        return err_set(e, ERR_FAILURE, "cannot use '%s': %s", path,
                       fault ? fault : strerror(ENOENT));
    if (made && file_sync_dir(parent, path) < 0)
        return err_sys(e, errno, "cannot make directory '%s'", path);
    return 0;
}

static int remove_pointer(int dir, const char *path, struct err *e)
{
    if (file_unlink(dir, path) < 0 && errno != ENOENT)
        return err_sys(e, errno, "cannot remove '%s'", path);
    return 0;
}

/* Makes the directory for the pointer of a linked worktree, and marks it: a pointer that came with
 * it is removed. Without a mark, which may fail, the next program does not follow the pointer. */
static int make_pointer_place(struct history *h, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct owner_mark m = MARK_INIT;
    char *dir = path_parent(h->pointer), *owner = path_join(dir, TRUST_OWNER);
    int result = make_place(h->git->git, DIR_NAME, h->pointer, &h->pointer_fd, e);

    if (result == 0)
        result = remove_pointer(h->pointer_fd, h->pointer, e);
    if (result == 0 && mark_set_file(&m, h->pointer_fd) == 0)
        (void)mark_write(&m, 1, h->pointer_fd, owner, h->token_path, &wait, NULL);
    free(owner);
    free(dir);
    return result;
}

/* Writes the file that keeps a directory outside of git out of commits, if a repository is made
 * around it later. */
static int ignore_in_git(const struct history *h, struct err *e)
{
    char *path = path_join(h->dir, ".gitignore");
    struct stat st;
    int result = 0;

    if (h->dir_fd >= 0 && file_stat(h->dir_fd, path, &st) < 0 && errno == ENOENT)
        result = file_replace_at(h->dir_fd, path, STR("*\n"), false, e);
    free(path);
    return result;
}

/* Makes the directories that are missing. */
static int make_missing(struct history *h, struct err *e)
{
    bool made = !h->dir_exists;

    if (made && (h->kind == HISTORY_USER || !h->git)) {
        if (file_make_dirs(h->dir, e) < 0)
            return -1;
        h->dir_fd = open(h->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (h->dir_fd < 0)
            return err_sys(e, errno, "cannot open '%s'", h->dir);
    } else if (made && make_place(h->git->common, DIR_NAME, h->dir, &h->dir_fd, e) < 0) {
        return -1;
    }
    h->dir_exists = true;
    if (!is_linked(h))
        h->pointer_fd = h->dir_fd;
    if (h->kind != HISTORY_REPOSITORY && ignore_in_git(h, made ? e : NULL) < 0 && made)
        return -1;
    return is_linked(h) && h->pointer_fd < 0 ? make_pointer_place(h, e) : 0;
}

/* ---- whose it is ---- */

/* Takes all rights to the directory and its files from others. Failures are not reported: a file
 * system may have no modes. */
static void close_to_others(const struct history *h)
{
    DIR *list = file_open_dir(h->dir_fd, h->dir);
    struct dirent *entry;
    struct stat st;

    if (fchmod(h->dir_fd, 0700) < 0)
        errno = 0;
    while (list && (entry = readdir(list))) {
        int fd = file_open_regular_at(h->dir_fd, entry->d_name, O_RDONLY, 0, &st, NULL, NULL);
        bool own =
            fd >= 0 && st.st_uid == geteuid() &&
            (st.st_nlink == 1 || (strcmp(entry->d_name, FILE_NAME) == 0 && has_own_names(h, &st)));

        if (own && fchmod(fd, 0600) < 0)
            errno = 0;
        file_close(fd);
    }
    if (list)
        closedir(list);
}

bool history_is_marked(struct history *h, int fd)
{
    struct stat st;

    if (!has_mark(h))
        return true;
    if (!h->marked || h->outdated || fstat(fd, &st) < 0 || (uint64_t)st.st_ino != h->mark.inode)
        set_trust(h);
    return h->marked && !h->outdated;
}

/* Writes the mark. Returns 1, 0 or -1 as mark_write. */
static int write_mark(const struct history *h, struct err *e)
{
    struct append_wait wait = history_wait(h);
    char *owner = history_marks(h);
    int result = mark_write(&h->mark, 1, h->dir_fd, owner, h->token_path, &wait, e);

    free(owner);
    return result;
}

int history_mark(struct history *h, int fd, off_t size, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct err why = ERR_INIT;
    int result = h->marked ? 0 : mark_token(h->token_path, &wait, &why);

    /* The pointer and the indexes came with the directory, and would lead the programs. The list of
     * deletions stays: it has only ids of lines that were erased. */
    if (result >= 0 && !h->marked) {
        char *pointer = path_join(h->dir, POINTER_NAME);

        close_to_others(h);
        result = remove_pointer(h->dir_fd, pointer, &why);
        history_remove_index(h);
        h->mark.from = size;
        buf_clear(&h->mark.named);
        free(pointer);
    }
    if (result >= 0 && mark_set_file(&h->mark, fd) < 0)
        result = err_sys(&why, errno, "cannot examine '%s'", h->path);
    if (result >= 0) {
        result = write_mark(h, &why);
        h->outdated = false;
    }
    if (result < 0)
        err_set(e, why.kind, "%s", err_text(&why));
    else if (result == 0 && h->on_unmarked)
        h->on_unmarked(err_text(&why));
    err_release(&why);
    /* For this program it is the user's, whether the next one can know that or not. */
    if (result >= 0)
        h->marked = h->trusted = true;
    return result < 0 ? -1 : 0;
}

int history_name(struct history *h, struct str id, struct err *e)
{
    int result;

    if (!has_mark(h))
        return 0;
    mark_name(&h->mark, id);
    result = write_mark(h, e);
    return result > 0 ? 0 : -1;
}

void history_announce(struct history *h)
{
    struct append_wait wait = history_wait(h);
    char *real;

    if (h->announced || (h->kind != HISTORY_REPOSITORY && h->kind != HISTORY_HERE))
        return;
    h->announced = true;
    real = path_real(h->dir, NULL);
    if (real && h->register_path)
        (void)register_add(h->register_path, real, &wait, NULL);
    free(real);
    if (h->git && !is_linked(h) && h->git->tree >= 0)
        work_link_make(h->git->common, h->git->tree, h->git->tree_path, h->dir);
}

int history_make(struct history *h, struct err *e)
{
    struct stat st;

    if (h->kind == HISTORY_EXPLICIT) {
        char *dir = path_parent(h->path);
        int result = stat(dir, &st) < 0 && errno == ENOENT ? file_make_dirs(dir, e) : 0;

        free(dir);
        return result < 0 ? -1 : 0;
    }
    if (!h->dir)
        return 0;
    if (h->nowhere)
        return err_set(e, ERR_FAILURE, "%s", h->nowhere);
    if (h->git && !h->is_old && strcmp(path_base(h->dir), HERE_NAME) == 0)
        return err_set(e, ERR_FAILURE,
                       "cannot write '%s': another program made it, and "
                       "hist-import brings it here",
                       h->path);
    if (h->git && h->is_old) {
        /* The directory that hist-new --here made before there was a repository moves to git's.
         * Programs that have it open go on using the same files. Nothing is moved if another
         * program has done so, or has made a new directory. */
        if (renameat(h->git->tree, HERE_NAME, h->git->common, DIR_NAME) < 0 && errno != ENOENT &&
            errno != EEXIST && errno != ENOTEMPTY && errno != EISDIR)
            return err_sys(e, errno, "cannot move '%s'", h->dir);
        close_dirs(h);
        set_paths(h, h->git->common_path, DIR_NAME, h->git->git_path);
        h->dir_exists = h->is_old = false;
    }
    return make_missing(h, e);
}

int history_make_here(struct history *h, const char *dir, struct err *e)
{
    struct stat st;

    if (h->git)
        return err_set(e, ERR_USAGE, "'%s' is in a git repository, which has a history of its own",
                       dir);
    close_dirs(h);
    h->kind = HISTORY_HERE;
    set_paths(h, dir, HERE_NAME, NULL);
    if (make_place(AT_FDCWD, h->dir, h->dir, &h->dir_fd, e) < 0)
        return -1;
    h->pointer_fd = h->dir_fd;
    h->dir_exists = true;
    h->entered = false;
    set_trust(h);
    /* A program of any account that made it wrote a mark, or stored nothing yet. */
    if (!h->safe || (file_stat(h->dir_fd, TRUST_OWNER, &st) < 0 &&
                     (file_stat(h->dir_fd, FILE_NAME, &st) == 0 ||
                      file_stat(h->dir_fd, POINTER_NAME, &st) == 0)))
        return err_set(e, ERR_FAILURE, "cannot use '%s': another program made it", h->dir);
    return 0;
}
