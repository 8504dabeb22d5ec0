#include "hist/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"

static char *path_with(const char *history_path, const char *ending)
{
    struct buf name = BUF_INIT(BUF_SMALL);

    buf_addf(&name, "%s%s", history_path, ending);
    return buf_detach(&name);
}

char *quarantine_path(const char *history_path)
{
    return path_with(history_path, ".quarantine");
}

static char *undo_path(const char *history_path)
{
    return path_with(history_path, ".quarantine.undo");
}

/* ---- what is to be taken back ---- */

struct undo {
    int64_t history, quarantine; /* inodes; of one directory, so that no device is asked for */
    int64_t length;
};

/* 1, 0 when there is none, -1. Of one that was not finished all is 0, which no file has. */
static int read_undo(struct undo *u, const char *path, struct err *e)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct str object;
    int result = io_read_state(path, &text, e);

    *u = (struct undo){0};
    if (result > 0 && (!json_check(buf_str(&text), &object, NULL) ||
                       !json_int(json_get(object, "history"), &u->history) ||
                       !json_int(json_get(object, "quarantine"), &u->quarantine) ||
                       !json_int(json_get(object, "length"), &u->length) || u->length < 0))
        *u = (struct undo){0};
    buf_release(&text);
    return result;
}

/* On the disk on return. A part of one is as good as none: nothing was added yet. */
static int write_undo(const struct undo *u, const char *path)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int result = -1;

    buf_add_byte(&text, '{');
    json_add_member_int(&text, "history", u->history);
    json_add_member_int(&text, "quarantine", u->quarantine);
    json_add_member_int(&text, "length", u->length);
    buf_add_c(&text, "}\n");
    if (fd >= 0 && io_write_all(fd, text.data, text.len) == 0 && fsync(fd) == 0)
        result = io_sync_dir_of(path);
    if (fd >= 0) {
        int reason = errno;

        close(fd);
        errno = reason;
    }
    buf_release(&text);
    return result;
}

static int cut(const struct undo *u, const char *path, struct err *e)
{
    struct stat st;
    int reason = 0, result = 0;
    struct err why = ERR_INIT;
    int fd = io_open_regular(path, O_RDWR, 0, &st, &reason, &why);

    if (fd < 0)
        result = reason == ENOENT ? 0 : err_set(e, ERR_FAILURE, "%s", err_text(&why));
    else if ((int64_t)st.st_ino == u->quarantine && st.st_size > u->length &&
             (ftruncate(fd, (off_t)u->length) < 0 || fsync(fd) < 0))
        result = err_sys(e, errno, "cannot write '%s'", path);
    else if ((int64_t)st.st_ino == u->quarantine && u->length == 0 && unlink(path) < 0)
        result = err_sys(e, errno, "cannot remove '%s'", path);
    if (fd >= 0)
        close(fd);
    err_release(&why);
    return result;
}

int quarantine_undo(const char *history_path, const struct stat *history, struct err *e)
{
    char *path = quarantine_path(history_path);
    char *undo = undo_path(history_path);
    struct undo u;
    int result = read_undo(&u, undo, e);

    if (result > 0) {
        result = u.history == (int64_t)history->st_ino ? cut(&u, path, e) : 0;
        if (result == 0 && unlink(undo) < 0 && errno != ENOENT)
            result = err_sys(e, errno, "cannot remove '%s'", undo);
    }
    free(path);
    free(undo);
    return result;
}

/* ---- adding to it ---- */

int quarantine_open(struct quarantine *q, const char *history_path, const struct stat *history,
                    struct append_wait *wait, struct err *e)
{
    char *undo = undo_path(history_path);
    struct stat st;
    int result;

    q->path = quarantine_path(history_path);
    result = append_open(&q->file, q->path, wait, e);
    if (result == 0 && fstat(q->file.fd, &st) < 0)
        result = err_sys(e, errno, "cannot open '%s'", q->path);
    if (result == 0 && write_undo(&(struct undo){.history = (int64_t)history->st_ino,
                                                 .quarantine = (int64_t)st.st_ino,
                                                 .length = q->file.end},
                                  undo) < 0) {
        result = err_sys(e, errno, "cannot write '%s'", undo);
        (void)quarantine_undo(history_path, history, NULL);
    }
    if (result < 0)
        quarantine_close(q);
    free(undo);
    return result;
}

int quarantine_sync(struct quarantine *q)
{
    if (fdatasync(q->file.fd) < 0)
        return -1;
    return q->file.fresh ? io_sync_dir_of(q->path) : 0;
}

void quarantine_close(struct quarantine *q)
{
    append_close(&q->file);
    free(q->path);
    q->path = NULL;
}

void quarantine_keep(const char *history_path)
{
    char *undo = undo_path(history_path);

    /* If it stays, it is about another file than the history is now. */
    (void)unlink(undo);
    free(undo);
}
