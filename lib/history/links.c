#include "history/links.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chathist/base/buf.h"
#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/base/owner.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/history/append.h"

#define ENDING ".jsonl"
/* A name may have this many bytes before its number and ending; a file name has at most 255. */
#define NAME_MAX_BYTES ((size_t)220)
/* The most histories of one path that are kept. */
#define NUMBERS 1000

#define WORK_LINK ".aicoder"
#define EXCLUDE "exclude"

/* ---- the second name ---- */

/* Opens the directory if it is the user's. Returns -1 if it cannot be used. */
static int open_copies(const char *copies)
{
    int fd = copies ? open(copies, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

    if (fd >= 0 && owner_fault(fd, OWNER_USER)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void set_name(struct buf *out, const char *repository, int number)
{
    buf_clear(out);
    for (const char *p = repository; *p; p++) {
        if (*p == '/')
            buf_add_byte(out, '%');
        else if (*p == '%' || *p == '=' || *p == '~')
            buf_addf(out, "=%02X", (unsigned char)*p);
        else
            buf_add_byte(out, *p);
    }
    if (out->len > NAME_MAX_BYTES) {
        uint64_t sum = checksum(buf_str(out), 0);
        char *whole = buf_detach(out);

        buf_init(out, BUF_SMALL);
        buf_addf(out, "=%016" PRIx64, sum);
        buf_add_c(out, whole + strlen(whole) - (NAME_MAX_BYTES - out->len));
        free(whole);
    }
    if (number > 1)
        buf_addf(out, "~%d", number);
    buf_add_c(out, ENDING);
}

void second_name_make(const char *copies, const char *repository, int dir, const char *path,
                      const struct stat *st)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    int made = -1, fd;

    if (!copies || st->st_nlink != 1 || file_make_dirs(copies, NULL) < 0)
        return;
    fd = open_copies(copies);
    for (int number = 1; fd >= 0 && made < 0 && number < NUMBERS; number++) {
        set_name(&name, repository, number);
        made = linkat(dir, path_base(path), fd, buf_c(&name), 0);
        if (made < 0 && errno != EEXIST)
            break;
    }
    file_close(fd);
    buf_release(&name);
}

char *second_name_of_earlier(const char *copies, const char *repository, ino_t now)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    char *earlier = NULL;
    struct stat st;
    int fd = open_copies(copies);

    /* The newest one has the largest number. */
    for (int number = 1; fd >= 0 && number < NUMBERS; number++) {
        set_name(&name, repository, number);
        if (fstatat(fd, buf_c(&name), &st, AT_SYMLINK_NOFOLLOW) < 0)
            break;
        if (st.st_ino != now && S_ISREG(st.st_mode)) {
            free(earlier);
            earlier = path_join(copies, buf_c(&name));
        }
    }
    file_close(fd);
    buf_release(&name);
    return earlier;
}

char *second_name_find(const char *copies, const struct stat *st, int dir, const char *path)
{
    int fd = open_copies(copies);
    char *name = NULL, *parent = path_parent(path);
    struct stat found, a, b;
    bool same = fd >= 0 && fstat(fd, &a) == 0 &&
                (dir == FILE_CWD ? stat(parent, &b) : fstat(dir, &b)) == 0 && file_is_same(&a, &b);
    DIR *list = fd < 0 || same ? NULL : file_open_dir(fd, copies);
    struct dirent *entry;

    while (list && !name && (entry = readdir(list)))
        if (fstatat(fd, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            file_is_same(&found, st))
            name = mem_text(entry->d_name);
    if (list)
        closedir(list);
    file_close(fd);
    free(parent);
    return name;
}

int second_name_remove(const char *copies, const char *name, struct err *e)
{
    int fd = open_copies(copies), result = -1;

    /* Otherwise a power cut could undo this, and not the rename of the history that follows. */
    if (fd >= 0 && unlinkat(fd, name, 0) == 0)
        result = system_sync(fd);
    if (result < 0)
        err_sys(e, errno, "cannot remove '%s/%s', which keeps the erased messages", copies, name);
    file_close(fd);
    return result;
}

void second_name_restore(const char *copies, const char *name, int dir, const char *path)
{
    int fd = open_copies(copies);

    if (fd < 0)
        return;
    if (linkat(dir, dir == FILE_CWD ? path : path_base(path), fd, name, 0) == 0)
        (void)system_sync(fd);
    close(fd);
}

/* ---- the work link ---- */

static bool has_linked_line(struct str text, const char *line)
{
    while (text.n > 0)
        if (str_eq_c(str_trim(str_cut(&text, '\n')), line))
            return true;
    return false;
}

/* Adds the line to info/exclude unless it is there. A file that is made has the mode that git gives
 * its files, but others cannot write it. Returns 0 or -1. */
static int exclude(int common)
{
    struct append_wait wait = APPEND_WAIT_INIT;
    struct buf text = BUF_INIT(BUF_LINE);
    struct append a;
    struct stat st;
    int info, made, result;

    if (mkdirat(common, "info", 0777) < 0 && errno != EEXIST)
        return -1;
    info = openat(common, "info", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (info < 0)
        return -1;
    made = openat(info, EXCLUDE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (made >= 0) {
        /* Whatever the umask is, git reads it as this user. */
        if (fstat(made, &st) == 0 && (st.st_mode & 0600) != 0600)
            (void)!fchmod(made, (st.st_mode & 0777) | 0600);
        close(made);
    }
    result = append_open(&a, info, EXCLUDE, &wait, NULL);
    if (result == 0) {
        result = fstat(a.fd, &st) < 0 || st.st_nlink > 1 || owner_fault(a.fd, OWNER_USER)
                     ? -1
                     : file_read_all(a.fd, &text);
        if (result == 0 && !has_linked_line(buf_str(&text), "/" WORK_LINK))
            result = append_write(&a, STR("/" WORK_LINK "\n"), false, NULL);
        append_close(&a);
    }
    close(info);
    buf_release(&text);
    return result;
}

/* Returns the relative path from one directory to a file. Both paths are absolute and without
 * links. The caller frees it. */
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
    /* `from` is a parent directory of `to`. */
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

/* Removes a link to a directory `name` that no longer exists. Any other link is the user's. */
static void remove_dangling(int tree, const char *name)
{
    char target[4096];
    ssize_t n = readlinkat(tree, WORK_LINK, target, sizeof(target) - 1);
    struct stat st;

    if (n <= 0)
        return;
    target[n] = '\0';
    if (strcmp(path_base(target), name) == 0 && fstatat(tree, WORK_LINK, &st, 0) < 0 &&
        (errno == ENOENT || errno == ENOTDIR))
        (void)unlinkat(tree, WORK_LINK, 0);
}

void work_link_make(int common, int tree, const char *tree_path, const char *dir)
{
    char *from, *to, *target;
    struct stat st;

    remove_dangling(tree, path_base(dir));
    if (fstatat(tree, WORK_LINK, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return;
    from = path_real(tree_path, NULL);
    to = path_real(dir, NULL);
    if (from && to && exclude(common) == 0) {
        target = relative(from, to);
        if (symlinkat(target, tree, WORK_LINK) < 0)
            errno = 0; /* another program was faster, or the file system has no links */
        free(target);
    }
    free(from);
    free(to);
}
