#include "history/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/dirs.h"
#include "chathist/base/io.h"
#include "chathist/base/mem.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"

#define ENDING ".jsonl"
#define FRESH ".new"
/* Of the path of a repository, its end; a file name has at most 255 bytes. */
#define NAME_PART ((size_t)200)
/* The most histories of one path that are kept. */
#define NUMBERS 1000

/* Opens the directory if it is the user's. -1 if it cannot be used. */
static int open_copies(const char *copies)
{
    int fd = copies ? open(copies, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

    if (fd >= 0 && owner_fault(fd, OWNER_USER)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Is the history itself in the directory of the links? */
static bool is_in(int copies, int dir, const char *path)
{
    char *parent = path_parent(path);
    struct stat a, b;
    bool same = fstat(copies, &a) == 0 &&
                (dir == IO_CWD ? stat(parent, &b) : fstat(dir, &b)) == 0 && a.st_dev == b.st_dev &&
                a.st_ino == b.st_ino;

    free(parent);
    return same;
}

/* Opens the directory for a history that is elsewhere. Returns -1 if it cannot be used, or is the
 * directory of the history. */
static int open_beside(const char *copies, int dir, const char *path)
{
    int fd = open_copies(copies);

    if (fd >= 0 && is_in(fd, dir, path)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void add_name(struct buf *out, const char *repository, int number)
{
    size_t n = strlen(repository), from = n > NAME_PART ? n - NAME_PART : 0;

    buf_clear(out);
    for (size_t i = from; i < n; i++)
        buf_add_byte(out, repository[i] == '/' ? '%' : repository[i]);
    if (number > 1)
        buf_addf(out, "~%d", number);
    buf_add_c(out, ENDING);
}

void copy_keep(const char *copies, const char *repository, int dir, const char *path,
               const struct stat *st)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int made = -1, fd;

    if (!copies || st->st_nlink != 1 || dirs_make(copies, NULL) < 0)
        return;
    fd = open_copies(copies);
    for (int number = 1; fd >= 0 && made < 0 && number < NUMBERS; number++) {
        add_name(&name, repository, number);
        made = linkat(dir, path_base(path), fd, buf_c(&name), 0);
        if (made < 0 && errno != EEXIST)
            break;
    }
    if (fd >= 0)
        close(fd);
    buf_release(&name);
}

char *copy_of_earlier(const char *copies, const char *repository, ino_t now)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    char *earlier = NULL;
    struct stat st;
    int fd = open_copies(copies);

    /* The newest one has the largest number. */
    for (int number = 1; fd >= 0 && number < NUMBERS; number++) {
        add_name(&name, repository, number);
        if (fstatat(fd, buf_c(&name), &st, AT_SYMLINK_NOFOLLOW) < 0)
            break;
        if (st.st_ino != now && S_ISREG(st.st_mode)) {
            free(earlier);
            earlier = path_join(copies, buf_c(&name));
        }
    }
    if (fd >= 0)
        close(fd);
    buf_release(&name);
    return earlier;
}

/* ---- renewing ---- */

/* Finds the link to a file. Returns its name, which the caller frees; NULL without one. A
 * rewrite that was killed before its last step is finished on the way. */
static char *find_link(int fd, const struct stat *of)
{
    int listed = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = listed < 0 ? NULL : fdopendir(listed);
    char *name = NULL;
    struct dirent *entry;
    struct stat st;

    while (list && !name && (entry = readdir(list)))
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == of->st_ino &&
            st.st_dev == of->st_dev)
            name = mem_copy(entry->d_name, strlen(entry->d_name));
    if (list)
        closedir(list);
    else if (listed >= 0)
        close(listed);
    if (name && str_ends(str_of(name), STR(ENDING FRESH))) {
        char *place = mem_copy(name, strlen(name) - strlen(FRESH));

        if (renameat(fd, name, fd, place) == 0) {
            free(name);
            name = place;
        } else {
            free(place);
        }
    }
    return name;
}

bool copy_exists(const char *copies, const struct stat *st, int dir, const char *path)
{
    int fd = open_beside(copies, dir, path);
    char *name = fd < 0 ? NULL : find_link(fd, st);

    if (fd >= 0)
        close(fd);
    free(name);
    return name != NULL;
}

int copy_renew_begin(struct copy_renewal *r, const char *copies, const struct stat *old, int dir,
                     const char *name, struct err *e)
{
    struct buf fresh = BUF_INIT(BUF_SMALL);
    int result;

    *r = (struct copy_renewal){.fd = open_beside(copies, dir, name)};
    r->name = r->fd < 0 ? NULL : find_link(r->fd, old);
    if (!r->name) {
        copy_renew_drop(r);
        return 0;
    }
    buf_addf(&fresh, "%s" FRESH, r->name);
    r->fresh = buf_detach(&fresh);
    /* One that is there belongs to a rewrite that was killed before its file was put in place. */
    (void)unlinkat(r->fd, r->fresh, 0);
    result = linkat(dir, dir == IO_CWD ? name : path_base(name), r->fd, r->fresh, 0);
    if (result < 0) {
        err_sys(e, errno, "cannot link '%s/%s'", copies, r->fresh);
        copy_renew_drop(r);
    }
    return result < 0 ? -1 : 1;
}

int copy_renew_end(struct copy_renewal *r, struct err *e)
{
    int result = r->fd < 0 ? 0 : renameat(r->fd, r->fresh, r->fd, r->name);

    if (result == 0 && r->fd >= 0)
        result = fsync(r->fd);
    if (result < 0)
        err_sys(e, errno, "cannot replace '%s', which keeps the erased messages", r->name);
    free(r->fresh);
    r->fresh = NULL;
    copy_renew_drop(r);
    return result;
}

void copy_renew_drop(struct copy_renewal *r)
{
    if (r->fd >= 0 && r->fresh)
        (void)unlinkat(r->fd, r->fresh, 0);
    if (r->fd >= 0)
        close(r->fd);
    free(r->name);
    free(r->fresh);
    *r = (struct copy_renewal){.fd = -1};
}
