#include "chathist/history/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/append.h"
#include "chathist/history/partial.h"
#include "history/group.h"

/* A new id is compared with those in this much of the file's end: it holds the millisecond. */
#define TAIL_SIZE ((off_t)64 << 10)
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

/* Appends the rest of a group whose writer was killed. */
static int complete_group(struct history *h, struct append *a, struct err *e)
{
    struct group_rest rest;
    int result = 0;

    if (!group_rest_find(&rest, h, a))
        return 0;
    if (rest.n > 0) {
        off_t end = a->end + rest.n;

        a->end = rest.begin; /* where a failure truncates the history to */
        a->torn = false;
        result = append_copy(a, rest.fd, rest.at, rest.n, h->sync, e);
        a->end = end;
        if (result == 0)
            finish(h, a);
    }
    group_rest_end(&rest, h, result == 0);
    return result;
}

/* Locks the history, and stores what killed writers have left of a group. 0, -1. */
static int lock(struct history *h, struct append *a, struct err *e)
{
    struct append_wait wait = history_wait(h);

    if (append_open(a, h->dir_fd, h->path, &wait, e) < 0) {
        h->impatient = h->impatient || wait.timed_out;
        return -1;
    }
    if (complete_group(h, a, e) == 0)
        return 0;
    append_close(a);
    return -1;
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

    w->result = history_enter(w->h, &w->e);
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

int store_append_group(struct history *h, store_group_fn *make, void *arg, struct err *e)
{
    struct append a;
    struct partial_left left;
    struct buf answers = BUF_INIT(SIZE_MAX);
    struct group group;
    int result = -1;

    if (history_enter(h, e) < 0 || lock(h, &a, e) < 0)
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
    struct partial_left left;
    bool any = h->trusted && !h->nowhere && group_is_left(h);

    partial_find(&left, h);
    any = any || left.count > 0;
    partial_release(&left);
    return any ? store_append_lines(h, no_lines, NULL, e) : 0;
}
