#include "chathist/history/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/dirs.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "history/copy.h"
#include "chathist/history/register.h"
#include "history/trust.h"
#include "history/work_link.h"

/* The names of the directories of histories: below git's common directory and the user's data
 * directory, and elsewhere. */
#define DIR_NAME "aicoder"
#define HERE_NAME ".aicoder"
#define FILE_NAME "history.jsonl"
#define POINTER_NAME "session"

static const char *const state_names[] = {FILE_NAME, POINTER_NAME};

/* ---- names ---- */

static char *with_suffix(const char *path, const char *suffix)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    buf_add_c(&b, path);
    buf_add_c(&b, suffix);
    return buf_detach(&b);
}

static void free_paths(struct history *h)
{
    free(h->path);
    free(h->pointer);
    free(h->index);
    free(h->skip);
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
    h->index = path_join(h->dir, "history.idx");
    h->skip = path_join(h->dir, "history.skip");
    pointer_dir = path_join(pointer_parent ? pointer_parent : parent, name);
    h->pointer = path_join(pointer_dir, POINTER_NAME);
    free(pointer_dir);
}

static void close_dirs(struct history *h)
{
    if (h->pointer_fd >= 0 && h->pointer_fd != h->dir_fd)
        close(h->pointer_fd);
    if (h->dir_fd >= 0)
        close(h->dir_fd);
    h->dir_fd = h->pointer_fd = IO_ABSENT;
}

/* Is this a linked worktree? It has its own pointer. */
static bool has_own_pointer(const struct history *h)
{
    return h->git.git >= 0 && h->git.git != h->git.common && !h->old_dir;
}

/* ---- trust ---- */

/* Can only the user have written the file? One that is absent, or cannot be opened, leads nothing. */
static bool is_own_file(int dir, const char *name)
{
    int fd = io_open_regular_at(dir, name, O_RDONLY, 0, NULL, NULL, NULL);
    bool own = fd < 0 || !owner_fault(fd, OWNER_USER);

    if (fd >= 0)
        close(fd);
    return own;
}

/* Does the directory hold what could lead a conversation? */
static bool has_state(const struct history *h)
{
    struct stat st;

    for (size_t i = 0; i < sizeof state_names / sizeof *state_names; i++)
        if (io_stat(h->dir_fd, state_names[i], &st) == 0)
            return true;
    return false;
}

static void set_trust(struct history *h)
{
    struct err e = ERR_INIT;
    int marked;

    h->trusted = !h->dir_exists;
    if (h->trusted || owner_fault(h->dir_fd, OWNER_USER))
        return;
    for (size_t i = 0; i < sizeof state_names / sizeof *state_names; i++)
        if (!is_own_file(h->dir_fd, state_names[i]))
            return;
    marked = trust_has(h->dir_fd, h->token_path, &e);
    if (marked < 0 && !h->doubt)
        h->doubt = mem_copy(err_text(&e), strlen(err_text(&e)));
    h->trusted = marked > 0 || (marked == 0 && !has_state(h));
    err_release(&e);
}

void history_look_again(struct history *h)
{
    if (!h->trusted && h->dir)
        set_trust(h);
}

/* ---- finding ---- */

/* Opens the directory `name` in `parent`: 1, 0 if it does not exist, -1 with *e for something that
 * is no directory. *fault: why it cannot be used. */
static int open_place(int parent, const char *name, const char *path, int *fd, const char **fault,
                      struct err *e)
{
    struct stat st;

    *fault = NULL;
    *fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT)
        return 0;
    if (*fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        bool link = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);

        return err_set(e, ERR_FAILURE, "cannot use '%s': is %s", path,
                       link ? "a symbolic link" : "not a directory");
    }
    if (*fd < 0 && errno == EACCES) {
        *fault = "cannot be opened";
    } else if (*fd < 0 || fstat(*fd, &st) < 0) {
        err_sys(e, errno, "cannot open '%s'", path);
        if (*fd >= 0)
            close(*fd);
        *fd = IO_ABSENT;
        return -1;
    } else if (st.st_uid != geteuid()) {
        *fault = "belongs to another user";
    } else {
        return 1;
    }
    if (*fd >= 0)
        close(*fd);
    *fd = IO_ABSENT;
    return 0;
}

static char *sentence(const char *path, const char *fault)
{
    struct buf b = BUF_INIT(SIZE_MAX);

    buf_addf(&b, "'%s' %s", path, fault);
    return buf_detach(&b);
}

/* Is a directory of this name that an older version, or hist-new --here, made the user's own? */
static bool is_ours(const struct history *h, int fd, const char *path)
{
    struct err e = ERR_INIT;
    struct stat st;
    char *real;
    bool ours = trust_has(fd, h->token_path, &e) > 0;

    if (!ours && fstat(fd, &st) == 0 && !owner_fault(fd, OWNER_USER)) {
        real = path_real(path, NULL);
        ours = real && register_lists_inode(h->register_path, real, (uint64_t)st.st_ino, NULL) > 0;
        free(real);
    }
    err_release(&e);
    return ours;
}

/* Looks for `.aicoder` in the work tree, which an older version made or another program uses. */
static void look_in_work_tree(struct history *h, bool reader)
{
    const char *fault = NULL;
    struct stat st;
    char *dir;
    int fd = IO_ABSENT, tree;
    bool ours;

    if (!h->git.work_tree)
        return;
    tree = open(h->git.work_tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = path_join(h->git.work_tree, HERE_NAME);
    if (tree < 0 || open_place(tree, HERE_NAME, dir, &fd, &fault, NULL) <= 0 ||
        io_stat(fd, FILE_NAME, &st) < 0)
        goto out;
    ours = io_stat(h->dir_fd, FILE_NAME, &st) < 0 && is_ours(h, fd, dir);
    if (!ours)
        h->foreign = path_join(dir, FILE_NAME);
    if (ours || (reader && io_stat(h->dir_fd, h->path, &st) < 0)) {
        close_dirs(h);
        h->dir_fd = fd;
        fd = IO_ABSENT;
        set_paths(h, h->git.work_tree, HERE_NAME, NULL);
        h->dir_exists = true;
        if (ours)
            h->old_dir = mem_copy(dir, strlen(dir));
    }

out:
    if (fd >= 0)
        close(fd);
    if (tree >= 0)
        close(tree);
    free(dir);
}

/* Opens the directory of a linked worktree's pointer. It counts as absent without the user's mark:
 * whoever made the worktree, as part of an archive, may have named any repository as its own. */
static int open_pointer_place(struct history *h, struct err *e)
{
    const char *fault;
    int found = open_place(h->git.git, DIR_NAME, h->pointer, &h->pointer_fd, &fault, e);

    if (found > 0 && (owner_fault(h->pointer_fd, OWNER_USER) ||
                      trust_has(h->pointer_fd, h->token_path, NULL) <= 0)) {
        close(h->pointer_fd);
        h->pointer_fd = IO_ABSENT;
    }
    return found < 0 ? -1 : 0;
}

/* 1; 0 with *unusable set; -1. */
static int locate_in_repository(struct history *h, bool reader, char **unusable, struct err *e)
{
    const char *fault;
    int found;

    h->kind = HISTORY_REPOSITORY;
    set_paths(h, h->git.common_path, DIR_NAME, h->git.git_path);
    found = open_place(h->git.common, DIR_NAME, h->dir, &h->dir_fd, &fault, e);
    if (found < 0)
        return -1;
    if (fault)
        *unusable = sentence(h->dir, fault);
    if (fault)
        return 0;
    h->dir_exists = found == 1;
    h->pointer_fd = h->dir_fd;
    if (has_own_pointer(h) && open_pointer_place(h, e) < 0)
        return -1;
    look_in_work_tree(h, reader);
    if (!h->dir_exists && faccessat(h->git.common, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        *unusable = sentence(h->git.common_path, "cannot be written");
        return 0;
    }
    set_trust(h);
    /* What a checkout may have put there is not followed. */
    if (h->old_dir) {
        h->trusted = true;
        h->pointer_fd = IO_ABSENT;
    }
    return 1;
}

/* For dirs_upwards: is `.aicoder` in this directory a history of the user's? 1, 0. */
static int look_here(void *arg, int parent, const char *path)
{
    struct history *h = arg;
    const char *fault;
    char *dir = path_join(path, HERE_NAME);
    int fd, found = open_place(parent, HERE_NAME, dir, &fd, &fault, NULL);

    if (found > 0 && is_ours(h, fd, dir)) {
        h->kind = HISTORY_HERE;
        h->dir_fd = h->pointer_fd = fd;
        h->dir_exists = true;
        set_paths(h, path, HERE_NAME, NULL);
        set_trust(h);
    } else if (fd >= 0) {
        close(fd);
        found = 0;
    }
    free(dir);
    return found > 0;
}

/* There is no place for it. */
static int locate_nowhere(struct history *h, bool may_be_nowhere, enum err_kind kind,
                          const char *why, struct err *e)
{
    if (!may_be_nowhere)
        return err_set(e, kind, "%s", why);
    h->kind = HISTORY_USER;
    h->path = mem_copy("", 0);
    h->pointer = mem_copy("", 0);
    h->dir = mem_copy("", 0);
    h->nowhere = mem_copy(why, strlen(why));
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
    /* One that cannot be listed may still be used: its files are opened by their paths. */
    if (h->dir_fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        h->dir_fd = IO_CWD;
        h->dir_exists = true;
    }
    h->pointer_fd = h->dir_fd;
    h->trusted = true;
    return 0;
}

static int locate_explicit(struct history *h, const char *file)
{
    h->kind = HISTORY_EXPLICIT;
    h->dir_fd = h->pointer_fd = IO_CWD;
    h->path = mem_copy(file, strlen(file));
    h->pointer = with_suffix(h->path, ".session");
    h->index = with_suffix(h->path, ".idx");
    h->skip = with_suffix(h->path, ".skip");
    h->dir_exists = true;
    h->trusted = is_own_file(IO_CWD, h->path);
    return 0;
}

/* Everything but an explicit FILE. */
static int locate_by_directory(struct history *h, const struct locate_from *from, struct err *e)
{
    char *unusable = NULL;
    int found = git_dirs_open(&h->git, from->cwd, &from->git, &unusable, e);

    if (found > 0)
        found = locate_in_repository(h, from->reader, &unusable, e);
    if (found == 0 && unusable) {
        close_dirs(h);
        git_dirs_close(&h->git);
        h->notice = unusable;
    } else if (found == 0) {
        found = dirs_upwards(from->cwd, look_here, h, e);
    }
    if (found == 0)
        return locate_of_user(h, from, e);
    return found < 0 ? -1 : 0;
}

static void init(struct history *h, const struct locate_from *from)
{
    *h = (struct history){.dir_fd = IO_ABSENT,
                          .pointer_fd = IO_ABSENT,
                          .git = {.git = -1, .common = -1},
                          .sync = true,
                          .cancel_fd = -1};
    if (from->state_home) {
        h->register_path = path_join(from->state_home, "chathist/histories");
        h->token_path = path_join(from->state_home, "chathist/token");
    }
    h->keeps_copies = !from->no_copies;
    if (from->data_home)
        h->copies = path_join(from->data_home, DIR_NAME "/repositories");
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

int locate_registered(struct history *h, const char *dir, const struct locate_from *from)
{
    const char *fault;
    char *parent = path_parent(dir);
    bool found;

    init(h, from);
    found = open_place(AT_FDCWD, dir, dir, &h->dir_fd, &fault, NULL) > 0;
    if (found) {
        h->kind = strcmp(path_base(dir), HERE_NAME) == 0 ? HISTORY_HERE : HISTORY_REPOSITORY;
        h->pointer_fd = h->dir_fd;
        h->dir_exists = true;
        set_paths(h, parent, path_base(dir), NULL);
        h->trusted = is_ours(h, h->dir_fd, dir);
    } else {
        history_release(h);
    }
    free(parent);
    return found;
}

int locate_own(struct history *h, const struct locate_from *from, struct err *e)
{
    init(h, from);
    return locate_of_user(h, from, e);
}

bool history_has_worktrees(const struct history *h)
{
    struct stat st;

    /* git removes this directory with the last linked worktree. */
    return has_own_pointer(h) ||
           (h->git.common >= 0 && fstatat(h->git.common, "worktrees", &st, 0) == 0);
}

bool history_forbidden(const struct history *h)
{
    int reason = 0;
    int fd = io_open_regular_at(h->dir_fd, h->path, O_RDONLY, 0, NULL, &reason, NULL);

    if (fd >= 0)
        close(fd);
    return fd < 0 && (reason == EACCES || reason == EPERM);
}

void history_release(struct history *h)
{
    close_dirs(h);
    git_dirs_close(&h->git);
    free_paths(h);
    free(h->register_path);
    free(h->token_path);
    free(h->copies);
    free(h->old_dir);
    free(h->foreign);
    free(h->nowhere);
    free(h->notice);
    free(h->doubt);
    *h = (struct history){.dir_fd = IO_ABSENT, .pointer_fd = IO_ABSENT};
}

/* ---- the second name ---- */

/* The path by which people know the repository. The caller frees it; NULL outside of repositories. */
static char *repository_path(const struct history *h)
{
    const char *common = h->git.common_path;
    size_t n = common ? strlen(common) : 0;

    if (h->kind != HISTORY_REPOSITORY || !common || h->old_dir)
        return NULL;
    return str_ends(str_of(common), STR("/.git")) ? mem_copy(common, n - strlen("/.git"))
                                                  : mem_copy(common, n);
}

char *history_earlier(const struct history *h)
{
    char *repository = repository_path(h), *earlier = NULL;
    struct stat st = {0};

    if (repository && h->keeps_copies &&
        ((io_stat(h->dir_fd, h->path, &st) < 0 && errno == ENOENT) || st.st_nlink == 1))
        earlier = copy_of_earlier(h->copies, repository, st.st_ino);
    free(repository);
    return earlier;
}

void history_keep_copy(const struct history *h, const struct stat *st)
{
    char *repository = h->keeps_copies ? repository_path(h) : NULL;

    if (repository)
        copy_keep(h->copies, repository, h->dir_fd, h->path, st);
    free(repository);
}

/* ---- the index ---- */

const char *history_index(const struct history *h)
{
    return h->trusted && !h->unreadable ? h->index : NULL;
}

bool history_is_sidecar(int fd)
{
    static const char *const begins[] = {"\0\0\0\0\0\0\0", "HISTIDX", "SKIPIDX"};
    char begin[7]; /* the next byte is the version */
    ssize_t n = io_pread_full(fd, begin, sizeof(begin), 0);

    /* A power cut may leave zeros, or a part. */
    for (size_t i = 0; n >= 0 && i < sizeof(begins) / sizeof(*begins); i++)
        if (memcmp(begin, begins[i], (size_t)n) == 0)
            return true;
    return false;
}

static void remove_sidecar(int dir, const char *path)
{
    int fd = io_open_regular_at(dir, path, O_RDONLY, 0, NULL, NULL, NULL);

    if (fd < 0)
        return;
    if (history_is_sidecar(fd))
        io_unlink(dir, path);
    close(fd);
}

void history_remove_index(const struct history *h)
{
    char *temporary;

    if (!h->index)
        return;
    temporary = with_suffix(h->index, HISTORY_INDEX_MAKING);
    remove_sidecar(h->dir_fd, temporary);
    remove_sidecar(h->dir_fd, h->index);
    if (h->skip)
        remove_sidecar(h->dir_fd, h->skip);
    free(temporary);
}

/* ---- making and entering ---- */

struct append_wait history_wait(const struct history *h)
{
    return (struct append_wait){.ms = h->impatient ? HISTORY_IMPATIENT_MS : APPEND_LOCK_MS,
                                .cancel_fd = h->cancel_fd,
                                .tell = h->tell};
}

/* Writes the file that keeps a directory outside of git out of commits, if a repository is made
 * around it later. */
static int ignore_in_git(const struct history *h, struct err *e)
{
    char *path = path_join(h->dir, ".gitignore");
    struct stat st;
    int result = 0;

    if (h->dir_fd >= 0 && io_stat(h->dir_fd, path, &st) < 0 && errno == ENOENT)
        result = io_replace_file_at(h->dir_fd, path, STR("*\n"), false, e);
    free(path);
    return result;
}

/* Makes the directory `name` in `parent`, or finds it made by another program, and opens it. */
static int make_place(int parent, const char *name, const char *path, int *fd, struct err *e)
{
    const char *fault;
    bool made = mkdirat(parent, name, 0700) == 0;
    int found;

    if (!made && errno != EEXIST)
        return err_sys(e, errno, "cannot make directory '%s'", path);
    /* The umask may have removed the permission to open it. */
    if (made)
        (void)fchmodat(parent, name, 0700, 0);
    found = open_place(parent, name, path, fd, &fault, e);
    if (found < 0)
        return -1;
    if (found == 0)
        return err_set(e, ERR_FAILURE, "cannot use '%s': %s", path,
                       fault ? fault : strerror(ENOENT));
    if (made && io_sync_dir(parent, path) < 0)
        return err_sys(e, errno, "cannot make directory '%s'", path);
    return 0;
}

static int make_of_user(struct history *h, struct err *e)
{
    if (dirs_make(h->dir, e) < 0)
        return -1;
    h->dir_fd = h->pointer_fd = open(h->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (h->dir_fd < 0)
        return err_sys(e, errno, "cannot open '%s'", h->dir);
    return 0;
}

static int put_mark(const struct history *h, struct err *e)
{
    char *owner = path_join(h->dir, TRUST_OWNER);
    int result = trust_put(h->dir_fd, owner, h->token_path, e);

    free(owner);
    return result;
}

/* Makes the directory for the pointer of a linked worktree. One that is there without the user's mark
 * came with the worktree: its pointer goes. Without a mark, which may fail, the next program does not
 * follow the pointer. */
static int make_pointer_place(struct history *h, struct err *e)
{
    if (make_place(h->git.git, DIR_NAME, h->pointer, &h->pointer_fd, e) < 0)
        return -1;
    if (trust_has(h->pointer_fd, h->token_path, NULL) > 0)
        return 0;
    if (io_unlink(h->pointer_fd, h->pointer) < 0 && errno != ENOENT)
        return err_sys(e, errno, "cannot remove '%s'", h->pointer);
    (void)trust_put(h->pointer_fd, TRUST_OWNER, h->token_path, NULL);
    return 0;
}

/* Makes the directories that are missing. */
static int make(struct history *h, struct err *e)
{
    if (!h->dir_exists) {
        int result = h->kind == HISTORY_USER
                         ? make_of_user(h, e)
                         : make_place(h->git.common, DIR_NAME, h->dir, &h->dir_fd, e);

        if (result < 0)
            return -1;
        h->dir_exists = true;
        if (!has_own_pointer(h))
            h->pointer_fd = h->dir_fd;
    }
    if (has_own_pointer(h) && h->pointer_fd < 0)
        return make_pointer_place(h, e);
    return 0;
}

void history_announce(const struct history *h)
{
    struct append_wait wait = history_wait(h);
    char *real;

    if (h->kind != HISTORY_REPOSITORY && h->kind != HISTORY_HERE)
        return;
    real = path_real(h->dir, NULL);
    if (real && h->register_path)
        (void)register_add(h->register_path, real, &wait, NULL);
    free(real);
    if (h->kind == HISTORY_REPOSITORY && !h->old_dir)
        work_link_make(&h->git, h->dir);
}

/* ---- moving the history of an older version ---- */

static void remove_old(int old, const char *work_tree)
{
    static const char *const names[] = {POINTER_NAME,   "history.idx", "history.idx.tmp",
                                        "history.skip", ".gitignore",  TRUST_OWNER};
    int tree = open(work_tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unlinkat(old, names[i], 0);
    if (tree >= 0) {
        (void)unlinkat(tree, HERE_NAME, AT_REMOVEDIR);
        close(tree);
    }
}

/* Moves the files under the lock of the history. 1; 0 if they cannot be moved because the work tree
 * is on another file system; -1. */
static int move_files(struct history *h, int to, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct append a;
    struct stat st;
    int result = 1;

    if (append_open_present(&a, h->dir_fd, h->path, &wait, e) < 0) {
        /* Another program has moved them while this one waited for the lock, or before. */
        if (io_stat(h->dir_fd, h->path, &st) == 0 || errno != ENOENT ||
            fstatat(to, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
        if (e)
            err_release(e);
        return 1;
    }
    if (fstatat(to, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
        result = 0;
    else if (renameat(h->dir_fd, FILE_NAME, to, FILE_NAME) < 0)
        result = errno == EXDEV ? 0 : err_sys(e, errno, "cannot move '%s'", h->path);
    if (result > 0) {
        (void)renameat(h->dir_fd, FILE_NAME ".quarantine", to, FILE_NAME ".quarantine");
        remove_old(h->dir_fd, h->git.work_tree);
        if (fsync(to) < 0 || fsync(h->dir_fd) < 0)
            result = err_sys(e, errno, "cannot move '%s'", h->path);
    }
    append_close(&a);
    return result;
}

static int move_old(struct history *h, struct err *e)
{
    char *place = path_join(h->git.common_path, DIR_NAME), *owner = path_join(place, TRUST_OWNER);
    int to = IO_ABSENT, moved = make_place(h->git.common, DIR_NAME, place, &to, e);

    if (moved == 0)
        moved = trust_put(to, owner, h->token_path, e);
    if (moved == 0)
        moved = move_files(h, to, e);
    free(owner);
    free(place);
    if (moved > 0) {
        close_dirs(h);
        h->dir_fd = to;
        set_paths(h, h->git.common_path, DIR_NAME, h->git.git_path);
        free(h->old_dir);
        h->old_dir = NULL;
        h->pointer_fd = has_own_pointer(h) ? IO_ABSENT : h->dir_fd;
    } else {
        if (to >= 0)
            close(to);
        h->pointer_fd = h->dir_fd;
    }
    return moved < 0 ? -1 : 0;
}

/* Makes the history one of the user's own: marks it and enters it in the register. `fresh`: it was
 * made just now. */
static int adopt(struct history *h, bool fresh, struct err *e)
{
    struct err ignored = ERR_INIT;
    bool marked;

    if (!h->trusted) {
        /* From here on the pointer would be followed, and it is not the user's. */
        if ((io_unlink(h->pointer_fd, h->pointer) < 0 && errno != ENOENT) ||
            (io_unlink(h->dir_fd, POINTER_NAME) < 0 && errno != ENOENT))
            return err_sys(e, errno, "cannot remove '%s'", h->pointer);
        history_remove_index(h);
    }
    marked = trust_has(h->dir_fd, h->token_path, &ignored) > 0;
    fresh = fresh || !marked;
    marked = marked || put_mark(h, &ignored) == 0;
    if (!marked && !h->trusted) {
        err_set(e, ignored.kind, "%s", err_text(&ignored));
        err_release(&ignored);
        return -1;
    }
    err_release(&ignored);
    if (fresh || !h->trusted)
        history_announce(h);
    return 0;
}

int history_enter(struct history *h, bool *entered, struct err *e)
{
    bool fresh = !h->dir_exists || h->old_dir;

    if (entered)
        *entered = false;
    if (!h->dir || h->entered)
        return 0;
    if (h->nowhere)
        return err_set(e, ERR_FAILURE, "%s", h->nowhere);
    if (h->foreign && strcmp(h->foreign, h->path) == 0)
        return err_set(e, ERR_FAILURE,
                       "cannot write '%s': another program or an older version made it, and "
                       "hist-import brings it here",
                       h->foreign);
    if ((h->old_dir && move_old(h, e) < 0) || make(h, e) < 0)
        return -1;
    if (h->kind != HISTORY_REPOSITORY && ignore_in_git(h, fresh ? e : NULL) < 0 && fresh)
        return -1;
    if (h->kind != HISTORY_USER) {
        if (adopt(h, fresh, e) < 0)
            return -1;
        if (entered)
            *entered = !h->trusted;
        h->trusted = true;
    }
    h->entered = true;
    return 0;
}

int history_make_here(struct history *h, const char *dir, struct err *e)
{
    char *place;
    int parent, fd = IO_ABSENT, result = -1;

    if (h->git.common >= 0)
        return err_set(e, ERR_USAGE, "'%s' is in a git repository, which has a history of its own",
                       dir);
    place = path_join(dir, HERE_NAME);
    parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        err_sys(e, errno, "cannot open '%s'", dir);
    else
        result = make_place(parent, HERE_NAME, place, &fd, e);
    if (parent >= 0)
        close(parent);
    free(place);
    if (result < 0)
        return -1;
    close_dirs(h);
    h->kind = HISTORY_HERE;
    h->dir_fd = h->pointer_fd = fd;
    h->dir_exists = true;
    set_paths(h, dir, HERE_NAME, NULL);
    set_trust(h);
    h->entered = false;
    return 0;
}
