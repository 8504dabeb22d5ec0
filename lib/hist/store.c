#include "hist/store.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"
#include "hist/append.h"

/* A new id is compared with those in this much of the file's end: it holds the millisecond. */
#define TAIL_SIZE ((off_t)64 << 10)

/* What store_append fills in of one draft. */
struct missing {
    bool id;
    bool timestamp;
};

static void set_timestamp(struct draft *d)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    clock_add_iso(&text, clock_now());
    draft_set_text(d, FIELD_TIMESTAMP, buf_str(&text));
    buf_release(&text);
}

/* Draws an id that is neither in the tail of the file nor in the lines made so far. */
static void set_id(struct draft *d, struct str tail, struct str lines)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    do {
        buf_clear(&id);
        id_add_message(&id, clock_now() / 1000);
    } while (str_find(tail, buf_str(&id)) || str_find(lines, buf_str(&id)));
    draft_set_text(d, FIELD_ID, buf_str(&id));
    buf_release(&id);
}

static int check_session(const struct draft *d, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str id = json_text(buf_str(&d->field[FIELD_SESSION_ID]), &scratch);
    int result = 0;

    if (!id_session_valid(id))
        result = err_set(e, ERR_USAGE, "invalid session id '%.*s'", (int)(id.n > 200 ? 200 : id.n),
                         id.p ? id.p : "");
    buf_release(&scratch);
    return result;
}

/* Refuses what cannot be stored before anything is opened. Provisional ids and times, which are as
 * long as the final ones, are set on the way. */
static int prepare(struct draft *drafts, struct missing *missing, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        struct draft *d = &drafts[i];

        missing[i].id = !draft_has(d, FIELD_ID);
        missing[i].timestamp = !draft_has(d, FIELD_TIMESTAMP);
        if (missing[i].id)
            set_id(d, STR_NONE, STR_NONE);
        if (missing[i].timestamp)
            set_timestamp(d);
        if (draft_check(d, e) < 0 || check_session(d, e) < 0)
            return -1;
        if (str_eq(buf_str(&d->field[FIELD_ROLE]), STR("\"\"")))
            return err_set(e, ERR_USAGE, "the message has an empty 'role'");
    }
    return 0;
}

/* Under the lock, so that neither an id comes twice nor the times run against the lines. */
static int format_lines(struct draft *drafts, const struct missing *missing, size_t count,
                        struct str tail, struct buf *lines, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        if (missing[i].timestamp)
            set_timestamp(&drafts[i]);
        if (missing[i].id)
            set_id(&drafts[i], tail, buf_str(lines));
        if (draft_format(&drafts[i], lines, e) < 0)
            return -1;
    }
    return 0;
}

static int read_tail(const struct append *a, struct buf *tail, struct err *e)
{
    off_t size = a->end < TAIL_SIZE ? a->end : TAIL_SIZE;
    ssize_t got = io_pread_full(a->fd, buf_room(tail, (size_t)size), (size_t)size, a->end - size);

    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", a->path);
    buf_grew(tail, (size_t)got);
    return 0;
}

static int write_lines(const struct history *h, struct draft *drafts, const struct missing *missing,
                       size_t count, struct err *e)
{
    struct append a;
    struct buf tail = BUF_INIT(BUF_SMALL);
    struct buf lines = BUF_INIT(SIZE_MAX);
    int result = -1;

    if (append_open(&a, h->path, h->cancel_fd, e) < 0)
        return -1;
    if (read_tail(&a, &tail, e) == 0 &&
        format_lines(drafts, missing, count, buf_str(&tail), &lines, e) == 0)
        result = append_write(&a, buf_str(&lines), h->sync, e);
    append_close(&a);
    buf_release(&tail);
    buf_release(&lines);
    return result;
}

int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e)
{
    struct missing *missing = mem_zalloc(count * sizeof(*missing));
    int result = -1;

    /* A directory that was there before and is not trusted stays so: entering it is for those who
     * say so to the user. */
    if (count == 0)
        result = 0;
    else if (prepare(drafts, missing, count, e) == 0 &&
             (h->dir_exists || history_enter(h, NULL, e) == 0))
        result = write_lines(h, drafts, missing, count, e);

    for (size_t i = 0; result < 0 && i < count; i++) {
        if (missing[i].id)
            buf_clear(&drafts[i].field[FIELD_ID]);
        if (missing[i].timestamp)
            buf_clear(&drafts[i].field[FIELD_TIMESTAMP]);
    }
    free(missing);
    return result;
}
