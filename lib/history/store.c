#include "chathist/history/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/append.h"
#include "chathist/history/partial.h"

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

    time_add_iso(&text, time_now());
    draft_set_text(d, FIELD_TIMESTAMP, buf_str(&text));
    buf_release(&text);
}

/* Draws an id that is neither in the tail of the file nor in the lines made so far. */
static void set_id(struct draft *d, struct str tail, struct str lines)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    do {
        buf_clear(&id);
        id_add_message(&id, time_now() / 1000);
    } while (str_find(tail, buf_str(&id)) || str_find(lines, buf_str(&id)));
    draft_set_text(d, FIELD_ID, buf_str(&id));
    buf_release(&id);
}

/* Is it one word, so that it can be an argument and an item of a list? */
static bool is_word(struct str text)
{
    bool word = text.n > 0;

    while (word && text.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(text, &cp);

        word = n > 0 && cp > ' ' && !vis_unsafe(cp);
        text.p += n;
        text.n -= n;
    }
    return word;
}

/* Adds a time in the one form in which times are stored. false when it has none: it cannot be read,
 * or is in no year of four digits once it is in UTC. */
static bool add_time(struct buf *out, struct str text)
{
    int64_t at;

    if (!time_parse_iso(text, &at))
        return false;
    time_add_iso(out, at);
    return time_parse_iso(buf_str(out), &at);
}

static bool is_time(struct str text)
{
    struct buf form = BUF_INIT(BUF_SMALL);
    bool good = add_time(&form, text);

    buf_release(&form);
    return good;
}

static bool is_good(enum field f, struct str text)
{
    switch (f) {
    case FIELD_ID:
        return is_word(text);
    case FIELD_SESSION_ID:
        return id_session_valid(text);
    case FIELD_TIMESTAMP:
        return is_time(text);
    default:
        return text.n > 0;
    }
}

int draft_storable(const struct draft *d, struct err *e)
{
    static const struct {
        enum field field;
        const char *what;
    } rules[] = {
        {FIELD_ID, "message id"},
        {FIELD_SESSION_ID, "session id"},
        {FIELD_TIMESTAMP, "time"},
        {FIELD_ROLE, "role"},
    };
    struct buf scratch = BUF_INIT(BUF_LINE);
    int result = 0;

    for (size_t i = 0; result == 0 && i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct str text = json_text(buf_str(&d->field[rules[i].field]), &scratch);

        if (draft_has(d, rules[i].field) && !is_good(rules[i].field, text))
            result = err_set(e, ERR_USAGE, "'%.*s' is no %s", (int)(text.n > 200 ? 200 : text.n),
                             text.p ? text.p : "", rules[i].what);
    }
    buf_release(&scratch);
    return result;
}

static void rewrite_timestamp(struct draft *d)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct buf text = BUF_INIT(BUF_SMALL);

    if (add_time(&text, json_text(buf_str(&d->field[FIELD_TIMESTAMP]), &scratch)))
        draft_set_text(d, FIELD_TIMESTAMP, buf_str(&text));
    buf_release(&scratch);
    buf_release(&text);
}

/* Refuses what cannot be stored before anything is opened. Provisional ids and times, which are as
 * long as the final ones, are set on the way. */
static int prepare(struct draft *drafts, struct missing *missing, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        struct draft *d = &drafts[i];

        missing[i].id = !draft_has(d, FIELD_ID);
        missing[i].timestamp = !draft_has(d, FIELD_TIMESTAMP);
        if (draft_storable(d, e) < 0)
            return -1;
        if (missing[i].id)
            set_id(d, STR_NONE, STR_NONE);
        if (missing[i].timestamp)
            set_timestamp(d);
        else
            rewrite_timestamp(d);
        if (draft_check(d, e) < 0)
            return -1;
    }
    return 0;
}

/* What store_append stores. */
struct batch {
    struct draft *drafts;
    const struct missing *missing;
    size_t count;
    struct buf tail; /* of the file */
};

/* Under the lock, so that neither an id comes twice nor the times run against the lines. */
static int format_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct batch *b = arg;

    (void)at;
    for (size_t i = 0; i < b->count; i++) {
        if (b->missing[i].timestamp)
            set_timestamp(&b->drafts[i]);
        if (b->missing[i].id)
            set_id(&b->drafts[i], buf_str(&b->tail), buf_str(lines));
        if (draft_format(&b->drafts[i], lines, e) < 0)
            return -1;
    }
    return 0;
}

/* Adds n bytes of the file from the offset `at`. 0, or -1 with *err set; a shorter file gives
 * fewer. */
static int read_part(int fd, const char *path, off_t at, off_t n, struct buf *part, struct err *e)
{
    ssize_t got = file_pread_full(fd, buf_room(part, (size_t)n), (size_t)n, at);

    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", path);
    buf_grew(part, (size_t)got);
    return 0;
}

static int read_tail(const struct append *a, struct buf *tail, struct err *e)
{
    off_t size = a->end < TAIL_SIZE ? a->end : TAIL_SIZE;

    return read_part(a->fd, a->path, a->end - size, size, tail, e);
}

/* Links a history that has no second name yet. */
static void keep_copy(const struct history *h, const struct append *a)
{
    struct stat st;

    if (h->kind == HISTORY_REPOSITORY && fstat(a->fd, &st) == 0)
        history_keep_copy(h, &st);
}

/* Writes the lines under the lock. */
static int write_locked(struct history *h, struct append *a, struct str lines, struct err *e)
{
    int result;

    if (lines.n == 0)
        return 0;
    result = append_write(a, lines, h->sync, e);
    if (result == 0)
        keep_copy(h, a);
    /* The directory of an explicit history may be a large one of the user's. */
    if (result == 0 && h->dir)
        (void)file_sweep(h->dir_fd, h->path, false, true, NULL);
    return result;
}

/* ---- a group: lines of which all are stored, or none ---- */

/* While a group is appended, the file GROUP_SUFFIX beside the history holds it: a magic text, the
 * inode of the history, the offset of the group in it, and a checksum of the group; then the group.
 * If the writer is killed, the next one takes the
 * missing bytes from it. */
#define GROUP_SUFFIX ".group"
#define GROUP_MAGIC "chgroup1"
#define GROUP_HEAD 32

static char *group_path(const struct history *h)
{
    return path_with_suffix(h->path, GROUP_SUFFIX);
}

/* Writes the file, then the lines, and removes the file. */
static int write_group(struct history *h, struct append *a, struct str lines, struct err *e)
{
    char head[GROUP_HEAD] = GROUP_MAGIC;
    struct buf text = BUF_INIT(SIZE_MAX);
    char *path = group_path(h);
    struct stat st;
    int result = -1;

    if (fstat(a->fd, &st) < 0) {
        err_sys(e, errno, "cannot open '%s'", a->path);
    } else {
        le_put(head + 8, st.st_ino);
        le_put(head + 16, (uint64_t)(a->end + a->torn));
        le_put(head + 24, checksum(lines, 0));
        buf_add(&text, head, sizeof(head));
        buf_add_str(&text, lines);
        result = file_replace_at(h->dir_fd, path, buf_str(&text), h->sync, e);
    }
    if (result == 0) {
        result = write_locked(h, a, lines, e);
        (void)file_unlink(h->dir_fd, path);
    }
    buf_release(&text);
    free(path);
    return result;
}

/* Adds the group to *group and sets *at to its offset, if the history ends inside it and has
 * nothing but its first bytes from there on. Returns the rest; STR_NONE if any of this is not
 * so. */
static struct str missing_part(int fd, const struct stat *st, const char *head,
                               const struct append *a, off_t *at, struct buf *group)
{
    struct buf part = BUF_INIT(SIZE_MAX);
    struct str missing = STR_NONE;
    off_t size = st->st_size - GROUP_HEAD;
    struct stat history;

    *at = (off_t)le_get(head + 16);
    if (fstat(a->fd, &history) < 0 || le_get(head + 8) != history.st_ino || *at < 0 ||
        a->end <= *at || a->end - *at >= size || file_is_sparse(fd, st))
        return STR_NONE;
    if (read_part(fd, a->path, GROUP_HEAD, size, group, NULL) == 0 &&
        read_part(a->fd, a->path, *at, a->end - *at, &part, NULL) == 0 &&
        checksum(buf_str(group), 0) == le_get(head + 24) &&
        str_starts(buf_str(group), buf_str(&part)))
        missing = (struct str){group->data + part.len, group->len - part.len};
    buf_release(&part);
    return missing;
}

/* Completes a group of which a killed writer has stored only a part. If that fails, the part is
 * removed. A file that another user may have written is ignored. */
static int settle_group(struct history *h, struct append *a, struct err *e)
{
    char head[GROUP_HEAD];
    struct buf group = BUF_INIT(SIZE_MAX);
    char *path = group_path(h);
    struct stat st;
    int fd = file_open_regular_at(h->dir_fd, path, O_RDONLY, 0, &st, NULL, NULL);
    int result = 0;

    if (fd >= 0 && !owner_fault(fd, OWNER_USER) &&
        file_pread_full(fd, head, sizeof(head), 0) == GROUP_HEAD &&
        memcmp(head, GROUP_MAGIC, strlen(GROUP_MAGIC)) == 0) {
        off_t at;
        struct str missing = missing_part(fd, &st, head, a, &at, &group);

        if (missing.n > 0) {
            a->end = at; /* where append_write truncates the history to */
            a->torn = false;
            result = write_locked(h, a, missing, e);
            a->end = at + (off_t)group.len;
        }
        if (result == 0)
            (void)file_unlink(h->dir_fd, path);
    }
    if (fd >= 0)
        close(fd);
    buf_release(&group);
    free(path);
    return result;
}

/* `fill` adds the lines, given the end of the history. Before them go the answers of turns that
 * were killed. `together`: they are a group. */
static int write_lines(struct history *h, store_lines_fn *fill, void *arg, bool together,
                       struct buf *tail, struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct append a;
    struct buf lines = BUF_INIT(SIZE_MAX), all = BUF_INIT(SIZE_MAX);
    struct partial_left left;
    int result = -1;

    if (append_open(&a, h->dir_fd, h->path, &wait, e) < 0) {
        h->impatient = h->impatient || wait.timed_out;
        return -1;
    }
    if (settle_group(h, &a, e) < 0) {
        append_close(&a);
        return -1;
    }
    partial_find(&left, h);
    partial_lines(&left, &all);
    if (read_tail(&a, tail, e) == 0 && fill(arg, a.end + a.torn + (off_t)all.len, &lines, e) == 0) {
        if (all.len > 0)
            buf_add_str(&all, buf_str(&lines));
        result =
            (together ? write_group : write_locked)(h, &a, buf_str(all.len > 0 ? &all : &lines), e);
    }
    if (result == 0)
        partial_remove(&left);
    partial_release(&left);
    append_close(&a);
    buf_release(&lines);
    buf_release(&all);
    return result;
}

int store_append_lines(struct history *h, store_lines_fn *make, void *arg, struct err *e)
{
    struct buf tail = BUF_INIT(BUF_SMALL);
    int result = -1;

    if (history_enter(h, e) == 0)
        result = write_lines(h, make, arg, false, &tail, e);
    buf_release(&tail);
    return result;
}

static int append_drafts(struct history *h, struct draft *drafts, size_t count, bool together,
                         struct err *e)
{
    struct missing *missing = mem_zalloc(count * sizeof(*missing));
    struct batch batch = {drafts, missing, count, BUF_INIT(BUF_SMALL)};
    int result = -1;

    if (count == 0)
        result = 0;
    else if (prepare(drafts, missing, count, e) == 0 && history_enter(h, e) == 0)
        result = write_lines(h, format_lines, &batch, together, &batch.tail, e);

    for (size_t i = 0; result < 0 && i < count; i++) {
        if (missing[i].id)
            buf_clear(&drafts[i].field[FIELD_ID]);
        if (missing[i].timestamp)
            buf_clear(&drafts[i].field[FIELD_TIMESTAMP]);
    }
    free(missing);
    buf_release(&batch.tail);
    return result;
}

int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e)
{
    return append_drafts(h, drafts, count, false, e);
}

int store_append_group(struct history *h, struct draft *drafts, size_t count, struct err *e)
{
    return append_drafts(h, drafts, count, true, e);
}

static int no_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    (void)arg, (void)at, (void)lines, (void)e;
    return 0;
}

int store_recover(struct history *h, struct err *e)
{
    struct partial_left left;
    struct stat st;
    bool any = false;

    if (h->trusted && !h->nowhere) {
        char *path = group_path(h);

        any = file_stat(h->dir_fd, path, &st) == 0;
        free(path);
    }
    partial_find(&left, h);
    any = any || left.count > 0;
    partial_release(&left);
    return any ? store_append_lines(h, no_lines, NULL, e) : 0;
}
