#include "chathist/history/store.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/append.h"
#include "chathist/history/partial.h"
#include "chathist/history/scan.h"
#include "chathist/history/session_list.h"

/* A new id is compared with those in this much of the file's end: it holds the millisecond. */
#define TAIL_SIZE ((off_t)64 << 10)
/* How much is read at once to find the first message. */
#define FIRST_BLOCK ((size_t)4 << 10)
/* 0000-01-01 in UTC. */
#define YEAR_0 (INT64_C(-62167219200) * TIME_SECOND)

/* What store_append fills in of one draft. */
struct missing {
    bool id;
    bool timestamp;
};

static void set_timestamp(struct draft *d, int64_t at)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    time_add_iso(&text, at);
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

/* Returns whether it is one word, so that it can be an argument and an item of a list. */
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

static bool is_good(enum field f, struct str text)
{
    int64_t at;

    switch (f) {
    case FIELD_ID:
        return is_word(text);
    case FIELD_SESSION_ID:
        return id_session_valid(text);
    case FIELD_TIMESTAMP:
        return read_time(text, &at);
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
    return is_good(FIELD_ID, m->id) && is_good(FIELD_SESSION_ID, m->session_id) &&
           is_good(FIELD_TIMESTAMP, m->timestamp) && is_good(FIELD_ROLE, m->role_text);
}

bool store_id_valid(struct str id)
{
    return is_word(id);
}

/* Refuses what cannot be stored before anything is opened. Sets provisional ids and times, as
 * long as the final ones. */
static int check_drafts(struct draft *drafts, struct missing *missing, size_t count, struct err *e)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    int64_t at;
    int result = 0;

    for (size_t i = 0; i < count && result == 0; i++) {
        struct draft *d = &drafts[i];

        missing[i].id = !draft_has(d, FIELD_ID);
        missing[i].timestamp = !draft_has(d, FIELD_TIMESTAMP);
        result = draft_storable(d, e);
        if (result < 0)
            break;
        if (missing[i].id)
            set_id(d, STR_NONE, STR_NONE);
        at = time_now();
        if (!missing[i].timestamp)
            (void)read_time(json_text(buf_str(&d->field[FIELD_TIMESTAMP]), &scratch), &at);
        set_timestamp(d, at);
        result = draft_check(d, e);
    }
    buf_release(&scratch);
    return result;
}

/* What store_append stores. */
struct batch {
    struct draft *drafts;
    const struct missing *missing;
    size_t count;
    struct buf tail; /* the tail of the file */
};

/* Under the lock, so that neither an id comes twice nor the times run against the lines. */
static int format_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct batch *b = arg;

    (void)at;
    for (size_t i = 0; i < b->count; i++) {
        if (b->missing[i].timestamp)
            set_timestamp(&b->drafts[i], time_now());
        if (b->missing[i].id)
            set_id(&b->drafts[i], buf_str(&b->tail), buf_str(lines));
        if (draft_format(&b->drafts[i], lines, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- the lock ---- */

/* Returns whether the text begins as a line that these programs write. With `torn` its end may be
 * anywhere in that beginning, otherwise only after the first key. */
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

int store_check(struct history *h, struct err *e)
{
    struct message m = MESSAGE_INIT;
    bool is = false, blank = true;
    struct scan s;
    struct line l;
    int more = 0;

    /* Why a file cannot be opened is reported by the function that wants to write it. */
    if (h->is_history || h->marked || h->nowhere || scan_open(&s, h->dir_fd, h->path, NULL) < 0)
        return 0;
    /* Mostly the first line is enough. */
    s.block_size = FIRST_BLOCK;
    while (!is && (more = scan_line(&s, &l, NULL)) > 0) {
        blank = blank && !l.too_long && str_trim(l.text).n == 0;
        /* A program that was killed may have left no more than the beginning of a line. */
        is = scan_judge(&l, &m) == SCAN_MESSAGE ||
             (l.at == 0 && begins_as_line(l.text, !l.terminated));
    }
    message_release(&m);
    scan_close(&s);
    h->is_history = is || blank || more < 0;
    return h->is_history ? 0 : err_set(e, ERR_USAGE, "'%s' is not a history", h->path);
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

/* Locks the history and marks it. 0, -1. */
static int lock(struct history *h, struct append *a, struct err *e)
{
    struct append_wait wait = history_wait(h);

    if (append_open(a, h->dir_fd, h->path, &wait, e) < 0) {
        h->impatient = h->impatient || wait.timed_out;
        return -1;
    }
    if (store_check(h, e) == 0 && (history_is_marked(h, a->fd) || mark(h, a, e) == 0))
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
    bool any; /* whether a line was written */
    int result;
    struct err e;

    /* Of store_append. */
    struct draft *drafts; /* borrowed */
    struct missing *missing;
    size_t count;
    struct str prompt;  /* borrowed */
    struct str session; /* borrowed; empty: any */
    bool begun;         /* the file is locked, and finish_write is to be called */
};

/* `fill` adds the lines, given the end of the history. Before them go the answers of turns that
 * were killed. */
static int put_lines(struct store_write *w, store_lines_fn *fill, void *arg, struct buf *tail)
{
    struct buf lines = BUF_INIT(SIZE_MAX), all = BUF_INIT(SIZE_MAX);
    size_t size = (size_t)(w->a.end < TAIL_SIZE ? w->a.end : TAIL_SIZE);
    ssize_t got = file_pread_full(w->a.fd, buf_room(tail, size), size, w->a.end - (off_t)size);
    int result = -1;

    if (got < 0)
        return err_sys(&w->e, errno, "cannot read '%s'", w->a.path);
    buf_grew(tail, (size_t)got);
    partial_find(&w->left, w->h);
    partial_lines(&w->left, &all);
    if (fill(arg, w->a.end + w->a.torn + (off_t)all.len, &lines, &w->e) == 0) {
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
    const struct history *h = w->h;
    struct stat st;

    if (w->result == 0 && w->any)
        w->result = append_finish(&w->a, h->sync, &w->e);
    if (w->result == 0 && w->any) {
        /* Links a history that has no second name yet. */
        if (h->kind == HISTORY_REPOSITORY && fstat(w->a.fd, &st) == 0)
            history_make_second_name(h, &st);
        (void)file_sweep(h->dir_fd, h->path, !h->dir, true, NULL);
    }
    if (w->result == 0)
        partial_remove(&w->left);
    partial_release(&w->left);
    append_close(&w->a);
}

/* Returns 0 if the history has a line of the session, or -1 with w->e set. */
static int check_session(struct store_write *w)
{
    struct session_list l;
    int found = session_list_find(&l, w->h, w->session, &w->e);

    session_list_release(&l);
    return found == 0  ? err_set(&w->e, ERR_ABSENT, "session '%.*s' was deleted meanwhile",
                                 ERR_SHOWN(w->session))
           : found < 0 ? -1
                       : 0;
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
    else if (w->session.n > 0 && check_session(w) < 0)
        w->result = -1;
    else
        w->result = put_lines(w, fill, arg, tail);
    return true;
}

/* Moves the error of a write to *e. Returns its result. */
static int finish_result(struct store_write *w, struct err *e)
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
    return finish_result(&w, e);
}

static struct store_write *begin_drafts(struct history *h, struct draft *drafts, size_t count,
                                        struct str prompt, struct str session)
{
    struct store_write *w = mem_zalloc(sizeof *w);

    *w = (struct store_write){
        .h = h, .drafts = drafts, .count = count, .prompt = prompt, .session = session};
    w->missing = mem_zalloc(count * sizeof(*w->missing));

    struct batch batch = {drafts, w->missing, count, BUF_INIT(BUF_SMALL)};

    w->result = count == 0 ? 0 : check_drafts(drafts, w->missing, count, &w->e);
    w->begun = count > 0 && w->result == 0 && begin_write(w, format_lines, &batch, &batch.tail);
    buf_release(&batch.tail);
    return w;
}

struct store_write *store_append_begin(struct history *h, struct draft *drafts, size_t count,
                                       struct str prompt)
{
    return begin_drafts(h, drafts, count, prompt, STR_NONE);
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
    result = finish_result(w, e);
    free(w->missing);
    free(w);
    return result;
}

int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e)
{
    return store_append_end(begin_drafts(h, drafts, count, STR_NONE, STR_NONE), e);
}

int store_append_to(struct history *h, struct str session, struct draft *drafts, size_t count,
                    struct err *e)
{
    return store_append_end(begin_drafts(h, drafts, count, STR_NONE, session), e);
}

static int no_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    (void)arg, (void)at, (void)lines, (void)e;
    return 0;
}

int store_recover(struct history *h, struct err *e)
{
    struct partial_left left;
    bool any;

    partial_find(&left, h);
    any = left.count > 0;
    partial_release(&left);
    return any ? store_append_lines(h, no_lines, NULL, e) : 0;
}
