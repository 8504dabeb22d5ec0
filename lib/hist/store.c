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
#include "base/utf8.h"
#include "base/vis.h"
#include "hist/append.h"
#include "hist/index_file.h"
#include "hist/register.h"

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

    if (!clock_parse_iso(text, &at))
        return false;
    clock_add_iso(out, at);
    return clock_parse_iso(buf_str(out), &at);
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

static int read_tail(const struct append *a, struct buf *tail, struct err *e)
{
    off_t size = a->end < TAIL_SIZE ? a->end : TAIL_SIZE;
    ssize_t got = io_pread_full(a->fd, buf_room(tail, (size_t)size), (size_t)size, a->end - size);

    if (got < 0)
        return err_sys(e, errno, "cannot read '%s'", a->path);
    buf_grew(tail, (size_t)got);
    return 0;
}

/* Only how the file begins tells it from one that somebody else has put in its place. */
static void vouch(const struct history *h, const struct append *a, struct str present,
                  struct str lines)
{
    struct buf beginning = BUF_INIT(SIZE_MAX);

    if (!h->trusted || a->end >= REGISTER_BEGINS)
        return;
    buf_add_str(&beginning, present);
    if (a->torn)
        buf_add_byte(&beginning, '\n');
    buf_add_str(&beginning, lines);
    (void)history_vouch(h, buf_str(&beginning), NULL);
    buf_release(&beginning);
}

/* `fill` adds the lines, knowing the end of what is there. */
static int write_lines(struct history *h, store_lines_fn *fill, void *arg, struct buf *tail,
                       struct err *e)
{
    struct append_wait wait = history_wait(h);
    struct append a;
    struct buf lines = BUF_INIT(SIZE_MAX);
    int result = -1;

    if (append_open(&a, h->path, &wait, e) < 0) {
        h->impatient = h->impatient || wait.timed_out;
        return -1;
    }
    if (read_tail(&a, tail, e) == 0 && fill(arg, a.end + a.torn, &lines, e) == 0) {
        result = 0;
        if (lines.len > 0) {
            struct index_watch watch;

            vouch(h, &a, buf_str(tail), buf_str(&lines));
            index_watch_begin(&watch, h, a.fd);
            a.written = index_watch_note;
            a.arg = &watch;
            result = append_write(&a, buf_str(&lines), h->sync, e);
            index_watch_end(&watch);
        }
    }
    append_close(&a);
    buf_release(&lines);
    return result;
}

int store_append_lines(struct history *h, store_lines_fn *make, void *arg, struct err *e)
{
    struct buf tail = BUF_INIT(BUF_SMALL);
    int result = -1;

    if (h->dir_exists || history_enter(h, NULL, e) == 0)
        result = write_lines(h, make, arg, &tail, e);
    buf_release(&tail);
    return result;
}

int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e)
{
    struct missing *missing = mem_zalloc(count * sizeof(*missing));
    struct batch batch = {drafts, missing, count, BUF_INIT(BUF_SMALL)};
    int result = -1;

    /* A directory that was there before and is not trusted stays so: entering it is for those who
     * say so to the user. */
    if (count == 0)
        result = 0;
    else if (prepare(drafts, missing, count, e) == 0 &&
             (h->dir_exists || history_enter(h, NULL, e) == 0))
        result = write_lines(h, format_lines, &batch, &batch.tail, e);

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
