#include "history/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"

#define GROUP_SUFFIX ".group"
#define GROUP_MAGIC "chgroup1"
#define GROUP_HEAD 32

static char *group_path(const struct history *h)
{
    return path_with_suffix(h->path, GROUP_SUFFIX);
}

bool group_is_left(const struct history *h)
{
    char *path = group_path(h);
    struct stat st;
    bool left = file_stat(h->dir_fd, path, &st) == 0;

    free(path);
    return left;
}

/* ---- writing ---- */

int group_begin(struct group *g, const struct history *h, struct err *e)
{
    static const char no_head[GROUP_HEAD];

    *g = (struct group){.h = h, .path = group_path(h), .pending = BUF_INIT(SIZE_MAX)};
    if (file_replace_begin_at(&g->file, h->dir_fd, g->path, e) < 0) {
        free(g->path);
        return -1;
    }
    g->file.unsynced = !h->sync;
    if (file_write_all(g->file.fd, no_head, sizeof(no_head)) < 0)
        g->reason = errno;
    return 0;
}

static void release(struct group *g)
{
    free(g->path);
    buf_release(&g->pending);
}

void group_drop(struct group *g)
{
    file_replace_drop(&g->file);
    release(g);
}

static void write_piece(struct group *g, struct str piece)
{
    if (g->reason == 0 && file_write_all(g->file.fd, piece.p, piece.n) < 0)
        g->reason = errno;
    g->sum = checksum(piece, g->sum);
    g->size += (off_t)piece.n;
}

void group_add(struct group *g, struct str lines)
{
    size_t done = 0;

    buf_add_str(&g->pending, lines);
    for (; g->pending.len - done >= GROUP_PIECE; done += GROUP_PIECE)
        write_piece(g, (struct str){g->pending.data + done, GROUP_PIECE});
    buf_consume(&g->pending, done);
}

/* Writes the head, and puts the file in its place. Returns a descriptor of it, or -1 with *e
 * set. */
static int put_in_place(struct group *g, const struct append *a, struct err *e)
{
    char head[GROUP_HEAD] = GROUP_MAGIC;
    struct stat st;
    int fd = -1;

    if (g->pending.len > 0)
        write_piece(g, buf_str(&g->pending));
    if (g->reason == 0 && fstat(a->fd, &st) < 0)
        g->reason = errno;
    if (g->reason == 0) {
        le_put(head + 8, st.st_ino);
        le_put(head + 16, (uint64_t)(a->end + a->torn));
        le_put(head + 24, g->sum);
        if (file_pwrite_all(g->file.fd, head, sizeof(head), 0) < 0 ||
            (fd = fcntl(g->file.fd, F_DUPFD_CLOEXEC, 3)) < 0)
            g->reason = errno;
    }
    if (g->reason != 0) {
        file_replace_drop(&g->file);
        return err_sys(e, g->reason, "cannot write '%s'", g->path);
    }
    if (file_replace_end(&g->file, e) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int group_end(struct group *g, struct append *a, struct err *e)
{
    int fd = put_in_place(g, a, e);
    int result = -1;

    if (fd >= 0) {
        result = append_copy(a, fd, GROUP_HEAD, g->size, g->h->sync, e);
        (void)file_unlink(g->h->dir_fd, g->path);
        close(fd);
    }
    release(g);
    return result;
}

/* ---- what a killed writer has left ---- */

/* Reads up to GROUP_PIECE bytes. Returns the number, or -1. */
static ssize_t read_piece(int fd, off_t at, off_t n, struct buf *piece)
{
    size_t want = n < (off_t)GROUP_PIECE ? (size_t)n : GROUP_PIECE;
    ssize_t got;

    buf_clear(piece);
    got = file_pread_full(fd, buf_room(piece, want), want, at);
    buf_grew(piece, got > 0 ? (size_t)got : 0);
    return got == (ssize_t)want ? got : -1;
}

/* Returns whether the group of that size has the checksum, and begins with the last `have` bytes of
 * the history. */
static bool fits(int fd, off_t size, uint64_t sum, const struct append *a, off_t have)
{
    struct buf piece = BUF_INIT(GROUP_PIECE), stored = BUF_INIT(GROUP_PIECE);
    uint64_t got = 0;
    ssize_t n = 0;
    off_t done;

    for (done = 0; done < size; done += n) {
        n = read_piece(fd, GROUP_HEAD + done, size - done, &piece);
        if (n < 0)
            break;
        got = checksum(buf_str(&piece), got);
        if (done < have && (read_piece(a->fd, a->end - have + done, have - done, &stored) < 0 ||
                            !str_starts(buf_str(&piece), buf_str(&stored))))
            break;
    }
    buf_release(&piece);
    buf_release(&stored);
    return done == size && got == sum;
}

bool group_rest_find(struct group_rest *rest, const struct history *h, const struct append *a)
{
    char head[GROUP_HEAD], *path = group_path(h);
    struct stat st, history;
    off_t size, have;

    *rest = (struct group_rest){
        .fd = file_open_regular_at(h->dir_fd, path, O_RDONLY, 0, &st, NULL, NULL)};
    free(path);
    if (rest->fd < 0)
        return false;
    if (owner_fault(rest->fd, OWNER_USER) ||
        file_pread_full(rest->fd, head, sizeof(head), 0) != GROUP_HEAD ||
        memcmp(head, GROUP_MAGIC, strlen(GROUP_MAGIC)) != 0) {
        close(rest->fd);
        return false;
    }
    rest->begin = (off_t)le_get(head + 16);
    size = st.st_size - GROUP_HEAD;
    have = a->end - rest->begin;
    if (fstat(a->fd, &history) == 0 && le_get(head + 8) == history.st_ino && rest->begin >= 0 &&
        have > 0 && have < size && !file_is_sparse(rest->fd, &st) &&
        fits(rest->fd, size, le_get(head + 24), a, have)) {
        rest->at = GROUP_HEAD + have;
        rest->n = size - have;
    }
    return true;
}

void group_rest_end(struct group_rest *rest, const struct history *h, bool remove)
{
    char *path = group_path(h);

    if (remove)
        (void)file_unlink(h->dir_fd, path);
    close(rest->fd);
    free(path);
}
