#include "chathist/convert/import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/scan.h"
#include "chathist/history/store.h"
#include "convert/import_reader.h"

/* Lines are stored when this many bytes wait. */
#define BATCH_BYTES ((size_t)4 << 20)
/* The most reports of a kind for a file. */
#define NAMED_MAX 10
#define NONE ((size_t)-1)

/* Something that the history or a file has. Its key is one of these:
 *     ID               the id of a line
 *     SESSION/PART     a part of an origin
 *     SESSION LF ID    the id of a line within its session
 *     LF HASH LF N     the Nth of several equal lines
 * The last two exist once there is a line in our own form. */
struct entry {
    struct str key;
    size_t source; /* number of the last file that had it; 0: the history */
    struct str id; /* of the line that has this part of an origin, borrowed from another key */
};

/* Counts equal lines. */
struct tally {
    struct str key; /* LF HASH */
    size_t stored;  /* lines in the history */
    size_t source;  /* number of the last file that had the line */
    size_t given;   /* lines of that file so far */
};

/* A session with lines in our own form. */
struct session {
    struct str name;
    size_t lines;  /* lines in the history and lines that wait */
    size_t added;  /* lines of this import that are stored */
    size_t source; /* number of the last file that had lines of the session */
    size_t given;  /* how many of `lines` that file has had so far */
    bool existed;  /* other programs stored lines of it */
    bool renamed;  /* and reported */
};

/* A line that waits to be stored. */
struct pending {
    char *line;     /* owned, with its newline */
    size_t n;       /* 0 if another process has stored it */
    size_t entry;   /* that the history gets if another process stores the line */
    size_t tally;   /* index of its tally */
    size_t session; /* index of its session; NONE for a line that is not in our own form */
    size_t result;  /* index of the result of its file */
    bool is_title;  /* it is not counted */
};

struct import {
    struct history *history;
    struct import_options options;
    uint64_t bad_lines;
    struct hash_map known; /* -> entries, as many as it has keys; so have the next two */
    struct entry *entries;
    size_t entries_cap;
    struct hash_map lines; /* -> tallies */
    struct tally *tallies;
    size_t tallies_cap;
    struct hash_map session_names; /* -> sessions */
    struct session *sessions;
    size_t sessions_cap;
    /* Set at the first line in our own form. From then on all lines and sessions are counted. */
    bool has_tally;
    off_t seen; /* the history has been read up to this offset */
    struct pending *pending;
    size_t pending_count, pending_cap, pending_bytes;
    struct import_result *results; /* not reported yet; the last one is that of `source` */
    size_t results_count, results_cap;
    const struct source *source; /* that is being read, or NULL */
    struct hash_map given;       /* sessions of which it gave messages */
    size_t source_number;
    struct str skipped;     /* id of the line that import_skips counted last */
    int64_t time;           /* of the message before */
    struct hash_map titled; /* sessions with a title, and the time of their latest one */
    int64_t *title_times;
    size_t title_times_cap;
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

/* ---- what the history has ---- */

/* Notes that a file, or the history (0), has something. Returns the index of its entry. */
static size_t enter(struct import *im, struct str key, size_t source)
{
    size_t count = im->known.count, i = hash_map_number(&im->known, &key);

    if (i == count) {
        im->entries = mem_grow(im->entries, &im->entries_cap, i + 1, sizeof *im->entries);
        im->entries[i] = (struct entry){.key = key};
    }
    im->entries[i].source = source;
    return i;
}

static const struct entry *entry_find(const struct import *im, struct str key)
{
    size_t *found = hash_map_find(&im->known, key);

    return found ? &im->entries[*found] : NULL;
}

/* Sets `key` to A, the byte between, and B. */
static struct str join(struct buf *key, struct str a, char between, struct str b)
{
    buf_set(key, a);
    buf_add_byte(key, between);
    buf_add_str(key, b);
    return buf_str(key);
}

/* Walks the parts of an origin: sets `key` to SESSION/PART. Begins with *parts as the text after
 * the slash. Returns false at the end. */
static bool next_part(struct str session, struct str *parts, struct buf *key)
{
    if (!parts->p)
        return false;
    (void)join(key, session, '/', str_cut(parts, '+'));
    return true;
}

/* Returns where the time of the latest title of a session is kept; INT64_MIN without one. */
static int64_t *title_time(struct import *im, struct str session)
{
    size_t count = im->titled.count, i = hash_map_number(&im->titled, &session);

    if (i == count) {
        im->title_times =
            mem_grow(im->title_times, &im->title_times_cap, count + 1, sizeof *im->title_times);
        im->title_times[i] = INT64_MIN;
    }
    return &im->title_times[i];
}

static void note_title(struct import *im, const struct message *m)
{
    int64_t *latest = title_time(im, m->session_id), us;

    if (time_parse_iso(m->timestamp, &us) && us > *latest)
        *latest = us;
}

/* Notes the id of a line and the parts of its origin. Returns the index of the entry of the first
 * part that is new, or NONE. */
static size_t enter_line(struct import *im, const struct message *m, size_t source)
{
    struct buf scratch = BUF_INIT(BUF_LINE), key = BUF_INIT(BUF_LINE);
    struct str parts = message_text(m, FIELD_ORIGIN, &scratch), session = str_cut(&parts, '/');
    size_t line = enter(im, m->id, source), first = NONE;

    if (message_is_title(m))
        note_title(im, m);
    while (next_part(session, &parts, &key)) {
        size_t count = im->known.count, i = enter(im, buf_str(&key), source);

        if (i < count)
            continue;
        im->entries[i].id = im->entries[line].key;
        first = first == NONE ? i : first;
    }
    buf_release(&scratch);
    buf_release(&key);
    return first;
}

/* Returns whether all parts of an origin are known. */
static bool is_origin_known(const struct import *im, struct str origin)
{
    struct buf key = BUF_INIT(BUF_LINE);
    struct str parts = origin, session = str_cut(&parts, '/');
    bool known = true;

    while (known && next_part(session, &parts, &key))
        known = entry_find(im, buf_str(&key)) != NULL;
    buf_release(&key);
    return known;
}

/* ---- equal lines ---- */

static void add_counted(struct buf *out, struct str text)
{
    buf_addf(out, "%zu:", text.n);
    buf_add_str(out, text);
}

/* Returns a hash of what identifies a line that has an id, in this session. */
static uint64_t hash_texts(const struct message *m, struct str session)
{
    struct buf out = BUF_INIT(SIZE_MAX), scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct json_iter calls = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct message_call call;
    uint64_t hash;

    add_counted(&out, session);
    add_counted(&out, m->id);
    add_counted(&out, m->timestamp);
    add_counted(&out, m->role_text);
    add_counted(&out, message_content(m, &scratch));
    add_counted(&out, message_text(m, FIELD_TOOL_CALL_ID, &scratch));
    while (message_next_call(&calls, &call, &args)) {
        add_counted(&out, json_text(call.id, &scratch));
        add_counted(&out, json_text(call.name, &scratch));
    }
    hash = hash_map_hash(buf_str(&out));
    buf_release(&out);
    buf_release(&scratch);
    buf_release(&args);
    return hash;
}

static bool is_field(struct str raw_key, enum field f)
{
    return json_key_is(raw_key, field_name(f));
}

/* Returns a hash of the members of a line in this session, in whatever order they are. A null
 * counts as absent, because an export writes it; `reset` and `replaces` do, because an import may
 * remove them. */
static uint64_t hash_members(const struct message *m, struct str session)
{
    struct buf out = BUF_INIT(SIZE_MAX);
    uint64_t sum = 0;

    for (struct json_iter it = json_iter(m->line); json_next(&it);) {
        buf_clear(&out);
        json_decode_body(it.key, &out);
        buf_add_byte(&out, ':');
        if (is_field(it.key, FIELD_SESSION_ID))
            buf_add_str(&out, session);
        else if (!json_decode(it.value, &out))
            json_add_compact(&out, it.value);
        if (!json_is_null(it.value) && !is_field(it.key, FIELD_RESET) &&
            !is_field(it.key, FIELD_REPLACES))
            sum += hash_map_hash(buf_str(&out));
    }
    buf_release(&out);
    return sum;
}

/* Returns the index of the tally of a line in this session, and creates it if necessary. */
static size_t tally_of(struct import *im, const struct message *m, struct str session)
{
    char text[32];
    struct str key = {text, 0};
    size_t count = im->lines.count, i;

    key.n = (size_t)snprintf(text, sizeof text, "\n%016" PRIx64,
                             m->id.n > 0 ? hash_texts(m, session) : hash_members(m, session));
    i = hash_map_number(&im->lines, &key);
    if (i == count) {
        im->tallies = mem_grow(im->tallies, &im->tallies_cap, i + 1, sizeof *im->tallies);
        im->tallies[i] = (struct tally){.key = key};
    }
    return i;
}

/* Sets `key` to the key of the nth of equal lines. */
static struct str nth_key(struct buf *key, const struct tally *t, size_t n)
{
    buf_set(key, t->key);
    buf_addf(key, "\n%zu", n);
    return buf_str(key);
}

/* Returns the index of a session, and adds the session if necessary. */
static size_t session_of(struct import *im, struct str name)
{
    size_t count = im->session_names.count, i = hash_map_number(&im->session_names, &name);

    if (i == count) {
        im->sessions = mem_grow(im->sessions, &im->sessions_cap, i + 1, sizeof *im->sessions);
        im->sessions[i] = (struct session){.name = name};
    }
    return i;
}

/* ---- reading the history ---- */

static void count_stored(struct import *im, const struct message *m)
{
    struct buf key = BUF_INIT(BUF_LINE);
    size_t tally = tally_of(im, m, m->session_id), session = session_of(im, m->session_id);

    im->tallies[tally].stored++;
    enter(im, nth_key(&key, &im->tallies[tally], im->tallies[tally].stored), 0);
    enter(im, join(&key, m->session_id, '\n', m->id), 0);
    im->sessions[session].lines++;
    im->sessions[session].existed = true;
    buf_release(&key);
}

/* Reads the lines of the history from im->seen on. Returns 0, or -1 with *e set. */
static int read_history(struct import *im, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct scan scan;
    int got;

    if (scan_open(&scan, im->history->dir_fd, im->history->path, SCAN_FORWARD, e) < 0)
        return -1;
    /* A history that became shorter was replaced. */
    if (im->seen > scan.size)
        im->seen = 0;
    for (size_t i = 0; im->seen == 0 && i < im->lines.count; i++)
        im->tallies[i].stored = 0;
    for (size_t i = 0; im->seen == 0 && i < im->session_names.count; i++)
        im->sessions[i].lines = 0;
    scan_from(&scan, im->seen);
    while ((got = scan_message(&scan, &m, NULL, e)) > 0) {
        enter_line(im, &m, 0);
        if (im->has_tally)
            count_stored(im, &m);
    }
    im->seen = scan.size;
    im->bad_lines += scan.bad;
    scan_close(&scan);
    message_release(&m);
    return got;
}

/* ---- reports ---- */

/* Returns the counts of the file that is being read. */
static struct import_count *count_of(struct import *im)
{
    return &im->results[im->results_count - 1].count;
}

static void tick(struct import *im)
{
    if (im->options.listener.tick)
        im->options.listener.tick(im->options.listener.arg);
}

__attribute__((format(printf, 2, 3))) static void warn(struct import *im, const char *format, ...)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    va_list args;

    va_start(args, format);
    buf_vaddf(&text, format, args);
    va_end(args);
    if (im->options.listener.warn)
        im->options.listener.warn(im->options.listener.arg, buf_c(&text));
    buf_release(&text);
}

void import_bad(struct source *s, const char *reason)
{
    if (++count_of(s->import)->bad <= NAMED_MAX)
        warn(s->import, "cannot import '%s:%zu': %s", s->name, s->number, reason);
}

static void note_altered(struct import *im, const char *field)
{
    if (++count_of(im)->altered <= NAMED_MAX)
        warn(im,
             "'%s:%zu' is imported without '%s': it would act on lines that only the history has",
             im->source->name, im->source->number, field);
}

/* Reports the results of all files but the one that is being read: none of their lines waits. */
static void report_results(struct import *im)
{
    size_t reported = im->results_count - (im->source ? 1 : 0);

    for (size_t i = 0; i < reported; i++) {
        const struct import_result *r = &im->results[i];

        if (r->count.bad > NAMED_MAX)
            warn(im, "cannot import %" PRIu64 " more records of '%s'", r->count.bad - NAMED_MAX,
                 r->name);
        if (im->options.listener.done)
            im->options.listener.done(im->options.listener.arg, r);
    }
    if (im->source && reported > 0)
        im->results[0] = im->results[reported];
    im->results_count -= reported;
}

/* ---- storing ---- */

static void pending_clear(struct import *im)
{
    for (size_t i = 0; i < im->pending_count; i++)
        free(im->pending[i].line);
    im->pending_count = im->pending_bytes = 0;
}

/* Makes the bytes to append, under the lock: another import may have stored some of them. */
static int make_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct import *im = arg;

    if (at != im->seen && read_history(im, e) < 0)
        return -1;
    for (size_t i = 0; i < im->pending_count; i++) {
        struct pending *p = &im->pending[i];

        if (im->entries[p->entry].source == 0) {
            im->results[p->result].count.known += !p->is_title;
            p->n = 0;
            continue;
        }
        im->tallies[p->tally].stored++;
        buf_add(lines, p->line, p->n);
    }
    im->seen = at + (off_t)lines->len;
    return 0;
}

static int store_pending(struct import *im, struct err *e)
{
    int result = 0;

    if (im->pending_count > 0 && !im->options.dry_run)
        result = store_append_lines(im->history, make_lines, im, e);
    for (size_t i = 0; result == 0 && i < im->pending_count; i++) {
        const struct pending *p = &im->pending[i];

        if (p->n == 0)
            continue;
        im->results[p->result].count.imported += !p->is_title;
        if (p->session != NONE)
            im->sessions[p->session].added++;
        if (im->options.listener.line)
            im->options.listener.line(im->options.listener.arg, (struct str){p->line, p->n - 1});
    }
    pending_clear(im);
    report_results(im);
    return result;
}

/* Adds a new line to those that wait. p has its entry, tally and session. */
static int add_pending(struct import *im, struct str line, struct pending p, struct err *e)
{
    p.n = line.n + 1;
    p.line = mem_zalloc(p.n);
    memcpy(p.line, line.p, line.n);
    p.line[line.n] = '\n';
    p.result = im->results_count - 1;
    im->pending =
        mem_grow(im->pending, &im->pending_cap, im->pending_count + 1, sizeof *im->pending);
    im->pending[im->pending_count++] = p;
    im->pending_bytes += p.n;
    return im->pending_bytes < BATCH_BYTES ? 0 : store_pending(im, e);
}

/* ---- lines in our own form ---- */

/* Counts all lines of the history. Called before the first line in our own form. */
static int begin_tally(struct import *im, struct err *e)
{
    uint64_t bad = im->bad_lines;
    int result;

    if (im->has_tally)
        return 0;
    im->has_tally = true;
    im->seen = 0;
    result = read_history(im, e);
    im->bad_lines = bad;
    return result;
}

/* Counts a line of the file that is being read, and sets `key` to its key among equal lines.
 * Returns the index of its tally. */
static size_t count_given(struct import *im, const struct message *m, struct str session,
                          struct buf *key)
{
    size_t i = tally_of(im, m, session);
    struct tally *t = &im->tallies[i];

    if (t->source != im->source_number)
        t->given = 0;
    t->source = im->source_number;
    (void)nth_key(key, t, ++t->given);
    return i;
}

/* Appends the ids in `replaces` to `kept`, without those of lines of the session that only the
 * history has. Returns whether there are any of those. */
static bool keep_own_ids(struct import *im, const struct message *m, struct str session,
                         struct buf *kept)
{
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE), key = BUF_INIT(BUF_LINE);
    bool some = false;

    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);
        const struct entry *entry = entry_find(im, join(&key, session, '\n', id));

        if (entry && entry->source != im->source_number)
            some = true;
        else
            import_add_id(kept, id);
    }
    buf_release(&scratch);
    buf_release(&key);
    return some;
}

/* A line that is stored with changes. */
struct changed {
    struct buf line;
    struct message m; /* borrows from it */
};

/* Appends a member unless it has no value. The key is raw: with its escapes. */
static void add_member(struct buf *line, struct str raw_key, struct str value)
{
    if (value.n == 0)
        return;
    buf_add_c(line, line->len > 1 ? ",\"" : "\"");
    buf_add_str(line, raw_key);
    buf_add_c(line, "\":");
    buf_add_str(line, value);
}

/* Copies a line with another session, without `reset` if drop_reset, and with the ids `kept` in
 * `replaces` unless that is NULL. All other members stay byte for byte. Returns &c->m, or NULL if
 * the line became too long. */
static const struct message *change_line(const struct message *m, struct str session,
                                         bool drop_reset, const struct buf *kept, struct changed *c)
{
    struct buf name = BUF_INIT(BUF_SMALL), list = BUF_INIT(BUF_LINE);

    json_add_string(&name, session);
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
    return !c->line.overflow && message_parse(&c->m, buf_str(&c->line)) ? &c->m : NULL;
}

/* Puts a line into session s, and removes the fields that would act on lines that the file does not
 * have. Returns the line, in c if it had to be changed, or NULL if it became too long. */
static const struct message *alter_line(struct import *im, const struct message *m,
                                        const struct session *s, struct changed *c)
{
    struct buf kept = BUF_INIT(BUF_LINE);
    bool reset = message_is_reset(m) && s->lines > s->given;
    bool others = keep_own_ids(im, m, s->name, &kept);

    if (reset || others || !str_eq(m->session_id, s->name))
        m = change_line(m, s->name, reset, others ? &kept : NULL, c);
    if (m && reset)
        note_altered(im, "reset");
    if (m && others)
        note_altered(im, "replaces");
    buf_release(&kept);
    return m;
}

/* Stores a new line. `key` is its key among equal lines, and `tally` the index of its tally. */
static int give_line(struct import *im, const struct message *m, struct session *s, size_t tally,
                     struct str key, struct err *e)
{
    struct pending p = {
        .tally = tally, .session = (size_t)(s - im->sessions), .is_title = message_is_title(m)};

    s->lines++;
    enter_line(im, m, im->source_number);
    p.entry = enter(im, key, im->source_number);
    return add_pending(im, m->line, p, e);
}

/* Returns the session of a line: its own, or one whose id programs can use. */
static struct session *choose_session(struct import *im, struct str name)
{
    struct buf own = BUF_INIT(BUF_SMALL), quoted = BUF_INIT(BUF_SMALL);
    bool valid = id_session_valid(name);
    struct session *s;
    size_t i;

    if (!valid)
        import_add_session(&own, import_lines.name, name);
    i = session_of(im, valid ? name : buf_str(&own));
    s = &im->sessions[i];
    if (s->source != im->source_number)
        s->given = 0;
    s->source = im->source_number;
    json_add_string(&quoted, name);
    if (!valid && !s->renamed)
        warn(im, "%s cannot be the name of a session: it is imported as '%.*s'", buf_c(&quoted),
             (int)s->name.n, s->name.p);
    s->renamed = !valid;
    buf_release(&own);
    buf_release(&quoted);
    return s;
}

int import_give_line(struct source *source, const struct message *m, struct err *e)
{
    struct import *im = source->import;
    struct changed c = {BUF_INIT(BUF_LINE + 1), MESSAGE_INIT};
    struct buf key = BUF_INIT(BUF_LINE), in_session = BUF_INIT(BUF_LINE);
    struct session *s;
    struct str id;
    size_t tally;
    bool has;
    int result = 0;

    tick(im);
    if (begin_tally(im, e) < 0)
        return -1;
    s = choose_session(im, m->session_id);
    id = join(&in_session, s->name, '\n', m->id);
    tally = count_given(im, m, s->name, &key);
    has = entry_find(im, buf_str(&key)) != NULL;
    if (!has)
        m = alter_line(im, m, s, &c);
    if (m) {
        s->given++;
        /* If another line has the same id, that line does not belong to the file. */
        if (has || !entry_find(im, id))
            enter(im, id, im->source_number);
        count_of(im)->known += has && !message_is_title(m);
        if (!has)
            result = give_line(im, m, s, tally, buf_str(&key), e);
    } else {
        import_bad(source, "longer than 64 MiB");
    }
    message_release(&c.m);
    buf_release(&c.line);
    buf_release(&key);
    buf_release(&in_session);
    return result;
}

/* ---- messages of other programs ---- */

/* Sets an id that no other message has. */
static void set_id(const struct import *im, struct draft *d, struct str origin)
{
    struct buf id = BUF_INIT(BUF_SMALL), seed = BUF_INIT(BUF_LINE);
    int64_t ms = im->time > 0 ? im->time / 1000 : 0;

    buf_add_str(&seed, origin);
    do {
        uint64_t hash = hash_map_hash(buf_str(&seed));

        buf_clear(&id);
        buf_addf(&id, "%" PRId64 "-%08" PRIx32, ms, (uint32_t)hash);
        buf_add_byte(&seed, '+');
    } while (entry_find(im, buf_str(&id)));
    draft_set_text(d, FIELD_ID, buf_str(&id));
    buf_release(&id);
    buf_release(&seed);
}

static void set_optional(struct draft *d, enum field f, const struct buf *text)
{
    if (text->len > 0)
        draft_set_text(d, f, buf_str(text));
}

static void set_array(struct draft *d, enum field f, const struct buf *elements)
{
    struct buf array = BUF_INIT(BUF_LINE);

    if (elements->len > 0) {
        buf_addf(&array, "[%s]", buf_c(elements));
        draft_set(d, f, buf_str(&array));
    }
    buf_release(&array);
}

static void fill_draft(struct import *im, struct draft *d, const struct import_message *m)
{
    struct buf text = BUF_INIT(BUF_LINE);
    int64_t time = im->time;

    if (m->role == ROLE_OTHER) {
        draft_title(d, buf_str(&m->text), STR(""));
        time = message_title_time(*title_time(im, buf_str(&m->session)), time);
    } else {
        draft_message(d, m->role, buf_str(&m->text));
    }
    set_id(im, d, buf_str(&m->origin));
    draft_set_text(d, FIELD_SESSION_ID, buf_str(&m->session));
    time_add_iso(&text, time);
    draft_set_text(d, FIELD_TIMESTAMP, buf_str(&text));
    if (m->images > 0)
        draft_set_int(d, FIELD_IMAGES, m->images);
    set_array(d, FIELD_REPLACES, &m->replaces);
    set_array(d, FIELD_TOOL_CALLS, &m->calls);
    set_optional(d, FIELD_TOOL_CALL_ID, &m->call_id);
    draft_set_text(d, FIELD_ORIGIN, buf_str(&m->origin));
    set_optional(d, FIELD_MODEL, &m->model);
    set_optional(d, FIELD_PROVIDER, &m->provider);
    draft_set_usage(d, &m->usage);
    set_optional(d, FIELD_FINISH_REASON, &m->finish);
    buf_release(&text);
}

/* Stores the line of a new message. */
static int give_message(struct import *im, struct str line, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct buf key = BUF_INIT(BUF_SMALL);
    struct pending p = {.session = NONE};
    int result;

    (void)message_parse(&m, line);
    p.is_title = message_is_title(&m);
    p.entry = enter_line(im, &m, im->source_number);
    p.tally = tally_of(im, &m, m.session_id);
    enter(im, nth_key(&key, &im->tallies[p.tally], 1), im->source_number);
    result = add_pending(im, m.line, p, e);
    message_release(&m);
    buf_release(&key);
    return result;
}

int import_give(struct source *s, const struct import_message *m, struct err *e)
{
    struct import *im = s->import;
    struct buf line = BUF_INIT(BUF_LINE + 1);
    struct err why = ERR_INIT;
    struct draft d;
    bool overflow = m->text.overflow || m->calls.overflow || m->origin.overflow;
    int result = 0;

    if (import_is_empty(m))
        return 0;
    tick(im);
    hash_map_add(&im->given, buf_str(&m->session));
    if (is_origin_known(im, buf_str(&m->origin))) {
        count_of(im)->known += m->role != ROLE_OTHER;
        return 0;
    }
    if (m->time != IMPORT_NO_TIME)
        im->time = m->time;
    draft_init(&d);
    fill_draft(im, &d, m);
    if (overflow || draft_storable(&d, &why) < 0 || draft_format(&d, &line, &why) < 0)
        import_bad(s, overflow ? "longer than 64 MiB" : err_text(&why));
    else
        result = give_message(im, buf_str(&line), e);
    draft_release(&d);
    buf_release(&line);
    err_release(&why);
    return result;
}

int import_give_title(struct source *s, struct str session, struct str title, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE), part = BUF_INIT(BUF_SMALL);
    struct import_message m;
    struct str text;
    int result = 0;

    vis_add_line(&line, title, false);
    text = utf8_first(str_trim(buf_str(&line)), MESSAGE_TITLE);
    if (text.n > 0 && hash_map_find(&s->import->given, session)) {
        import_message_init(&m);
        import_message_clear(&m, ROLE_OTHER);
        buf_add_str(&m.session, session);
        buf_add_str(&m.text, text);
        buf_addf(&part, "title-%016" PRIx64, hash_map_hash(text));
        import_set_part(&m, buf_str(&part));
        result = import_give(s, &m, e);
        import_message_release(&m);
    }
    buf_release(&line);
    buf_release(&part);
    return result;
}

bool import_skips(struct source *s, struct str session, struct str part)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const struct entry *entry = entry_find(s->import, join(&key, session, '/', part));

    buf_release(&key);
    if (entry && !str_eq(entry->id, s->import->skipped)) {
        s->import->skipped = entry->id;
        count_of(s->import)->known++;
    }
    return entry != NULL;
}

bool import_knows(const struct source *s, struct str session, struct str part, struct buf *id)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const struct entry *entry;

    entry = entry_find(s->import, join(&key, session, '/', part));
    if (entry && id)
        buf_add_str(id, entry->id);
    buf_release(&key);
    return entry != NULL;
}

/* ---- the import ---- */

struct import *import_new(struct history *h, const struct import_options *o, uint64_t *bad_lines,
                          struct err *e)
{
    struct import *im = mem_zalloc(sizeof *im);

    im->history = h;
    im->options = *o;
    if (read_history(im, e) < 0) {
        import_free(im);
        return NULL;
    }
    *bad_lines = im->bad_lines;
    return im;
}

/* Imports a source. Returns 0, or -1 with *e set: ERR_ABSENT if it is not in the format. */
static int read_source(struct import *im, struct source *s, const struct import_format *f,
                       struct err *e)
{
    int result;

    im->results =
        mem_grow(im->results, &im->results_cap, im->results_count + 1, sizeof *im->results);
    im->results[im->results_count++] = (struct import_result){.name = s->name, .format = f->name};
    s->import = im;
    s->subagents = im->options.subagents;
    im->source = s;
    im->source_number++;
    im->time = s->time;
    result = f->read(s, e);
    im->source = NULL;
    hash_map_release(&im->given);
    im->skipped = STR_NONE;
    if (result < 0 && e->kind == ERR_ABSENT)
        im->results_count--;
    /* Without lines that wait, the result can be reported now. */
    if (im->pending_count == 0 || im->options.dry_run)
        (void)store_pending(im, NULL);
    return result;
}

int import_file(struct import *im, const char *path, const struct import_format *f, struct err *e)
{
    const struct import_format *found = f;
    struct source s;
    struct str head;
    int result;

    if (source_open(&s, path, e) < 0)
        return -1;
    result = source_head(&s, &head, e);
    if (result == 0 && str_starts(head, STR("PK\x03\x04"))) /* APPNOTE.TXT, 4.3.7 */
        result = err_set(e, ERR_FAILURE,
                         "cannot import '%s': it is a zip archive: unzip it and import its "
                         "conversations.json",
                         s.name);
    if (result == 0 && !f && head.n > 0)
        found = import_format_of(head);
    if (result == 0 && found)
        result = read_source(im, &s, found, e) < 0 ? -1 : 1;
    else if (result == 0)
        result = head.n == 0; /* an empty file has nothing to import */
    source_close(&s);
    if (result < 0 && e->kind == ERR_ABSENT) {
        if (f) {
            e->kind = ERR_FAILURE;
        } else {
            err_release(e);
            result = 0;
        }
    }
    return result;
}

int import_finish(struct import *im, struct err *e)
{
    int result = store_pending(im, e);

    for (size_t i = 0; i < im->session_names.count; i++) {
        const struct session *s = &im->sessions[i];

        if (s->existed && s->added > 0)
            warn(im, "%s %zu line%s to the existing session '%.*s'",
                 im->options.dry_run ? "would add" : "added", s->added, s->added == 1 ? "" : "s",
                 (int)s->name.n, s->name.p);
    }
    return result;
}

void import_free(struct import *im)
{
    if (!im)
        return;
    pending_clear(im);
    free(im->pending);
    free(im->results);
    free(im->entries);
    hash_map_release(&im->titled);
    free(im->title_times);
    hash_map_release(&im->known);
    free(im->tallies);
    hash_map_release(&im->lines);
    free(im->sessions);
    hash_map_release(&im->session_names);
    free(im);
}
