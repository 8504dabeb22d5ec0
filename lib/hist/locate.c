#include "hist/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/dirs.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hist/register.h"

#define OURS ".aicoder"

/* ---- finding ---- */

/* What another user has put there says nothing about where we are. */
static bool has_entry(const char *dir, const char *name)
{
    struct stat st;
    char *path = path_join(dir, name);
    bool found = lstat(path, &st) == 0 && st.st_uid == geteuid();

    free(path);
    return found;
}

char *locate_root(const char *cwd)
{
    struct stat start, st;
    char *dir = mem_copy(cwd, strlen(cwd));

    if (stat(dir, &start) < 0)
        goto none;
    for (;;) {
        if (stat(dir, &st) < 0 || st.st_dev != start.st_dev)
            goto none;
        if (st.st_uid == geteuid() && (has_entry(dir, ".git") || has_entry(dir, OURS)))
            return dir;

        char *parent = path_parent(dir);
        bool top = strcmp(parent, dir) == 0 || strcmp(parent, ".") == 0;

        free(dir);
        dir = parent;
        if (top)
            goto none;
    }

none:
    free(dir);
    return NULL;
}

static char *with_suffix(const char *path, const char *suffix)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    buf_add_c(&b, path);
    buf_add_c(&b, suffix);
    return buf_detach(&b);
}

/* Is the `.aicoder` of a repository there, and fit for use? *inode is its own. 1, 0, -1. */
static int inspect_dir(const char *dir, uint64_t *inode, struct err *e)
{
    struct stat st;

    if (lstat(dir, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return err_sys(e, errno, "cannot open '%s'", dir);
    }
    if (S_ISLNK(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot use '%s': is a symbolic link", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_FAILURE, "cannot use '%s': is not a directory", dir);
    if (st.st_uid != geteuid())
        return err_set(e, ERR_FAILURE, "cannot use '%s': belongs to another user", dir);
    *inode = (uint64_t)st.st_ino;
    return 1;
}

/* How the history file begins, nothing when there is none. 0, -1. */
static int read_beginning(const char *path, struct buf *out)
{
    int reason = 0;
    int fd = io_open_regular(path, O_RDONLY, 0, NULL, &reason, NULL);
    ssize_t got;

    if (fd < 0)
        return reason == ENOENT ? 0 : -1;
    got = io_read_full(fd, buf_room(out, REGISTER_BEGINS), REGISTER_BEGINS);
    close(fd);
    if (got < 0)
        return -1;
    buf_grew(out, (size_t)got);
    return 0;
}

/* Has the user made or accepted this directory with the history in it? A register that cannot be
 * read knows nothing: it must not stand in the way of reading a history. The history is read first,
 * because a writer enters first: what is seen of it is in the register by then. */
static bool is_registered(const struct history *h, uint64_t inode)
{
    struct buf beginning = BUF_INIT(BUF_SMALL);
    char *real = path_real(h->dir, NULL);
    bool known = real && read_beginning(h->path, &beginning) == 0 &&
                 register_knows(h->register_path, real, inode, buf_str(&beginning), NULL) == 1;

    buf_release(&beginning);
    free(real);
    return known;
}

static void set_dir(struct history *h, const char *parent, const char *name)
{
    h->dir = path_join(parent, name);
    h->path = path_join(h->dir, "history.jsonl");
    h->pointer = path_join(h->dir, "session");
    h->index = path_join(h->dir, "history.idx");
    h->skip = path_join(h->dir, "history.skip");
}

static int locate_in_repository(struct history *h, const char *root, struct err *e)
{
    uint64_t inode = 0;
    int found;

    h->kind = HISTORY_REPOSITORY;
    set_dir(h, root, OURS);
    found = inspect_dir(h->dir, &inode, e);
    if (found < 0)
        return -1;
    h->dir_exists = found == 1;
    h->trusted = !h->dir_exists || is_registered(h, inode);
    return 0;
}

/* There is no place for it: a file of that name cannot be. */
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
    const char *data_home = from->data_home;
    struct stat st;

    if (!data_home)
        return locate_nowhere(
            h, from->may_be_nowhere, ERR_USAGE,
            "no place for a history: neither HOME nor XDG_DATA_HOME is an absolute path", e);
    h->kind = HISTORY_USER;
    set_dir(h, data_home, "aicoder");
    h->dir_exists = stat(h->dir, &st) == 0 && S_ISDIR(st.st_mode);
    h->trusted = true;
    return 0;
}

int locate(struct history *h, const struct locate_from *from, struct err *e)
{
    char *root = NULL;
    int result = 0;

    *h = (struct history){.sync = true, .cancel_fd = -1};
    if (from->state_home)
        h->register_path = path_join(from->state_home, "chathist/histories");

    if (from->explicit_file) {
        h->kind = HISTORY_EXPLICIT;
        h->path = mem_copy(from->explicit_file, strlen(from->explicit_file));
        h->pointer = with_suffix(h->path, ".session");
        h->index = with_suffix(h->path, ".idx");
        h->skip = with_suffix(h->path, ".skip");
        h->dir_exists = true;
        h->trusted = true;
        return 0;
    }
    root = from->cwd ? locate_root(from->cwd) : NULL;
    if (!from->cwd)
        result = locate_nowhere(h, from->may_be_nowhere, ERR_FAILURE,
                                "cannot tell the working directory", e);
    else if (root)
        result = locate_in_repository(h, root, e);
    else
        result = locate_of_user(h, from, e);
    free(root);
    if (result < 0)
        history_release(h);
    return result;
}

void history_look_again(struct history *h)
{
    struct err e = ERR_INIT;
    uint64_t inode = 0;

    if (h->kind == HISTORY_REPOSITORY && !h->trusted && inspect_dir(h->dir, &inode, &e) == 1)
        h->trusted = is_registered(h, inode);
    err_release(&e);
}

bool history_forbidden(const struct history *h)
{
    int reason = 0;
    int fd = io_open_regular(h->path, O_RDONLY, 0, NULL, &reason, NULL);

    if (fd >= 0)
        close(fd);
    return fd < 0 && (reason == EACCES || reason == EPERM);
}

void history_release(struct history *h)
{
    free(h->path);
    free(h->pointer);
    free(h->nowhere);
    free(h->index);
    free(h->skip);
    free(h->dir);
    free(h->register_path);
    *h = (struct history){0};
}

/* ---- the index ---- */

const char *history_index(const struct history *h)
{
    return h->trusted && !h->unreadable ? h->index : NULL;
}

bool history_is_sidecar(int fd)
{
    static const char none[8];
    char begin[sizeof(none)];
    ssize_t n = io_pread_full(fd, begin, sizeof(begin), 0);

    /* A power cut may leave zeros. */
    return n >= 0 && (memcmp(begin, none, (size_t)n) == 0 ||
                      (n == sizeof(begin) && memcmp(begin + 4, "IDX", 3) == 0));
}

static void remove_sidecar(const char *path)
{
    int fd = io_open_regular(path, O_RDONLY, 0, NULL, NULL, NULL);

    if (fd < 0)
        return;
    if (history_is_sidecar(fd))
        unlink(path);
    close(fd);
}

void history_remove_index(const struct history *h)
{
    char *temporary;

    if (!h->index)
        return;
    temporary = with_suffix(h->index, HISTORY_INDEX_MAKING);
    remove_sidecar(temporary);
    remove_sidecar(h->index);
    if (h->skip)
        remove_sidecar(h->skip);
    free(temporary);
}

/* ---- making and entering ---- */

struct append_wait history_wait(const struct history *h)
{
    return (struct append_wait){.ms = h->impatient ? HISTORY_IMPATIENT_MS : APPEND_LOCK_MS,
                                .cancel_fd = h->cancel_fd,
                                .tell = h->tell};
}

/* The name that `.aicoder` has without links. The caller frees it; NULL with *e. */
static char *real_dir(const struct history *h, struct err *e)
{
    char *parent = path_parent(h->dir);
    char *real_parent = path_real(parent, e);
    char *real = real_parent ? path_join(real_parent, OURS) : NULL;

    free(parent);
    free(real_parent);
    return real;
}

/* Enters `dir`, or what will be renamed to it, under the name that `dir` has without links. */
static int enter(const struct history *h, const char *dir, struct str beginning, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct stat st;
    char *real = real_dir(h, e);
    int result = -1;

    if (!real)
        return -1;
    if (lstat(dir, &st) < 0)
        err_sys(e, errno, "cannot open '%s'", dir);
    else
        result = register_enter(h->register_path, real, (uint64_t)st.st_ino, beginning, &wait, e);
    free(real);
    return result;
}

static int write_gitignore(const char *dir, struct err *e)
{
    char *path = path_join(dir, ".gitignore");
    int result = io_replace_file(path, STR("*\n"), e);

    free(path);
    return result;
}

/* A directory that others made may lack it. */
static int keep_out_of_commits(const char *dir, struct err *e)
{
    char *path = path_join(dir, ".gitignore");
    struct stat st;
    int result = 0;

    if (lstat(path, &st) < 0 && errno == ENOENT)
        result = write_gitignore(dir, e);
    free(path);
    return result;
}

static void remove_dir(const char *dir)
{
    char *ignore = path_join(dir, ".gitignore");

    unlink(ignore);
    rmdir(dir);
    free(ignore);
}

/* Makes the directory under a name of its own and renames it when it is complete, so that of
 * several programs that start in a new repository at once each finds it missing or registered. */
static int make_in_repository(struct history *h, struct err *e)
{
    char *fresh = with_suffix(h->dir, ".XXXXXX");
    uint64_t inode;
    int result = -1;

    if (!mkdtemp(fresh)) {
        err_sys(e, errno, "cannot make directory '%s'", h->dir);
        free(fresh);
        return -1;
    }
    if (chmod(fresh, 0700) < 0) {
        err_sys(e, errno, "cannot make directory '%s'", h->dir);
        goto out;
    }
    if (write_gitignore(fresh, e) < 0)
        goto out;

    /* Without the entry the history is stored all the same; it is asked about again next time. */
    (void)enter(h, fresh, STR_NONE, NULL);
    if (rename(fresh, h->dir) == 0) {
        result = io_sync_dir_of(h->dir);
        if (result < 0)
            err_sys(e, errno, "cannot make directory '%s'", h->dir);
        free(fresh);
        return result;
    }

    int reason = errno;

    /* Another program was faster; its directory is as good as ours. */
    if (reason == ENOTEMPTY || reason == EEXIST || reason == ENOTDIR)
        result = inspect_dir(h->dir, &inode, e) == 1 ? 0 : -1;
    else
        err_sys(e, reason, "cannot make directory '%s'", h->dir);

out:
    remove_dir(fresh);
    free(fresh);
    return result;
}

static int make(struct history *h, struct err *e)
{
    if (h->kind == HISTORY_REPOSITORY)
        return make_in_repository(h, e);

    int made = dirs_make(h->dir, e);

    if (made == 1)
        return write_gitignore(h->dir, e);
    return made;
}

/* Enters a directory that is there, with its history as it is. One that cannot be read is not
 * vouched for. */
static int enter_present(const struct history *h, struct err *e)
{
    struct buf beginning = BUF_INIT(BUF_SMALL);
    int result;

    (void)read_beginning(h->path, &beginning);
    result = enter(h, h->dir, buf_str(&beginning), e);
    buf_release(&beginning);
    return result;
}

int history_vouch(const struct history *h, struct str beginning, struct err *e)
{
    return h->kind == HISTORY_REPOSITORY ? enter(h, h->dir, beginning, e) : 0;
}

/* What the register knows a repository's directory by. */
struct entry {
    char *real; /* owned */
    uint64_t inode;
};

static int find_entry(const struct history *h, struct entry *n, struct err *e)
{
    *n = (struct entry){.real = real_dir(h, e)};
    return n->real && inspect_dir(h->dir, &n->inode, e) == 1 ? 0 : -1;
}

int history_vouch_both(const struct history *h, struct str now, struct str next, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct entry n;
    int result;

    if (h->kind != HISTORY_REPOSITORY)
        return 0;
    result = find_entry(h, &n, e);
    if (result == 0)
        result = register_enter_both(h->register_path, n.real, n.inode, now, next, &wait, e);
    free(n.real);
    return result;
}

int history_vouch_only(const struct history *h, struct str beginning, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct entry n;
    int result;

    if (h->kind != HISTORY_REPOSITORY)
        return 0;
    result = find_entry(h, &n, e);
    if (result == 0)
        result = register_enter_only(h->register_path, n.real, n.inode, beginning, &wait, e);
    free(n.real);
    return result;
}

int history_enter(struct history *h, bool *entered, struct err *e)
{
    if (entered)
        *entered = false;
    if (!h->dir || (h->dir_exists && h->trusted))
        return 0;
    if (h->nowhere)
        return err_set(e, ERR_FAILURE, "%s", h->nowhere);
    if (!h->dir_exists) {
        if (make(h, e) < 0)
            return -1;
        h->dir_exists = true;
        h->trusted = true;
        return 0;
    }

    /* From here on the pointer would be followed, and it is not the user's. */
    if (unlink(h->pointer) < 0 && errno != ENOENT)
        return err_sys(e, errno, "cannot remove '%s'", h->pointer);
    history_remove_index(h);
    if (keep_out_of_commits(h->dir, e) < 0 || enter_present(h, e) < 0)
        return -1;
    h->trusted = true;
    if (entered)
        *entered = true;
    return 0;
}
