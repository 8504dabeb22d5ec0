#include "hist/rewrite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "hist/append.h"
#include "hist/quarantine.h"
#include "hist/register.h"

/* So much is written, or copied, at once. */
#define CHUNK ((size_t)256 << 10)
/* After so many lines it is asked whether to go on. */
#define LINES_BETWEEN_LOOKS 1024

struct part {
    off_t at;
    off_t n;
};

struct rewrite {
    struct history *h;
    const struct rewriter *by;
    struct buf name; /* of the new file; empty when there is none to remove */
    int fd;          /* the new file */
    int from;        /* the history, while lines of it are shown */
    struct stat old;
    off_t done; /* behind the last line that was shown */
    off_t next; /* where the line after the one that is shown begins */
    struct buf pending;
    struct buf beginning; /* of the new file, REGISTER_BEGINS bytes at the most */
    struct part *aside;
    size_t aside_count, aside_cap;
    bool kept;    /* the line that is shown */
    bool changed; /* a line was not kept */
    int reason;   /* errno of the first write or read that failed */
};

/* ---- what a line becomes ---- */

static void flush(struct rewrite *r)
{
    if (r->reason == 0 && io_write_all(r->fd, r->pending.data, r->pending.len) < 0)
        r->reason = errno;
    buf_clear(&r->pending);
}

static void emit(struct rewrite *r, struct str bytes)
{
    size_t missing = REGISTER_BEGINS - r->beginning.len;

    buf_add(&r->beginning, bytes.p, bytes.n < missing ? bytes.n : missing);
    buf_add_str(&r->pending, bytes);
    if (r->pending.len >= CHUNK)
        flush(r);
}

/* Reads a part of the history again, piece by piece. 0, or -1 with errno set. */
static int each_piece(int fd, struct part p, struct buf *piece,
                      int (*take)(void *arg, struct str bytes), void *arg)
{
    while (p.n > 0) {
        size_t want = p.n < (off_t)CHUNK ? (size_t)p.n : CHUNK;
        ssize_t got;

        buf_clear(piece);
        got = io_pread_full(fd, buf_room(piece, want), want, p.at);
        if (got >= 0 && (size_t)got < want)
            errno = EIO; /* it has become shorter */
        if (got < 0 || (size_t)got < want)
            return -1;
        buf_grew(piece, want);
        if (take(arg, buf_str(piece)) < 0)
            return -1;
        p.at += (off_t)want;
        p.n -= (off_t)want;
    }
    return 0;
}

static int take_kept(void *arg, struct str bytes)
{
    emit(arg, bytes);
    return 0;
}

void rewrite_keep(struct rewrite *r, const struct line *l)
{
    r->kept = true;
    if (!l->too_long) {
        emit(r, l->text);
        emit(r, l->terminated ? STR("\n") : STR(""));
    } else if (r->reason == 0) {
        struct buf piece = BUF_INIT(CHUNK);

        if (each_piece(r->from, (struct part){l->at, r->next - l->at}, &piece, take_kept, r) < 0)
            r->reason = errno;
        buf_release(&piece);
    }
}

void rewrite_add(struct rewrite *r, struct str text)
{
    emit(r, text);
    emit(r, STR("\n"));
}

static void set_aside(struct rewrite *r, off_t at, off_t n)
{
    r->aside = mem_grow(r->aside, &r->aside_cap, r->aside_count + 1, sizeof(*r->aside));
    r->aside[r->aside_count++] = (struct part){at, n};
}

void rewrite_set_aside(struct rewrite *r, const struct line *l)
{
    set_aside(r, l->at, r->next - l->at - l->terminated);
}

void rewrite_set_part_aside(struct rewrite *r, off_t at, size_t n)
{
    set_aside(r, at, (off_t)n);
}

/* ---- the new file ---- */

static int failed(const struct rewrite *r, int reason, struct err *e)
{
    return err_sys(e, reason, "cannot rewrite '%s'", r->h->path);
}

/* The same mode, and the same owner: those who could read and write it still can, and no others. */
static int copy_rights(struct rewrite *r)
{
    struct stat st;

    if (fstat(r->fd, &st) < 0)
        return -1;
    if ((st.st_uid != r->old.st_uid || st.st_gid != r->old.st_gid) &&
        fchown(r->fd, r->old.st_uid, r->old.st_gid) < 0)
        return -1;
    return fchmod(r->fd, r->old.st_mode & 07777);
}

static int look_at_old(struct rewrite *r, const struct append *a, struct err *e)
{
    if (fstat(a->fd, &r->old) < 0)
        return failed(r, errno, e);
    if (r->old.st_nlink > 1)
        return err_set(e, ERR_FAILURE,
                       "cannot rewrite '%s': it has other names (hard links), which would stay",
                       r->h->path);
    return 0;
}

static int lock(struct rewrite *r, struct append *a, struct err *e)
{
    struct append_wait wait = history_wait(r->h);

    return append_open_present(a, r->h->path, &wait, e);
}

/* Under the lock, so that of two programs none takes the other's new file for one that was left
 * behind. *end: so much of the history is finished. */
static int begin(struct rewrite *r, off_t *end, struct err *e)
{
    struct append a;
    size_t count;
    int result = -1;

    if (lock(r, &a, e) < 0)
        return -1;
    *end = a.end;
    if (look_at_old(r, &a, e) < 0 || rewrite_leftovers(r->h->path, true, &count, e) < 0)
        goto out;
    r->fd = io_open_temporary(r->h->path, &r->name);
    if (r->fd < 0) {
        buf_clear(&r->name);
        failed(r, errno, e);
    } else if (copy_rights(r) < 0 || flock(r->fd, LOCK_EX) < 0) {
        failed(r, errno, e);
    } else {
        result = 0;
    }

out:
    append_close(&a);
    return result;
}

/* ---- copying ---- */

static int cancelled(const struct rewrite *r, struct err *e)
{
    struct pollfd cancel = {.fd = r->h->cancel_fd, .events = POLLIN};

    if (poll(&cancel, 1, 0) <= 0)
        return 0;
    return err_set(e, ERR_SIGNAL, "interrupted: '%s' is as it was", r->h->path);
}

static void show(struct rewrite *r, const struct scan *s, const struct line *l)
{
    r->next = scan_offset(s);
    r->kept = false;
    r->by->line(r->by->arg, r, l);
    r->changed = r->changed || !r->kept;
    r->done = r->next;
}

/* Shows the lines from where the last pass has ended up to `end`; a last one without a newline only
 * when nobody can be writing it. */
static int pass(struct rewrite *r, off_t end, bool locked, struct err *e)
{
    struct scan s;
    struct line l;
    struct stat st = {0};
    unsigned lines = 0;
    int result;

    if (scan_open(&s, r->h->path, SCAN_FORWARD, e) < 0)
        return -1;
    if (s.fd < 0)
        errno = ENOENT;
    result = s.fd < 0 || fstat(s.fd, &st) < 0 ? failed(r, errno, e) : 0;
    /* Replaced since it was looked at: what was finished of it is no news of this one. */
    if (result == 0 && (st.st_dev != r->old.st_dev || st.st_ino != r->old.st_ino))
        end = r->done;
    scan_between(&s, r->done, end);
    r->from = s.fd;
    while (result == 0 && r->reason == 0 && (result = scan_line(&s, &l, e)) > 0) {
        if (!l.terminated && !locked) {
            result = 0;
            break;
        }
        show(r, &s, &l);
        result = ++lines % LINES_BETWEEN_LOOKS == 0 ? cancelled(r, e) : 0;
    }
    flush(r);
    r->from = -1;
    scan_close(&s);
    if (result == 0 && r->reason != 0)
        result = failed(r, r->reason, e);
    return result;
}

static int start_again(struct rewrite *r, struct err *e)
{
    r->done = 0;
    r->changed = false;
    r->aside_count = 0;
    buf_clear(&r->beginning);
    if (ftruncate(r->fd, 0) < 0 || lseek(r->fd, 0, SEEK_SET) < 0)
        return failed(r, errno, e);
    r->by->begin(r->by->arg);
    return 0;
}

/* The rest, under the lock; all of it when what was copied is not the history any more. */
static int catch_up(struct rewrite *r, const struct append *a, struct err *e)
{
    struct stat before = r->old;
    bool same;

    if (look_at_old(r, a, e) < 0 || quarantine_undo(r->h->path, &r->old, e) < 0)
        return -1;
    same = before.st_dev == r->old.st_dev && before.st_ino == r->old.st_ino && a->end >= r->done;
    if (!same && (copy_rights(r) < 0 ? failed(r, errno, e) : start_again(r, e)) < 0)
        return -1;
    if (pass(r, a->end, true, e) < 0)
        return -1;
    if (!r->by->settled || r->by->settled(r->by->arg))
        return 0;
    return start_again(r, e) < 0 ? -1 : pass(r, a->end, true, e);
}

/* ---- the quarantine ---- */

static int take_aside(void *arg, struct str bytes)
{
    return io_write_all(*(int *)arg, bytes.p, bytes.n);
}

static int write_parts(const struct rewrite *r, int from, struct quarantine *to)
{
    struct buf piece = BUF_INIT(CHUNK);
    int *fd = &to->file.fd;
    int result = to->file.torn ? io_write_all(*fd, "\n", 1) : 0;

    for (size_t i = 0; i < r->aside_count && result == 0; i++) {
        result = each_piece(from, r->aside[i], &piece, take_aside, fd);
        if (result == 0)
            result = io_write_all(*fd, "\n", 1);
    }
    if (result == 0)
        result = quarantine_sync(to);
    buf_release(&piece);
    return result;
}

/* What is not kept is on the disk elsewhere before the history is replaced. */
static int fill_quarantine(struct rewrite *r, int from, struct err *e)
{
    struct append_wait wait = history_wait(r->h);
    struct quarantine q;
    int result = 0;

    if (r->aside_count == 0)
        return 0;
    if (quarantine_open(&q, r->h->path, &r->old, &wait, e) < 0)
        return -1;
    if (write_parts(r, from, &q) < 0) {
        result = err_sys(e, errno, "cannot write '%s'", q.path);
        if (quarantine_undo(r->h->path, &r->old, NULL) < 0)
            err_set(e, ERR_FAILURE, "%s, and a part stays in it", err_text(e));
    }
    quarantine_close(&q);
    return result;
}

/* ---- putting it in its place ---- */

/* Tells the register in time, when the beginning is another one. *vouched: it has to be told once
 * more. */
static int vouch(struct rewrite *r, int from, bool *vouched, struct err *e)
{
    struct buf now = BUF_INIT(REGISTER_BEGINS);
    ssize_t got;
    int result = 0;

    *vouched = false;
    if (!r->h->trusted || r->h->kind != HISTORY_REPOSITORY)
        return 0;
    got = io_pread_full(from, buf_room(&now, REGISTER_BEGINS), REGISTER_BEGINS, 0);
    if (got < 0)
        result = failed(r, errno, e);
    else
        buf_grew(&now, (size_t)got);
    if (result == 0 && !str_eq(buf_str(&now), buf_str(&r->beginning))) {
        result = history_vouch_both(r->h, buf_str(&now), buf_str(&r->beginning), e);
        *vouched = true;
    }
    buf_release(&now);
    return result;
}

static int put_in_place(struct rewrite *r, const struct append *a, struct err *e)
{
    bool vouched;

    if (fsync(r->fd) < 0)
        return failed(r, errno, e);
    if (fill_quarantine(r, a->fd, e) < 0)
        return -1;
    if (vouch(r, a->fd, &vouched, e) < 0)
        goto undo;
    /* What goes may stand in the index: that is removed before, should this be killed, and after,
     * should another program have made one meanwhile. */
    history_remove_index(r->h);
    if (rename(buf_c(&r->name), r->h->path) < 0 && failed(r, errno, e) < 0)
        goto undo;
    history_remove_index(r->h);
    buf_clear(&r->name);
    if (io_sync_dir_of(r->h->path) < 0)
        return err_sys(e, errno, "'%s' is rewritten, but a power cut may undo it", r->h->path);
    quarantine_keep(r->h->path);
    return vouched ? history_vouch_only(r->h, buf_str(&r->beginning), e) : 0;

undo:
    (void)quarantine_undo(r->h->path, &r->old, NULL);
    return -1;
}

/* 1, 0, -1 as rewrite_run. */
static int finish(struct rewrite *r, struct err *e)
{
    struct append a;
    int result = -1;

    if (lock(r, &a, e) < 0)
        return -1;
    if (catch_up(r, &a, e) == 0 && cancelled(r, e) == 0)
        result = !r->changed ? 0 : put_in_place(r, &a, e) < 0 ? -1 : 1;
    append_close(&a);
    return result;
}

int rewrite_run(struct history *h, const struct rewriter *by, struct err *e)
{
    struct rewrite r = {.h = h,
                        .by = by,
                        .fd = -1,
                        .from = -1,
                        .name = BUF_INIT(BUF_SMALL),
                        .pending = BUF_INIT(SIZE_MAX),
                        .beginning = BUF_INIT(REGISTER_BEGINS)};
    struct stat st;
    off_t end;
    int result = -1;

    if (lstat(h->path, &st) < 0 && errno == ENOENT)
        return 0;
    by->begin(by->arg);
    if (begin(&r, &end, e) == 0 && pass(&r, end, false, e) == 0) {
        /* Most of it is on the disk before others have to wait. */
        if (fsync(r.fd) < 0)
            failed(&r, errno, e);
        else
            result = finish(&r, e);
    }
    if (r.name.len > 0)
        unlink(buf_c(&r.name));
    if (r.fd >= 0)
        close(r.fd);
    buf_release(&r.name);
    buf_release(&r.pending);
    buf_release(&r.beginning);
    free(r.aside);
    return result;
}

/* ---- what was left behind ---- */

/* Is it BASE, two numbers with a dot before each, and the ending of such files? */
static bool is_temporary_of(struct str name, struct str base)
{
    struct str ending = STR(IO_TEMPORARY);
    unsigned numbers = 0;

    if (!str_starts(name, base) || !str_ends(name, ending) || name.n <= base.n + ending.n)
        return false;
    name.p += base.n;
    name.n -= base.n + ending.n;
    for (size_t i = 0; i < name.n; i++) {
        bool digit = name.p[i] >= '0' && name.p[i] <= '9';

        if (!digit && (name.p[i] != '.' || i + 1 == name.n || name.p[i + 1] == '.'))
            return false;
        numbers += !digit;
    }
    return numbers == 2 && name.p[0] == '.';
}

/* Nobody is at work on it: a program that rewrites holds the lock of its new file. */
static bool is_left(const char *path)
{
    int fd = io_open_regular(path, O_RDONLY, 0, NULL, NULL, NULL);
    bool left = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

    if (fd >= 0)
        close(fd);
    return left;
}

int rewrite_leftovers(const char *history_path, bool remove, size_t *count, struct err *e)
{
    struct str base = str_of(path_base(history_path));
    char *parent = path_parent(history_path);
    DIR *dir = opendir(parent);
    struct dirent *entry;
    int result = 0;

    *count = 0;
    /* A directory that cannot be listed can still be written: then nobody looks. */
    while (dir && result == 0 && (entry = readdir(dir))) {
        char *path;

        if (!is_temporary_of(str_of(entry->d_name), base))
            continue;
        path = path_join(parent, entry->d_name);
        if (is_left(path)) {
            ++*count;
            if (remove && unlink(path) < 0 && errno != ENOENT)
                result = err_sys(e, errno, "cannot remove '%s'", path);
        }
        free(path);
    }
    if (dir)
        closedir(dir);
    free(parent);
    return result;
}
