#include "chathist/convert/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/clock.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "convert/json_same.h"
#include "chathist/base/mem.h"
#include "chathist/history/scan.h"
#include "chathist/history/store.h"

/* How much is written at once. */
#define BATCH_BYTES ((size_t)4 << 20)

/* A key that is known. */
struct import_entry {
    char *key;     /* owned */
    size_t source; /* the number of the last source that had it; 0: the history */
    struct str id; /* of the line with this part of an origin, borrowed from another key; or none */
};

/* How often a line is where. */
struct import_tally {
    char *hash;      /* owned: the key */
    size_t stored;   /* in the history */
    size_t promised; /* the same, with the lines that wait to be stored */
    size_t source;   /* the number of the last source that had it */
    size_t given;    /* by that source so far */
};

struct import_session {
    char *name;      /* owned, NUL-terminated */
    size_t lines;    /* in the history, and waiting to be stored */
    size_t promised; /* by this import */
    size_t added;    /* by this import, stored */
    size_t source;   /* the number of the last source that had lines of it */
    size_t given;    /* by that source so far, that are among `lines` */
    bool existed;    /* before this import */
    bool renamed;    /* the user was told that it was called otherwise */
};

/* A line that waits to be stored. */
struct import_pending {
    char *line;     /* owned, with its newline */
    size_t n;       /* 0: it has been brought by another import */
    struct str key; /* of its origin, by which it is known; STR_NONE for one in our own form */
    size_t tally;   /* its place in the tally, by which the others are known */
    size_t nth;     /* of the equal lines in its source */
    size_t session; /* its place in `sessions`, for a line in our own form */
    size_t result;  /* that of its source */
};

/* ---- the formats ---- */

const struct import_format *const import_formats[] = {
    &import_lines,   &import_claude_code, &import_codex,  &import_llm,
    &import_chatgpt, &import_messages,    &import_aichat, NULL,
};

const struct import_format *import_format_named(const char *name)
{
    for (const struct import_format *const *f = import_formats; *f; f++)
        if (strcmp((*f)->name, name) == 0)
            return *f;
    return NULL;
}

const struct import_format *import_format_of(struct str head)
{
    for (const struct import_format *const *f = import_formats; *f; f++)
        if ((*f)->is(head))
            return *f;
    return NULL;
}

void import_format_names(struct buf *out)
{
    for (const struct import_format *const *f = import_formats; *f; f++) {
        buf_add_c(out, f == import_formats ? "" : ", ");
        buf_add_c(out, (*f)->name);
    }
}

/* ---- how often there is a line ---- */

/* Adds what it says; null is what an export writes for what is absent. */
static void add_said(struct buf *out, const struct message *m)
{
    struct buf content = BUF_INIT(BUF_LINE), call = BUF_INIT(BUF_LINE);
    const struct str texts[] = {m->session_id,
                                m->id,
                                m->timestamp,
                                m->role_text,
                                message_content(m, &content),
                                message_text(m, FIELD_TOOL_CALL_ID, &call)};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf_addf(out, "%zu:", texts[i].n);
        buf_add_str(out, texts[i]);
    }
    if (!json_is_null(m->field[FIELD_TOOL_CALLS]))
        json_add_same(out, m->field[FIELD_TOOL_CALLS]);
    buf_release(&content);
    buf_release(&call);
}

static uint64_t hash_of(const struct message *m)
{
    struct buf text = BUF_INIT(JSON_SAME_MAX);
    uint64_t hash;

    if (m->id.n > 0)
        add_said(&text, m);
    else
        json_add_same(&text, m->line);
    hash = import_hash(text.overflow ? m->line : buf_str(&text));
    buf_release(&text);
    return hash;
}

/* Returns the place of a line in the tally, new or not. */
static size_t tally_find(struct import *im, const struct message *m)
{
    uint64_t hash = hash_of(m);
    struct str key = {(const char *)&hash, sizeof hash};
    size_t *found = keymap_find(&im->lines, key);

    if (found)
        return *found;
    im->tally = mem_grow(im->tally, &im->tally_cap, im->tally_count + 1, sizeof *im->tally);
    im->tally[im->tally_count] = (struct import_tally){.hash = mem_copy(key.p, key.n)};
    key.p = im->tally[im->tally_count].hash;
    keymap_set(&im->lines, key, im->tally_count);
    return im->tally_count++;
}

static struct import_session *session_find(struct import *im, struct str name)
{
    size_t *found = keymap_find(&im->session_names, name);

    if (found)
        return &im->sessions[*found];
    im->sessions =
        mem_grow(im->sessions, &im->sessions_cap, im->sessions_count + 1, sizeof *im->sessions);
    im->sessions[im->sessions_count] = (struct import_session){.name = mem_copy(name.p, name.n)};
    name.p = im->sessions[im->sessions_count].name;
    keymap_set(&im->session_names, name, im->sessions_count);
    return &im->sessions[im->sessions_count++];
}

/* ---- what is known ---- */

/* Enters a copy of the key, which is returned. A key that was there gets the new source, and
 * STR_NONE is returned. */
static struct str enter(struct import *im, struct str key, size_t source, struct str id)
{
    size_t *found = keymap_find(&im->known, key);

    if (found && im->entries) {
        im->entries[*found].source = source;
        return STR_NONE;
    }
    im->entries =
        mem_grow(im->entries, &im->entries_cap, im->entries_count + 1, sizeof *im->entries);
    im->entries[im->entries_count] = (struct import_entry){mem_copy(key.p, key.n), source, id};
    key.p = im->entries[im->entries_count].key;
    keymap_set(&im->known, key, im->entries_count++);
    return key;
}

static struct import_entry *find(const struct import *im, struct str key)
{
    size_t *found = keymap_find(&im->known, key);

    return found ? &im->entries[*found] : NULL;
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

/* im->id is the id of the line that the part belongs to. */
static bool enter_old(struct import *im, struct str key)
{
    enter(im, key, 0, im->id);
    return true;
}

/* The same; im->new_key becomes the first key that was not there. */
static bool enter_new(struct import *im, struct str key)
{
    struct str entered = enter(im, key, im->source_number, im->id);

    if (!im->new_key.p)
        im->new_key = entered;
    return true;
}

static bool is_known(struct import *im, struct str key)
{
    return find(im, key) != NULL;
}

/* Sets `key` to what the id of a line is known by within its session. A line feed is no part of an
 * origin. */
static struct str line_key(struct buf *key, struct str session, struct str id)
{
    buf_clear(key);
    buf_add_str(key, session);
    buf_add_byte(key, '\n');
    buf_add_str(key, id);
    return buf_str(key);
}

/* Enters a line of the history. */
static void enter_line(struct import *im, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str origin = message_text(m, FIELD_ORIGIN, &scratch);

    im->id = enter(im, m->id, 0, STR_NONE);
    if (origin.p)
        each_part(origin, enter_old, im);
    if (im->has_tally) {
        size_t place = tally_find(im, m);

        im->tally[place].stored++;
        session_find(im, m->session_id)->lines++;
        enter(im, line_key(&scratch, m->session_id, m->id), 0, STR_NONE);
    }
    buf_release(&scratch);
}

/* Reads the lines of the history from im->seen on. */
static int catch_up(struct import *im, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan scan;
    int got;

    if (scan_open(&scan, im->history->dir_fd, im->history->path, SCAN_FORWARD, e) < 0)
        return -1;
    /* A history that is shorter now is another one. */
    if (im->seen > scan.size)
        im->seen = 0;
    for (size_t i = 0; im->seen == 0 && i < im->tally_count; i++)
        im->tally[i].stored = 0;
    for (size_t i = 0; im->seen == 0 && i < im->sessions_count; i++)
        im->sessions[i].lines = 0;
    scan_from(&scan, im->seen);
    while ((got = scan_message(&scan, &m, NULL, e)) > 0)
        enter_line(im, &m);
    im->seen = scan.size;
    im->bad_lines += scan.bad;
    scan_close(&scan);
    message_release(&m);
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
        struct import_tally *tally = &im->tally[p->tally];
        const struct import_entry *entry = p->key.p ? find(im, p->key) : NULL;

        if (p->key.p ? entry && entry->source == 0 : p->nth <= tally->stored) {
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
        if (!p->key.p)
            im->sessions[p->session].added++;
        if (im->listener.line)
            im->listener.line(im->listener.arg, (struct str){p->line, p->n - 1});
    }
    release_pending(im);
    tell_results(im);
    return result;
}

/* Lets a line wait; takes over the bytes of `line`. p says what is known of it. */
static int add_pending(struct import *im, struct buf *line, struct import_pending p, struct err *e)
{
    p.n = line->len;
    p.line = buf_detach(line);
    p.nth = im->tally[p.tally].given;
    p.result = im->results_count - 1;
    im->pending =
        mem_grow(im->pending, &im->pending_cap, im->pending_count + 1, sizeof *im->pending);
    im->pending[im->pending_count++] = p;
    im->pending_bytes += p.n;
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

static void note(void *arg, const char *text)
{
    struct import *im = arg;

    if (im->listener.note)
        im->listener.note(im->listener.arg, text);
}

static void note_bad(void *arg, size_t number, const char *reason)
{
    struct import *im = arg;

    count(im)->bad++;
    if (im->listener.bad)
        im->listener.bad(im->listener.arg, im->source, number, count(im)->bad, reason);
}

static void note_altered(struct import *im, const char *field)
{
    count(im)->altered++;
    if (im->listener.altered)
        im->listener.altered(im->listener.arg, im->source, im->source->number, count(im)->altered,
                             field);
}

/* ---- lines in our own form ---- */

/* Before the first line in our own form all lines of the history are counted. */
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

/* Counts a line of the source that is being read. Returns whether it is there, or waits to be. */
static bool tally_has(struct import *im, size_t place)
{
    struct import_tally *t = &im->tally[place];

    if (t->source != im->source_number)
        t->given = 0;
    t->source = im->source_number;
    t->given++;
    if (t->given <= t->stored || t->given <= t->promised)
        return true;
    t->promised = t->given;
    return false;
}

/* The session of a line of the source that is being read. */
static struct import_session *session_of(struct import *im, struct str name)
{
    struct import_session *s = session_find(im, name);

    if (s->source != im->source_number)
        s->given = 0;
    s->source = im->source_number;
    return s;
}

/* Removes from a list of ids those of lines that only the history has. Returns whether there were
 * any. */
static bool keep_own(struct import *im, const struct message *m, struct buf *kept)
{
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE), key = BUF_INIT(BUF_LINE);
    bool some = false;

    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);
        const struct import_entry *entry = find(im, line_key(&key, m->session_id, id));

        if (entry && entry->source != im->source_number)
            some = true;
        else
            import_add_id(kept, id);
    }
    buf_release(&scratch);
    buf_release(&key);
    return some;
}

/* A line that is not stored as it came. */
struct changed {
    struct buf line;
    struct message m; /* borrows from it */
};

static bool is_field(struct str raw_key, enum field f)
{
    return json_key_is(raw_key, field_name(f));
}

/* Adds a member of a line, whose key is as it stands there. */
static void add_member(struct buf *line, struct str raw_key, struct str value)
{
    if (value.n == 0)
        return;
    buf_add_c(line, line->len > 1 ? ",\"" : "\"");
    buf_add_str(line, raw_key);
    buf_add_c(line, "\":");
    buf_add_str(line, value);
}

/* Makes the line of m one of this session, without `reset` if that is wanted, and unless `kept` is
 * NULL with these ids in `replaces`. All other members stay byte for byte. Returns c->m, or NULL
 * with *e set. */
static const struct message *change(const struct message *m, const char *session, bool drop_reset,
                                    const struct buf *kept, struct changed *c, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL), list = BUF_INIT(BUF_LINE);

    json_add_string(&name, str_of(session));
    if (kept && kept->len > 0)
        buf_addf(&list, "[%s]", buf_c(kept));
    buf_add_byte(&c->line, '{');
    for (struct json_iter it = json_iter(m->line); json_next(&it);) {
        struct str value = it.value;

        if (is_field(it.key, FIELD_SESSION_ID))
            value = buf_str(&name);
        else if (drop_reset && is_field(it.key, FIELD_RESET))
            value = STR_NONE;
        else if (kept && is_field(it.key, FIELD_REPLACES))
            value = buf_str(&list);
        add_member(&c->line, it.key, value);
    }
    buf_add_byte(&c->line, '}');
    buf_release(&name);
    buf_release(&list);
    if (!c->line.overflow && message_parse(&c->m, buf_str(&c->line)))
        return &c->m;
    err_set(e, ERR_FAILURE, "longer than 64 MiB");
    return NULL;
}

/* Removes from a new line what would act on lines that its source does not have. */
static const struct message *alter(struct import *im, const struct message *m,
                                   const struct import_session *s, struct changed *c, struct err *e)
{
    struct buf kept = BUF_INIT(BUF_LINE);
    bool reset = message_is_reset(m) && s->lines > s->given, others = keep_own(im, m, &kept);

    if (reset || others)
        m = change(m, s->name, reset, others ? &kept : NULL, c, e);
    if (m && reset)
        note_altered(im, "reset");
    if (m && others)
        note_altered(im, "replaces");
    buf_release(&kept);
    return m;
}

/* Counts a line, and stores it unless the history has it. `place` is its place in the tally. */
static int give_line(struct import *im, const struct message *m, struct import_session *s,
                     size_t place, bool has, struct err *e)
{
    struct buf copy = BUF_INIT(BUF_LINE + 1), key = BUF_INIT(BUF_LINE);
    struct str id = line_key(&key, m->session_id, m->id);
    int result = 0;

    s->given++;
    /* An equal id of another line does not make that line one of the source. */
    if (has || !find(im, id))
        enter(im, id, im->source_number, STR_NONE);
    if (has) {
        count(im)->known++;
    } else {
        s->existed = s->existed || (s->promised == 0 && s->lines > 0);
        s->promised++;
        s->lines++;
        enter(im, m->id, im->source_number, STR_NONE);
        buf_add_str(&copy, m->line);
        buf_add_byte(&copy, '\n');
        result = add_pending(
            im, &copy,
            (struct import_pending){.tally = place, .session = (size_t)(s - im->sessions)}, e);
    }
    buf_release(&copy);
    buf_release(&key);
    return result;
}

/* Returns the session that a line goes to: its own, or one with a name that programs can use. */
static struct import_session *choose_session(struct import *im, struct str name)
{
    struct buf own = BUF_INIT(BUF_SMALL), text = BUF_INIT(BUF_SMALL);
    struct import_session *s;

    if (id_session_valid(name))
        return session_of(im, name);
    import_add_session(&own, import_lines.name, name);
    s = session_of(im, buf_str(&own));
    json_add_string(&text, name);
    buf_addf(&text, " cannot be the name of a session: it is imported as '%s'", s->name);
    if (!s->renamed)
        note(im, buf_c(&text));
    s->renamed = true;
    buf_release(&own);
    buf_release(&text);
    return s;
}

static int take_line(void *arg, const struct message *m, struct err *e)
{
    struct import *im = arg;
    struct import_session *s;
    struct changed renamed = {BUF_INIT(BUF_LINE + 1), MESSAGE_INIT};
    struct changed altered = {BUF_INIT(BUF_LINE + 1), MESSAGE_INIT};
    struct err why = ERR_INIT;
    size_t place = 0;
    bool has = false;
    int result = 0;

    tick(im);
    if (begin_tally(im, e) < 0)
        return -1;
    s = choose_session(im, m->session_id);
    if (!str_eq_c(m->session_id, s->name))
        m = change(m, s->name, false, NULL, &renamed, &why);
    if (m) {
        place = tally_find(im, m);
        has = tally_has(im, place);
    }
    if (m && !has && (m = alter(im, m, s, &altered, &why)) && tally_find(im, m) != place) {
        place = tally_find(im, m);
        has = tally_has(im, place);
    }
    if (m)
        result = give_line(im, m, s, place, has, e);
    else
        note_bad(im, im->source->number, err_text(&why));
    message_release(&renamed.m);
    message_release(&altered.m);
    buf_release(&renamed.line);
    buf_release(&altered.line);
    err_release(&why);
    return result;
}

/* ---- messages of other programs ---- */

/* Sets an id that no other message has, also as im->id. */
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
    im->id = enter(im, buf_str(&id), im->source_number, STR_NONE);
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
    if (m->replaces.len > 0) {
        buf_clear(&text);
        buf_addf(&text, "[%s]", buf_c(&m->replaces));
        draft_set(d, FIELD_REPLACES, buf_str(&text));
    }
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

/* Counts a line that was made of a message, which is new by its origin. */
static size_t tally_new(struct import *im, struct str line)
{
    struct message m = MESSAGE_INIT;
    struct import_tally *t;
    size_t place;

    (void)message_parse(&m, line);
    place = tally_find(im, &m);
    message_release(&m);
    t = &im->tally[place];
    t->promised = (t->promised > t->stored ? t->promised : t->stored) + 1;
    return place;
}

static int take_message(void *arg, const struct import_message *m, struct err *e)
{
    struct import *im = arg;
    struct buf line = BUF_INIT(BUF_LINE + 1);
    struct err why = ERR_INIT;
    struct draft d;
    bool overflow = m->text.overflow || m->calls.overflow || m->origin.overflow;
    int result = 0;

    tick(im);
    if (each_part(buf_str(&m->origin), is_known, im)) {
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
        im->new_key = STR_NONE;
        each_part(buf_str(&m->origin), enter_new, im);
        result = add_pending(
            im, &line,
            (struct import_pending){.key = im->new_key, .tally = tally_new(im, buf_str(&line))}, e);
    }
    draft_release(&d);
    buf_release(&line);
    err_release(&why);
    return result;
}

static bool has(void *arg, struct str session, struct str part, struct buf *id)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const struct import_entry *entry;

    buf_add_str(&key, session);
    buf_add_byte(&key, '/');
    buf_add_str(&key, part);
    entry = find(arg, buf_str(&key));
    if (entry && id)
        buf_add_str(id, entry->id);
    buf_release(&key);
    return entry != NULL;
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
                               .note = note,
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
    int result = flush(im, e);

    for (size_t i = 0; im->listener.grown && i < im->sessions_count; i++)
        if (im->sessions[i].existed && im->sessions[i].added > 0)
            im->listener.grown(im->listener.arg, im->sessions[i].name, im->sessions[i].added);
    return result;
}

void import_close(struct import *im)
{
    release_pending(im);
    free(im->pending);
    free(im->results);
    for (size_t i = 0; i < im->entries_count; i++)
        free(im->entries[i].key);
    free(im->entries);
    keymap_release(&im->known);
    for (size_t i = 0; i < im->tally_count; i++)
        free(im->tally[i].hash);
    free(im->tally);
    keymap_release(&im->lines);
    for (size_t i = 0; i < im->sessions_count; i++)
        free(im->sessions[i].name);
    free(im->sessions);
    keymap_release(&im->session_names);
}
