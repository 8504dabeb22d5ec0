#include "port/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "hist/scan.h"
#include "hist/store.h"

/* What is written at once. */
#define BATCH_BYTES ((size_t)4 << 20)

/* A line that waits to be stored. */
struct import_pending {
    char *line;     /* owned, with its newline */
    size_t n;       /* 0: it has been brought by another import */
    struct str key; /* of its origin, by which it is known; STR_NONE for one in our own form */
    size_t tally;   /* its place in the tally, by which the others are known */
    size_t nth;     /* of these lines in its source */
    size_t result;  /* that of its source */
};

/* ---- what is known ---- */

/* Enters a copy of the key, which is returned; what was there changes its number: STR_NONE. */
static struct str enter(struct import *im, struct str key, size_t source)
{
    size_t *found = keymap_find(&im->known, key);

    if (found) {
        *found = source;
        return STR_NONE;
    }
    im->keys = mem_grow(im->keys, &im->keys_cap, im->keys_count + 1, sizeof *im->keys);
    im->keys[im->keys_count] = mem_copy(key.p, key.n);
    key.p = im->keys[im->keys_count++];
    keymap_set(&im->known, key, source);
    return key;
}

/* Calls `take` with SESSION/PART for each part of an origin. An origin without parts is itself
 * one. Ends when it gives false. */
static bool each_part(struct str origin, bool (*take)(struct import *im, struct str key),
                      struct import *im)
{
    struct buf key = BUF_INIT(BUF_LINE);
    struct str parts = origin, session = str_cut(&parts, '/');
    bool go = true;

    if (!parts.p)
        go = take(im, session);
    while (go && parts.p) {
        struct str part = str_cut(&parts, '+');

        buf_clear(&key);
        buf_add_str(&key, session);
        buf_add_byte(&key, '/');
        buf_add_str(&key, part);
        go = take(im, buf_str(&key));
    }
    buf_release(&key);
    return go;
}

static bool enter_old(struct import *im, struct str key)
{
    enter(im, key, 0);
    return true;
}

static bool enter_new(struct import *im, struct str key)
{
    enter(im, key, im->source_number);
    return true;
}

static bool is_known(struct import *im, struct str key)
{
    return keymap_find(&im->known, key) != NULL;
}

/* Reads the keys of the lines from im->seen on. */
static int catch_up(struct import *im, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct scan scan;
    int got;

    if (scan_open(&scan, im->history->path, SCAN_FORWARD, e) < 0)
        return -1;
    /* A history that is shorter now is another one. */
    if (im->seen > scan.size)
        im->seen = 0;
    if (im->seen == 0)
        import_tally_restart(&im->tally);
    scan_from(&scan, im->seen);
    while ((got = scan_message(&scan, &m, NULL, e)) > 0) {
        struct str origin = message_text(&m, FIELD_ORIGIN, &scratch);

        enter(im, m.id, 0);
        if (origin.p)
            each_part(origin, enter_old, im);
        if (im->has_tally) {
            size_t place = import_tally_find(&im->tally, &m);

            im->tally.at[place].stored++;
        }
    }
    im->seen = scan.size;
    im->bad_lines += scan.bad;
    scan_close(&scan);
    message_release(&m);
    buf_release(&scratch);
    return got;
}

/* ---- storing ---- */

static void release_pending(struct import *im)
{
    for (size_t i = 0; i < im->pending_count; i++)
        free(im->pending[i].line);
    im->pending_count = im->pending_bytes = 0;
}

/* Under the lock: another import may have brought some of it meanwhile. */
static int make_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct import *im = arg;

    if (at != im->seen && catch_up(im, e) < 0)
        return -1;
    for (size_t i = 0; i < im->pending_count; i++) {
        struct import_pending *p = &im->pending[i];
        struct import_tally_line *tally = &im->tally.at[p->tally];
        size_t *source = p->key.p ? keymap_find(&im->known, p->key) : NULL;

        if (p->key.p ? source && *source == 0 : p->nth <= tally->stored) {
            im->results[p->result].count.known++;
            p->n = 0;
            continue;
        }
        tally->stored++;
        buf_add(lines, p->line, p->n);
    }
    im->seen = at + (off_t)lines->len;
    return 0;
}

/* Tells of the sources whose lines are all done with: all but the one that is being read. */
static void tell_results(struct import *im)
{
    size_t told = im->results_count - (im->source ? 1 : 0);

    for (size_t i = 0; i < told; i++)
        if (im->listener.done)
            im->listener.done(im->listener.arg, &im->results[i]);
    if (im->source && told > 0)
        im->results[0] = im->results[told];
    im->results_count -= told;
}

static int flush(struct import *im, struct err *e)
{
    int result = 0;

    if (im->pending_count > 0 && !im->dry_run)
        result = store_append_lines(im->history, make_lines, im, e);
    for (size_t i = 0; result == 0 && i < im->pending_count; i++) {
        const struct import_pending *p = &im->pending[i];

        if (p->n == 0)
            continue;
        im->results[p->result].count.imported++;
        if (im->listener.line)
            im->listener.line(im->listener.arg, (struct str){p->line, p->n - 1});
    }
    release_pending(im);
    tell_results(im);
    return result;
}

/* Takes over the bytes of `line`. `key` is that of its origin, owned. */
static int add_pending(struct import *im, struct buf *line, struct str key, size_t tally,
                       struct err *e)
{
    struct import_tally_line *t = &im->tally.at[tally];
    size_t n = line->len;

    im->pending =
        mem_grow(im->pending, &im->pending_cap, im->pending_count + 1, sizeof *im->pending);
    im->pending[im->pending_count++] =
        (struct import_pending){buf_detach(line), n, key, tally, t->given, im->results_count - 1};
    im->pending_bytes += n;
    return im->pending_bytes < BATCH_BYTES ? 0 : flush(im, e);
}

/* ---- the sink ---- */

/* Of the source that is being read. */
static struct import_count *count(struct import *im)
{
    return &im->results[im->results_count - 1].count;
}

static void tick(struct import *im)
{
    if (im->listener.tick)
        im->listener.tick(im->listener.arg);
}

/* From the first line in our own form on, all in the history are counted. */
static int begin_tally(struct import *im, struct err *e)
{
    uint64_t bad = im->bad_lines;
    int result;

    if (im->has_tally)
        return 0;
    im->has_tally = true;
    im->seen = 0;
    result = catch_up(im, e);
    im->bad_lines = bad;
    return result;
}

/* Counts a line of the source that is being read. Is it there, or waits to be? */
static bool tally_has(struct import *im, size_t place)
{
    struct import_tally_line *t = &im->tally.at[place];

    if (t->source != im->source_number)
        t->given = 0;
    t->source = im->source_number;
    t->given++;
    if (t->given <= t->stored || t->given <= t->promised)
        return true;
    t->promised = t->given;
    return false;
}

static int take_line(void *arg, const struct message *m, struct err *e)
{
    struct import *im = arg;
    struct buf copy = BUF_INIT(BUF_LINE + 1);
    size_t place;

    tick(im);
    if (begin_tally(im, e) < 0)
        return -1;
    place = import_tally_find(&im->tally, m);
    if (tally_has(im, place)) {
        count(im)->known++;
        return 0;
    }
    enter(im, m->id, im->source_number);
    buf_add_str(&copy, m->line);
    buf_add_byte(&copy, '\n');
    return add_pending(im, &copy, STR_NONE, place, e);
}

/* Sets an id that no other message has. */
static void set_id(struct import *im, struct draft *d, int64_t time, struct str origin)
{
    struct buf id = BUF_INIT(BUF_SMALL), seed = BUF_INIT(BUF_LINE);
    int64_t ms = time > 0 ? time / 1000 : 0;

    buf_add_str(&seed, origin);
    do {
        uint64_t hash = import_hash(buf_str(&seed));

        buf_clear(&id);
        buf_addf(&id, "%" PRId64 "-%08" PRIx32, ms, (uint32_t)hash);
        buf_add_byte(&seed, '+');
    } while (is_known(im, buf_str(&id)));
    enter(im, buf_str(&id), im->source_number);
    draft_set_text(d, FIELD_ID, buf_str(&id));
    buf_release(&id);
    buf_release(&seed);
}

static void set_optional(struct draft *d, enum field f, const struct buf *text)
{
    if (text->len > 0)
        draft_set_text(d, f, buf_str(text));
}

static void set_usage(struct draft *d, const struct import_message *m)
{
    struct buf usage = BUF_INIT(BUF_SMALL);

    if (m->input_tokens < 0 && m->output_tokens < 0)
        return;
    buf_add_byte(&usage, '{');
    if (m->input_tokens >= 0)
        json_add_member_int(&usage, "input_tokens", m->input_tokens);
    if (m->output_tokens >= 0)
        json_add_member_int(&usage, "output_tokens", m->output_tokens);
    buf_add_byte(&usage, '}');
    draft_set(d, FIELD_USAGE, buf_str(&usage));
    buf_release(&usage);
}

static void fill_draft(struct import *im, struct draft *d, const struct import_message *m)
{
    struct buf text = BUF_INIT(BUF_LINE);

    draft_message(d, m->role, buf_str(&m->text));
    set_id(im, d, im->time, buf_str(&m->origin));
    draft_set_text(d, FIELD_SESSION_ID, buf_str(&m->session));
    clock_add_iso(&text, im->time);
    draft_set_text(d, FIELD_TIMESTAMP, buf_str(&text));
    if (m->images > 0)
        draft_set_int(d, FIELD_IMAGES, m->images);
    if (m->calls.len > 0) {
        buf_clear(&text);
        buf_add_byte(&text, '[');
        buf_add_str(&text, buf_str(&m->calls));
        buf_add_byte(&text, ']');
        draft_set(d, FIELD_TOOL_CALLS, buf_str(&text));
    }
    set_optional(d, FIELD_TOOL_CALL_ID, &m->call_id);
    draft_set_text(d, FIELD_ORIGIN, buf_str(&m->origin));
    set_optional(d, FIELD_MODEL, &m->model);
    set_optional(d, FIELD_PROVIDER, &m->provider);
    set_usage(d, m);
    set_optional(d, FIELD_FINISH_REASON, &m->finish);
    buf_release(&text);
}

static void note_bad(void *arg, size_t number, const char *reason)
{
    struct import *im = arg;

    count(im)->bad++;
    if (im->listener.bad)
        im->listener.bad(im->listener.arg, im->source, number, count(im)->bad, reason);
}

/* Counts a line that was made of a message, which is new by its origin. */
static size_t tally_new(struct import *im, struct str line)
{
    struct message m = MESSAGE_INIT;
    struct import_tally_line *t;
    size_t place;

    (void)message_parse(&m, line);
    place = import_tally_find(&im->tally, &m);
    message_release(&m);
    t = &im->tally.at[place];
    t->promised = (t->promised > t->stored ? t->promised : t->stored) + 1;
    return place;
}

static int take_message(void *arg, const struct import_message *m, struct err *e)
{
    struct import *im = arg;
    struct buf line = BUF_INIT(BUF_LINE + 1);
    struct err why = ERR_INIT;
    struct draft d;
    struct str parts = buf_str(&m->origin), first;
    bool overflow = m->text.overflow || m->calls.overflow || m->origin.overflow;
    int result = 0;

    tick(im);
    if (each_part(parts, is_known, im)) {
        count(im)->known++;
        return 0;
    }
    if (m->time != IMPORT_NO_TIME)
        im->time = m->time;
    draft_init(&d);
    fill_draft(im, &d, m);
    if (overflow || draft_storable(&d, &why) < 0 || draft_format(&d, &line, &why) < 0) {
        note_bad(im, im->source->number, overflow ? "longer than 64 MiB" : err_text(&why));
    } else {
        first = enter(im, str_cut(&parts, '+'), im->source_number);
        each_part(buf_str(&m->origin), enter_new, im);
        result = add_pending(im, &line, first, tally_new(im, buf_str(&line)), e);
    }
    draft_release(&d);
    buf_release(&line);
    err_release(&why);
    return result;
}

static bool has(void *arg, struct str session, struct str part)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    bool known;

    buf_add_str(&key, session);
    buf_add_byte(&key, '/');
    buf_add_str(&key, part);
    known = is_known(arg, buf_str(&key));
    buf_release(&key);
    return known;
}

/* ---- from the beginning to the end ---- */

int import_open(struct import *im, struct history *h, struct err *e)
{
    *im = (struct import){.history = h};
    return catch_up(im, e);
}

int import_read(struct import *im, struct source *s, const struct import_format *f, struct err *e)
{
    struct import_sink sink = {.message = take_message,
                               .line = take_line,
                               .known = has,
                               .bad = note_bad,
                               .arg = im,
                               .subagents = im->subagents};
    int result;

    im->results =
        mem_grow(im->results, &im->results_cap, im->results_count + 1, sizeof *im->results);
    im->results[im->results_count++] = (struct import_result){.name = s->name, .format = f};
    im->source = s;
    im->source_number++;
    im->time = s->time;
    result = f->read(s, &sink, e);
    im->source = NULL;
    /* What came before a failure is good. Where nothing waits there is nothing to wait for. */
    if (im->pending_count == 0 || im->dry_run)
        (void)flush(im, NULL);
    return result;
}

int import_finish(struct import *im, struct err *e)
{
    return flush(im, e);
}

void import_close(struct import *im)
{
    release_pending(im);
    free(im->pending);
    free(im->results);
    for (size_t i = 0; i < im->keys_count; i++)
        free(im->keys[i]);
    free(im->keys);
    keymap_release(&im->known);
    import_tally_release(&im->tally);
}
