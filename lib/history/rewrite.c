#include "chathist/history/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "chathist/base/system.h"
#include "chathist/history/append.h"
#include "chathist/history/deletions.h"
#include "history/links.h"
#include "history/trust.h"
#include "chathist/history/store.h"

/* The number of bytes that are written at once. */
#define CHUNK ((size_t)256 << 10)
/* After this many lines, h->cancel_fd is examined. */
#define LINES_BETWEEN_LOOKS 1024

struct part {
    off_t at;
    off_t n;
};

struct rewrite {
    struct history *h;
    const struct rewriter *by;
    struct buf name;   /* the name of the new file; empty if no file has to be removed */
    char *second;      /* the second name of the history (history/links.h); NULL if it has none */
    int fd;            /* the new file */
    struct scan lines; /* of the old file. It stays open, so that no new file gets its inode */
    struct stat old;
    off_t done; /* the end of the last line that was shown */
    off_t next; /* the beginning of the line after the one that is being shown */
    struct buf pending;
    char *quarantine; /* its path */
    struct part *aside;
    size_t aside_count, aside_cap;
    struct buf erased;      /* lines for FILE.deleted */
    struct buf imported;    /* those of messages that were imported */
    char *owner;            /* the path of the marks */
    struct owner_mark mark; /* the mark of the history; inode 0 if the account has none */
    off_t emitted;          /* bytes for the new file */
    off_t before;           /* those of lines before mark.from */
    bool kept;              /* the line that is shown */
    bool changed;           /* a line was not kept */
    int reason;             /* errno of the first write or read that failed */
};

/* ---- the lines ---- */

static void flush(struct rewrite *r)
{
    if (r->reason == 0 && file_write_all(r->fd, r->pending.data, r->pending.len) < 0)
        r->reason = errno;
    buf_clear(&r->pending);
}

static void emit(struct rewrite *r, struct str bytes)
{
    buf_add_str(&r->pending, bytes);
    r->emitted += (off_t)bytes.n;
    if (r->pending.len >= CHUNK)
        flush(r);
}

void rewrite_keep(struct rewrite *r, const struct line *l)
{
    r->kept = true;
    if (!l->too_long) {
        emit(r, l->text);
        emit(r, l->terminated ? STR("\n") : STR(""));
    } else {
        flush(r);
        if (r->reason == 0 && file_copy(r->fd, r->lines.fd, l->at, r->next - l->at) < 0)
            r->reason = errno;
        r->emitted += r->next - l->at;
    }
}

void rewrite_add(struct rewrite *r, struct str text)
{
    emit(r, text);
    emit(r, STR("\n"));
}

void rewrite_erase(struct rewrite *r, const struct message *m, bool moved)
{
    size_t before = r->erased.len;

    if (deletions_add_message(&r->erased, m, moved))
        buf_add_str(&r->imported, str_skip(buf_str(&r->erased), before));
}

void rewrite_set_part_aside(struct rewrite *r, off_t at, off_t n)
{
    r->aside = mem_grow(r->aside, &r->aside_cap, r->aside_count + 1, sizeof(*r->aside));
    r->aside[r->aside_count++] = (struct part){at, n};
}

void rewrite_set_aside(struct rewrite *r, const struct line *l)
{
    rewrite_set_part_aside(r, l->at, r->next - l->at - l->terminated);
}

/* ---- the new file ---- */

static int rewrite_failed(const struct rewrite *r, int reason, struct err *e)
{
    return err_sys(e, reason, "cannot rewrite '%s'", r->h->path);
}

/* Gives the new file the mode and the owner of the old one. */
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

static int inspect_old(struct rewrite *r, const struct append *a, struct err *e)
{
    const struct history *h = r->h;

    scan_close(&r->lines);
    if (scan_open(&r->lines, h->dir_fd, h->path, e) < 0)
        return -1;
    if (r->lines.fd < 0)
        errno = ENOENT;
    if (r->lines.fd < 0 || fstat(r->lines.fd, &r->old) < 0)
        return rewrite_failed(r, errno, e);
    free(r->second);
    r->second = second_name_find(h->copies, &r->old, h->dir_fd, h->path);
    if (r->old.st_nlink > (r->second ? 2U : 1U))
        return err_set(e, ERR_FAILURE,
                       "cannot rewrite '%s': it has other names (hard links), which would stay",
                       h->path);
    /* An explicit FILE may be the history of a repository. */
    r->mark.from = 0;
    if (mark_set_file(&r->mark, a->fd) < 0)
        return rewrite_failed(r, errno, e);
    if (mark_find(&r->mark, h->dir_fd, r->owner, h->token_path, NULL) < MARK_OLD)
        r->mark.inode = 0;
    return 0;
}

static int lock_copy(struct rewrite *r, struct append *a, struct err *e)
{
    struct append_wait wait = history_wait(r->h);

    return append_open_present(a, r->h->dir_fd, r->h->path, &wait, e);
}

/* Makes the new file under the lock, so that another program does not remove it as a leftover. *end
 * is the end of the complete lines of the history. */
static int make_copy(struct rewrite *r, off_t *end, struct err *e)
{
    struct append a;
    int result = -1;

    if (lock_copy(r, &a, e) < 0)
        return -1;
    *end = a.end;
    if (inspect_old(r, &a, e) < 0 || file_sweep(r->h->dir_fd, r->h->path, !r->h->dir, true, e) < 0)
        goto out;
    r->fd = file_open_temporary(r->h->dir_fd, r->h->path, &r->name);
    if (r->fd < 0) {
        buf_clear(&r->name);
        rewrite_failed(r, errno, e);
    } else if (copy_rights(r) < 0) {
        rewrite_failed(r, errno, e);
    } else {
        result = 0;
    }

out:
    append_close(&a);
    return result;
}

/* ---- copying ---- */

static int check_cancelled(const struct rewrite *r, struct err *e)
{
    struct pollfd cancel = {.fd = r->h->cancel_fd, .events = POLLIN};

    if (poll(&cancel, 1, 0) <= 0)
        return 0;
    return err_set(e, ERR_SIGNAL, "interrupted: '%s' is as it was", r->h->path);
}

/* Shows the lines from the end of the last pass up to `end`. A last line without a newline is shown
 * only under the lock: otherwise a writer may not have finished it. */
static int pass(struct rewrite *r, off_t end, bool locked, struct err *e)
{
    struct scan *s = &r->lines;
    struct line l;
    unsigned lines = 0;
    int result = 0;

    s->size = end;
    s->work = r->h->work;
    s->task = "rewrite";
    scan_from(s, r->done);
    while (result == 0 && r->reason == 0 && (result = scan_line(s, &l, e)) > 0) {
        if (!l.terminated && !locked) {
            result = 0;
            break;
        }
        r->next = scan_offset(s);
        r->kept = false;
        r->by->line(r->by->arg, r, &l);
        if (l.at < r->mark.from)
            r->before = r->emitted;
        r->changed = r->changed || !r->kept;
        r->done = r->next;
        result = ++lines % LINES_BETWEEN_LOOKS == 0 ? check_cancelled(r, e) : 0;
    }
    flush(r);
    if (result == 0 && r->reason != 0)
        result = rewrite_failed(r, r->reason, e);
    return result;
}

static int start_again(struct rewrite *r, struct err *e)
{
    r->done = r->emitted = r->before = 0;
    r->changed = false;
    r->aside_count = 0;
    buf_clear(&r->erased);
    buf_clear(&r->imported);
    if (ftruncate(r->fd, 0) < 0 || lseek(r->fd, 0, SEEK_SET) < 0)
        return rewrite_failed(r, errno, e);
    r->by->begin(r->by->arg);
    return 0;
}

/* Copies the rest under the lock, or everything if the history was replaced meanwhile. */
static int copy_rest(struct rewrite *r, const struct append *a, struct err *e)
{
    bool same = file_is_named(r->h->dir_fd, r->h->path, r->lines.fd) && a->end >= r->done;
    off_t from = r->mark.from;

    if (inspect_old(r, a, e) < 0)
        return -1;
    same = same && from == r->mark.from;
    if (!same && (copy_rights(r) < 0 ? rewrite_failed(r, errno, e) : start_again(r, e)) < 0)
        return -1;
    if (pass(r, a->end, true, e) < 0)
        return -1;
    if (!r->by->settled || r->by->settled(r->by->arg))
        return 0;
    return start_again(r, e) < 0 ? -1 : pass(r, a->end, true, e);
}

/* ---- the quarantine ---- */

/* Adds the erased lines to FILE.deleted, on the disk. If that file does not exist, it is made for
 * those that were imported. It stays open in *d, and *before is its former size. */
static int fill_deleted(const struct rewrite *r, const char *path, struct append *d, off_t *before,
                        struct err *e)
{
    struct append_wait wait = history_wait(r->h);
    struct stat st;
    bool missing = file_stat(r->h->dir_fd, path, &st) < 0;
    struct str lines = buf_str(missing ? &r->imported : &r->erased);

    if (missing && errno != ENOENT)
        return err_sys(e, errno, "cannot open '%s'", path);
    if (lines.n == 0)
        return 0;
    if (append_open_alone(d, r->h->dir_fd, path, &wait, e) < 0)
        return -1;
    *before = d->end;
    return append_write(d, lines, true, e);
}

/* Adds the lines that are set aside to the quarantine, on the disk, before the history is replaced.
 * The file stays open in *q. */
static int fill_quarantine(const struct rewrite *r, int from, struct append *q, struct err *e)
{
    struct append_wait wait = history_wait(r->h);
    int result;

    if (r->aside_count == 0)
        return 0;
    if (append_open_alone(q, r->h->dir_fd, r->quarantine, &wait, e) < 0)
        return -1;
    result = q->torn ? file_write_all(q->fd, "\n", 1) : 0;
    for (size_t i = 0; i < r->aside_count && result == 0; i++) {
        result = file_copy(q->fd, from, r->aside[i].at, r->aside[i].n);
        if (result == 0)
            result = file_write_all(q->fd, "\n", 1);
    }
    if (result < 0 || system_sync_data(q->fd) < 0 ||
        (q->fresh && file_sync_dir(q->dir, q->path) < 0))
        return err_sys(e, errno, "cannot write '%s'", q->path);
    return 0;
}

/* ---- putting it in its place ---- */

/* Adds the mark of the new file to that of the history, so that a kill before or after the rename
 * leaves a valid one. */
static int mark_new(struct rewrite *r, struct err *e)
{
    struct history *h = r->h;
    struct append_wait wait = history_wait(h);
    struct owner_mark marks[] = {r->mark, r->mark};

    if (r->mark.inode == 0)
        return 0;
    marks[1].from = r->before;
    if (mark_set_file(&marks[1], r->fd) < 0)
        return rewrite_failed(r, errno, e);
    if (mark_write(marks, 2, h->dir_fd, r->owner, h->token_path, &wait, e) <= 0)
        return -1;
    if (h->mark.inode == r->mark.inode) {
        h->mark.inode = marks[1].inode;
        h->mark.born = marks[1].born;
        h->mark.from = r->before;
    }
    return 0;
}

static int put_in_place(struct rewrite *r, const struct append *a, struct err *e)
{
    struct append quarantine = {.fd = -1}, deleted = {.fd = -1};
    char *deleted_path = deletions_path(r->h->path);
    off_t deleted_end = 0;
    int replaced, result = -1;

    if (system_sync(r->fd) < 0) {
        rewrite_failed(r, errno, e);
        goto out;
    }
    if (fill_quarantine(r, a->fd, &quarantine, e) < 0 ||
        fill_deleted(r, deleted_path, &deleted, &deleted_end, e) < 0)
        goto out;
    /* The index may hold erased lines. It is removed before the rename, in case this program is
     * killed, and after it, in case another program has made one meanwhile. */
    history_remove_index(r->h);
    if (mark_new(r, e) < 0)
        goto out;
    /* The second name never names the old file afterwards, which still holds the erased messages. */
    replaced = r->second ? second_name_remove(r->h->copies, r->second, e) : 0;
    if (replaced == 0 && file_rename(r->h->dir_fd, buf_c(&r->name), r->h->path) < 0)
        replaced = rewrite_failed(r, errno, e);
    if (replaced == 0)
        buf_clear(&r->name);
    if (r->second)
        second_name_restore(r->h->copies, r->second, r->h->dir_fd, r->h->path);
    if (replaced < 0)
        goto out;
    history_remove_index(r->h);
    if (file_sync_dir(r->h->dir_fd, r->h->path) < 0)
        err_sys(e, errno, "'%s' is rewritten, but a power cut may undo it", r->h->path);
    else
        result = 0;

out:
    if (r->name.len > 0) {
        /* The history keeps the lines. */
        if (quarantine.fd >= 0 && quarantine.end == 0)
            (void)file_unlink(quarantine.dir, quarantine.path);
        else if (quarantine.fd >= 0)
            (void)!ftruncate(quarantine.fd, quarantine.end);
        if (deleted.fd >= 0 && deleted.fresh)
            (void)file_unlink(deleted.dir, deleted.path);
        else if (deleted.fd >= 0)
            (void)!ftruncate(deleted.fd, deleted_end);
    }
    append_close(&quarantine);
    append_close(&deleted);
    free(deleted_path);
    return result;
}

int rewrite_check(struct history *h, struct err *e)
{
    struct rewrite r = {.h = h, .lines = {.fd = -1}, .mark = MARK_INIT, .owner = history_marks(h)};
    struct append a;
    int result = lock_copy(&r, &a, e);

    if (result == 0) {
        result = inspect_old(&r, &a, e);
        append_close(&a);
    }
    scan_close(&r.lines);
    buf_release(&r.mark.named);
    free(r.owner);
    free(r.second);
    return result;
}

int rewrite_run(struct history *h, const struct rewriter *by, struct err *e)
{
    struct rewrite r = {.h = h,
                        .by = by,
                        .fd = -1,
                        .lines = {.fd = -1},
                        .name = BUF_INIT(BUF_SMALL),
                        .pending = BUF_INIT(SIZE_MAX),
                        .erased = BUF_INIT(SIZE_MAX),
                        .imported = BUF_INIT(SIZE_MAX),
                        .mark = MARK_INIT,
                        .quarantine = path_with_suffix(h->path, HISTORY_QUARANTINE)};
    struct append a;
    struct stat st;
    off_t end;
    bool locked = false;
    int result = -1;

    if (file_stat(h->dir_fd, h->path, &st) < 0 && errno == ENOENT) {
        free(r.quarantine);
        return 0;
    }
    if (store_check(h, e) < 0) {
        free(r.quarantine);
        return -1;
    }
    /* The answer of a turn that was killed is part of its session. If it cannot be stored now, it
     * is dropped later, because its prompt is gone. */
    (void)store_recover(h, NULL);
    r.owner = history_marks(h);
    by->begin(by->arg);
    if (make_copy(&r, &end, e) == 0 && pass(&r, end, false, e) == 0) {
        /* Most of it is on the disk before others have to wait. */
        if (system_sync(r.fd) < 0)
            rewrite_failed(&r, errno, e);
        else
            locked = lock_copy(&r, &a, e) == 0;
    }
    if (locked) {
        if (copy_rest(&r, &a, e) == 0 && check_cancelled(&r, e) == 0)
            result = !r.changed ? 0 : put_in_place(&r, &a, e) < 0 ? -1 : 1;
        append_close(&a);
    }
    if (r.name.len > 0)
        file_unlink(h->dir_fd, buf_c(&r.name));
    scan_close(&r.lines);
    file_close(r.fd);
    buf_release(&r.name);
    buf_release(&r.pending);
    buf_release(&r.erased);
    buf_release(&r.imported);
    buf_release(&r.mark.named);
    free(r.owner);
    free(r.quarantine);
    free(r.second);
    free(r.aside);
    return result;
}
