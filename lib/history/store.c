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
#include "chathist/history/scan.h"

/* A new id is compared with those in this much of the file's end: it holds the millisecond. */
#define TAIL_SIZE ((off_t)64 << 10)
/* While a group of lines is appended, the file FILE.group holds it (chathist(5)). If its writer is
 * killed, the next one takes the missing bytes from there. Neither of them holds the group in
 * memory, and both have the lock of the history. The file begins with a magic text, the inode of
 * the history, the offset of the group in it, and a checksum of the group, computed over pieces of
 * GROUP_PIECE bytes. Then follows the group. */
#define GROUP_SUFFIX ".group"
#define GROUP_MAGIC "chgroup1"
#define GROUP_HEAD 32
#define GROUP_PIECE ((size_t)256 << 10)
/* 0000-01-01 in UTC. */
#define YEAR_0 (INT64_C(-62167219200) * TIME_SECOND)

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
        int32_t cp = (unsigned char)*text.p;
        size_t n = cp < 0x80 ? 1 : utf8_decode(text, &cp);

        word = n > 0 && cp > ' ' && !vis_unsafe(cp);
        text = str_skip(text, n);
    }
    return word;
}

/* Reads a time that can be stored: in UTC its year has four digits. */
static bool read_time(struct str text, int64_t *at)
{
    return time_parse_iso(text, at) && *at >= YEAR_0 && *at < TIME_YEAR_10000;
}

static bool is_time(struct str text)
{
    int64_t at;

    return read_time(text, &at);
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
            result = err_set(e, ERR_USAGE, "'%.*s' is no %s", ERR_SHOWN(text), rules[i].what);
    }
    buf_release(&scratch);
    return result;
}

bool message_storable(const struct message *m)
{
    return is_word(m->id) && id_session_valid(m->session_id) && is_time(m->timestamp) &&
           m->role_text.n > 0;
}

bool store_id_valid(struct str id)
{
    return is_word(id);
}

static void rewrite_timestamp(struct draft *d)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct buf text = BUF_INIT(BUF_SMALL);
    int64_t at;

    if (read_time(json_text(buf_str(&d->field[FIELD_TIMESTAMP]), &scratch), &at)) {
        time_add_iso(&text, at);
        draft_set_text(d, FIELD_TIMESTAMP, buf_str(&text));
    }
    buf_release(&scratch);
    buf_release(&text);
}

/* Refuses what cannot be stored before anything is opened. Sets provisional ids and times, as
 * long as the final ones. */
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

static int read_tail(const struct append *a, struct buf *tail, struct err *e)
{
    size_t size = (size_t)(a->end < TAIL_SIZE ? a->end : TAIL_SIZE);
    ssize_t got = file_pread_full(a->fd, buf_room(tail, size), size, a->end - (off_t)size);

    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", a->path);
    buf_grew(tail, (size_t)got);
    return 0;
}

/* Links a history that has no second name yet. */
static void keep_copy(const struct history *h, const struct append *a)
{
    struct stat st;

    if (h->kind == HISTORY_REPOSITORY && fstat(a->fd, &st) == 0)
        history_keep_copy(h, &st);
}

/* ---- the lock ---- */

/* Finishes after lines were written. */
static void finish(const struct history *h, const struct append *a)
{
    keep_copy(h, a);
    (void)file_sweep(h->dir_fd, h->path, !h->dir, true, NULL);
}

static char *group_path(const struct history *h)
{
    return path_with_suffix(h->path, GROUP_SUFFIX);
}

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

/* Examines the file of a group. *begin is where the group begins in the history, and *rest how many
 * of its bytes the history lacks: 0 unless the history ends inside the group, with nothing but the
 * group's first bytes. Returns false if the file has another form, or may have been written by
 * another user. */
static bool examine_group(int fd, const struct stat *st, const struct append *a, off_t *begin,
                          off_t *rest)
{
    off_t size = st->st_size - GROUP_HEAD, have;
    char head[GROUP_HEAD];
    struct stat history;

    if (owner_fault(fd, OWNER_USER) || file_pread_full(fd, head, sizeof(head), 0) != GROUP_HEAD ||
        memcmp(head, GROUP_MAGIC, strlen(GROUP_MAGIC)) != 0)
        return false;
    *begin = (off_t)le_get(head + 16);
    have = a->end - *begin;
    *rest = 0;
    if (fstat(a->fd, &history) == 0 && le_get(head + 8) == history.st_ino && *begin >= 0 &&
        have > 0 && have < size && !file_is_sparse(fd, st) &&
        fits(fd, size, le_get(head + 24), a, have))
        *rest = size - have;
    return true;
}

/* Appends the rest of a group whose writer was killed, and removes the file of the group. */
static int complete_group(struct history *h, struct append *a, struct err *e)
{
    char *path = group_path(h);
    off_t begin, rest, end;
    struct stat st;
    int fd = file_open_regular_at(h->dir_fd, path, O_RDONLY, 0, &st, NULL, NULL), result = 0;

    if (fd >= 0 && examine_group(fd, &st, a, &begin, &rest)) {
        if (rest > 0) {
            end = a->end + rest;
            a->end = begin; /* where a failure truncates the history to */
            a->torn = false;
            result = append_copy(a, fd, st.st_size - rest, rest, h->sync, e);
            a->end = end;
            if (result == 0)
                finish(h, a);
        }
        if (result == 0)
            (void)file_unlink(h->dir_fd, path);
    }
    file_close(fd);
    free(path);
    return result;
}

/* Does the text begin as a line that these programs write? With `torn` its end may be anywhere in
 * that beginning, otherwise only after the first key. */
static bool begins_as_line(struct str text, bool torn)
{
    const struct str first = STR("{\"id\":\""), second = STR("\",\"session_id\":\"");

    if (text.n < first.n)
        return torn && str_starts(first, text);
    if (!str_starts(text, first))
        return false;
    text = str_skip(text, first.n);
    while (text.n > 0 && text.p[0] != '"')
        text = str_skip(text, 1);
    return str_starts(text, second) || str_starts(second, text);
}

/* Is the first line a message? Reads no more than a little of the file. */
static bool begins_with_message(int fd)
{
    char head[4096];
    ssize_t got = file_pread_full(fd, head, sizeof(head), 0);
    const char *end = got > 0 ? memchr(head, '\n', (size_t)got) : NULL;

    return end && !message_defect((struct str){head, (size_t)(end - head)});
}

/* Returns true if a small file has nothing but white space, as an editor may leave it. */
static bool is_blank(const struct scan *s)
{
    char text[256];
    ssize_t n =
        s->size <= (off_t)sizeof(text) ? file_pread_full(s->fd, text, (size_t)s->size, 0) : -1;

    return n >= 0 && str_trim((struct str){text, (size_t)n}).n == 0;
}

int store_check(struct history *h, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan s;
    struct line l;
    bool is;

    /* Why a file cannot be opened is reported by the function that wants to write it. */
    if (h->is_history || h->marked || h->nowhere ||
        scan_open(&s, h->dir_fd, h->path, SCAN_FORWARD, NULL) < 0)
        return 0;
    /* A program that was killed may have left no more than the beginning of a line. */
    is = s.fd < 0 || is_blank(&s) || begins_with_message(s.fd) ||
         (scan_line(&s, &l, NULL) > 0 &&
          (scan_judge(&l, &m) == SCAN_MESSAGE || begins_as_line(l.text, !l.terminated)));
    is = is || scan_message(&s, &m, NULL, NULL) != 0;
    message_release(&m);
    scan_close(&s);
    h->is_history = is;
    return is ? 0 : err_set(e, ERR_USAGE, "'%s' is not a history", h->path);
}

/* Marks the history as one in which this account stores something. What killed writers have left is
 * stored before: it came with the rest. */
static int mark(struct history *h, struct append *a, struct err *e)
{
    struct partial_left left;
    struct buf answers = BUF_INIT(SIZE_MAX);
    int result = 0;

    if (!h->outdated) {
        partial_find(&left, h);
        partial_lines(&left, &answers);
        if (answers.len > 0)
            result = append_write(a, buf_str(&answers), h->sync, e);
        if (result == 0)
            partial_remove(&left);
        else
            partial_release(&left);
        buf_release(&answers);
    }
    return result < 0 ? -1 : history_mark(h, a->fd, a->end, e);
}

/* Locks the history, stores what killed writers have left of a group, and marks it. 0, -1. */
static int lock(struct history *h, struct append *a, struct err *e)
{
    struct append_wait wait = history_wait(h);

    if (append_open(a, h->dir_fd, h->path, &wait, e) < 0) {
        h->impatient = h->impatient || wait.timed_out;
        return -1;
    }
    if (store_check(h, e) == 0 && complete_group(h, a, e) == 0 &&
        (history_is_marked(h, a->fd) || mark(h, a, e) == 0))
        return 0;
    append_close(a);
    return -1;
}

int store_enter(struct history *h, struct err *e)
{
    struct append a;
    bool known = h->marked && !h->is_old;

    if (h->entered)
        return 0;
    if (history_make(h, e) < 0)
        return -1;
    if (h->dir && !h->marked && h->kind != HISTORY_USER) {
        if (lock(h, &a, e) < 0)
            return -1;
        append_close(&a);
    }
    h->entered = true;
    if (!known)
        history_announce(h);
    return 0;
}

int store_name(struct history *h, struct str id, struct err *e)
{
    struct append a;
    int result = -1;

    if (store_enter(h, e) < 0 || lock(h, &a, e) < 0)
        return -1;
    result = history_name(h, id, e);
    append_close(&a);
    return result;
}

/* Lines that are written, and are not on the disk yet. The file is locked. */
struct store_write {
    struct history *h;
    struct append a;
    struct partial_left left;
    bool any; /* at least one line is written */
    int result;
    struct err e;

    /* Of store_append. */
    struct draft *drafts; /* borrowed */
    struct missing *missing;
    size_t count;
    struct str prompt; /* borrowed */
    bool begun;        /* the file is locked, and finish_write is to be called */
};

/* `fill` adds the lines, given the end of the history. Before them go the answers of turns that
 * were killed. */
static int put_lines(struct store_write *w, store_lines_fn *fill, void *arg, struct buf *tail)
{
    struct buf lines = BUF_INIT(SIZE_MAX), all = BUF_INIT(SIZE_MAX);
    int result = -1;

    partial_find(&w->left, w->h);
    partial_lines(&w->left, &all);
    if (read_tail(&w->a, tail, &w->e) == 0 &&
        fill(arg, w->a.end + w->a.torn + (off_t)all.len, &lines, &w->e) == 0) {
        if (all.len > 0)
            buf_add_str(&all, buf_str(&lines));
        w->any = all.len > 0 || lines.len > 0;
        result = 0;
        if (w->any)
            result = append_put(&w->a, buf_str(all.len > 0 ? &all : &lines), w->h->sync, &w->e);
    }
    buf_release(&lines);
    buf_release(&all);
    return result;
}

/* Syncs the lines if they could be written, and gives up the lock. Sets w->result. */
static void finish_write(struct store_write *w)
{
    if (w->result == 0 && w->any) {
        w->result = append_settle(&w->a, w->h->sync, &w->e);
        if (w->result == 0)
            finish(w->h, &w->a);
    }
    if (w->result == 0)
        partial_remove(&w->left);
    partial_release(&w->left);
    append_close(&w->a);
}

/* Locks the history and writes the lines. Returns false if there is nothing to finish. */
static bool begin_write(struct store_write *w, store_lines_fn *fill, void *arg, struct buf *tail)
{
    struct stat st;
    bool had_prompt;

    w->result = store_enter(w->h, &w->e);
    if (w->result < 0)
        return false;
    /* If the whole file is gone, moved away for example, the answer begins a new one. */
    had_prompt = w->prompt.n > 0 && file_stat(w->h->dir_fd, w->h->path, &st) == 0;
    w->result = lock(w->h, &w->a, &w->e);
    if (w->result < 0)
        return false;
    if (had_prompt && partial_is_due(w->h, STR_NONE, w->prompt) == 0)
        w->result = err_set(&w->e, ERR_ABSENT, "the prompt was deleted meanwhile");
    else
        w->result = put_lines(w, fill, arg, tail);
    return true;
}

/* Moves the error of a write to *e. Returns its result. */
static int take_result(struct store_write *w, struct err *e)
{
    if (w->result < 0 && e) {
        err_release(e);
        *e = w->e;
    } else {
        err_release(&w->e);
    }
    return w->result;
}

int store_append_lines(struct history *h, store_lines_fn *make, void *arg, struct err *e)
{
    struct store_write w = {.h = h};
    struct buf tail = BUF_INIT(BUF_SMALL);

    if (begin_write(&w, make, arg, &tail))
        finish_write(&w);
    buf_release(&tail);
    return take_result(&w, e);
}

struct store_write *store_append_begin(struct history *h, struct draft *drafts, size_t count,
                                       struct str prompt)
{
    struct store_write *w = mem_zalloc(sizeof *w);

    *w = (struct store_write){.h = h, .drafts = drafts, .count = count, .prompt = prompt};
    w->missing = mem_zalloc(count * sizeof(*w->missing));

    struct batch batch = {drafts, w->missing, count, BUF_INIT(BUF_SMALL)};

    w->result = count == 0 ? 0 : prepare(drafts, w->missing, count, &w->e);
    w->begun = count > 0 && w->result == 0 && begin_write(w, format_lines, &batch, &batch.tail);
    buf_release(&batch.tail);
    return w;
}

int store_append_end(struct store_write *w, struct err *e)
{
    int result;

    if (w->begun)
        finish_write(w);
    for (size_t i = 0; w->result < 0 && i < w->count; i++) {
        if (w->missing[i].id)
            buf_clear(&w->drafts[i].field[FIELD_ID]);
        if (w->missing[i].timestamp)
            buf_clear(&w->drafts[i].field[FIELD_TIMESTAMP]);
    }
    result = take_result(w, e);
    free(w->missing);
    free(w);
    return result;
}

int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e)
{
    return store_append_end(store_append_begin(h, drafts, count, STR_NONE), e);
}

/* ---- groups ---- */

/* A group that is being written. */
struct group {
    const struct history *h;
    char *path;
    struct file_replace file;
    struct buf pending; /* lines that are not in the file yet */
    uint64_t sum;       /* of the pieces in the file */
    off_t size;         /* of the lines in the file */
    int reason;         /* the errno of a failed write, or 0 */
};

/* Begins the file. After it the caller calls group_end or group_drop. Returns 0, or -1 with *e
 * set. */
static int group_begin(struct group *g, const struct history *h, struct err *e)
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

static void group_release(struct group *g)
{
    free(g->path);
    buf_release(&g->pending);
}

static void group_drop(struct group *g)
{
    file_replace_drop(&g->file);
    group_release(g);
}

static void write_piece(struct group *g, struct str piece)
{
    if (g->reason == 0 && file_write_all(g->file.fd, piece.p, piece.n) < 0)
        g->reason = errno;
    g->sum = checksum(piece, g->sum);
    g->size += (off_t)piece.n;
}

/* Adds complete lines. A failure is reported by group_end. */
static void group_add(struct group *g, struct str lines)
{
    size_t done = 0;

    buf_add_str(&g->pending, lines);
    for (; g->pending.len - done >= GROUP_PIECE; done += GROUP_PIECE)
        write_piece(g, (struct str){g->pending.data + done, GROUP_PIECE});
    buf_consume(&g->pending, done);
}

/* Writes the head, and puts the file in its place. Returns a descriptor of it, or -1 with *e
 * set. */
static int put_group(struct group *g, const struct append *a, struct err *e)
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

/* Ends and syncs the file, appends its lines to the history, and removes the file. Returns 0, or -1
 * with *e set; then the file is removed, and the history has its former length. */
static int group_end(struct group *g, struct append *a, struct err *e)
{
    int fd = put_group(g, a, e);
    int result = -1;

    if (fd >= 0) {
        result = append_copy(a, fd, GROUP_HEAD, g->size, g->h->sync, e);
        (void)file_unlink(g->h->dir_fd, g->path);
        close(fd);
    }
    group_release(g);
    return result;
}

int store_append_group(struct history *h, store_group_fn *make, void *arg, struct err *e)
{
    struct append a;
    struct partial_left left;
    struct buf answers = BUF_INIT(SIZE_MAX);
    struct group group;
    int result = -1;

    if (store_enter(h, e) < 0 || lock(h, &a, e) < 0)
        return -1;
    partial_find(&left, h);
    if (group_begin(&group, h, e) == 0) {
        partial_lines(&left, &answers);
        group_add(&group, buf_str(&answers));
        result = make(arg, &group, e);
        if (result < 0)
            group_drop(&group);
        else
            result = group_end(&group, &a, e);
    }
    if (result == 0) {
        finish(h, &a);
        partial_remove(&left);
    }
    partial_release(&left);
    append_close(&a);
    buf_release(&answers);
    return result;
}

int store_group_add(struct group *group, struct draft *d, struct err *e)
{
    struct buf line = BUF_INIT(SIZE_MAX);
    int result = draft_storable(d, e);

    if (!draft_has(d, FIELD_TIMESTAMP))
        set_timestamp(d);
    if (result == 0)
        result = draft_format(d, &line, e);
    if (result == 0)
        group_add(group, buf_str(&line));
    buf_release(&line);
    return result;
}

static int no_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    (void)arg, (void)at, (void)lines, (void)e;
    return 0;
}

int store_recover(struct history *h, struct err *e)
{
    char *group = group_path(h);
    struct partial_left left;
    struct stat st;
    bool any = h->trusted && !h->nowhere && file_stat(h->dir_fd, group, &st) == 0;

    free(group);
    partial_find(&left, h);
    any = any || left.count > 0;
    partial_release(&left);
    return any ? store_append_lines(h, no_lines, NULL, e) : 0;
}
