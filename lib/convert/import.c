#include "chathist/convert/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "convert/import_reader.h"
#include "convert/json_same.h"
#include "chathist/history/scan.h"
#include "chathist/history/store.h"

/* Lines are stored when this many bytes wait. */
#define BATCH_BYTES ((size_t)4 << 20)

/* Something that the history or a file has: the id of a line, SESSION/PART of an origin, or, once
 * there is a tally, SESSION LF ID of a line. */
struct entry {
    char *key;     /* owned */
    size_t source; /* number of the last file that had it; 0: the history */
    struct str id; /* of the line that has this part of an origin, borrowed from another key */
};

/* Counts equal lines. */
struct tally {
    char *hash;      /* owned: the key */
    size_t stored;   /* lines in the history */
    size_t promised; /* lines in the history and lines that wait */
    size_t source;   /* number of the last file that had the line */
    size_t given;    /* lines of that file so far */
};

/* A session with lines in our own form. */
struct session {
    char *name;      /* owned, NUL-terminated */
    size_t lines;    /* lines in the history and lines that wait */
    size_t promised; /* lines of this import */
    size_t added;    /* lines of this import that are stored */
    size_t source;   /* number of the last file that had lines of the session */
    size_t given;    /* how many of `lines` that file has had so far */
    bool existed;    /* before this import */
    bool renamed;    /* and reported */
};

/* A line that waits to be stored. */
struct pending {
    char *line;     /* owned, with its newline */
    size_t n;       /* 0 if another process has stored it */
    struct str key; /* a new part of its origin; STR_NONE for a line in our own form */
    size_t tally;   /* index of its tally */
    size_t nth;     /* number among the equal lines of its file */
    size_t session; /* index of its session, for a line in our own form */
    size_t result;  /* index of the result of its file */
};

struct import {
    struct history *history;
    struct import_options options;
    uint64_t bad_lines;
    struct hash_map known; /* -> entries */
    struct entry *entries;
    size_t entries_count, entries_cap;
    struct str new_key, id; /* see enter_new and enter_old */
    /* Set at the first line in our own form. From then on all lines and sessions are counted. */
    bool has_tally;
    struct hash_map lines; /* hash of a line -> tallies */
    struct tally *tallies;
    size_t tallies_count, tallies_cap;
    struct hash_map session_names; /* -> sessions */
    struct session *sessions;
    size_t sessions_count, sessions_cap;
    off_t seen; /* the history has been read up to this offset */
    struct pending *pending;
    size_t pending_count, pending_cap, pending_bytes;
    struct import_result *results; /* not reported yet; the last one is that of `source` */
    size_t results_count, results_cap;
    const struct source *source; /* that is being read, or NULL */
    size_t source_number;
    int64_t time; /* of the message before */
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

/* ---- equal lines ---- */

/* Appends what identifies a line. A null counts as absent, because an export writes it. */
static void add_identity(struct buf *out, const struct message *m)
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

static uint64_t line_hash(const struct message *m)
{
    struct buf text = BUF_INIT(JSON_SAME_MAX);
    uint64_t hash;

    if (m->id.n > 0)
        add_identity(&text, m);
    else
        json_add_same(&text, m->line);
    hash = hash_map_hash(text.overflow ? m->line : buf_str(&text));
    buf_release(&text);
    return hash;
}

/* Returns the index of the tally of a line, and creates it if necessary. */
static size_t tally_find(struct import *im, const struct message *m)
{
    uint64_t hash = line_hash(m);
    struct str key = {(const char *)&hash, sizeof hash};
    size_t *found = hash_map_find(&im->lines, key);

    if (found)
        return *found;
    im->tallies =
        mem_grow(im->tallies, &im->tallies_cap, im->tallies_count + 1, sizeof *im->tallies);
    im->tallies[im->tallies_count] = (struct tally){.hash = mem_copy(key.p, key.n)};
    key.p = im->tallies[im->tallies_count].hash;
    hash_map_set(&im->lines, key, im->tallies_count);
    return im->tallies_count++;
}

/* Returns the entry of a session, and creates it if necessary. */
static struct session *session_find(struct import *im, struct str name)
{
    size_t *found = hash_map_find(&im->session_names, name);

    if (found)
        return &im->sessions[*found];
    im->sessions =
        mem_grow(im->sessions, &im->sessions_cap, im->sessions_count + 1, sizeof *im->sessions);
    im->sessions[im->sessions_count] = (struct session){.name = mem_copy(name.p, name.n)};
    name.p = im->sessions[im->sessions_count].name;
    hash_map_set(&im->session_names, name, im->sessions_count);
    return &im->sessions[im->sessions_count++];
}

/* ---- what the history has ---- */

/* Adds a copy of the key and returns it. If the key exists, its entry gets the new source, and
 * STR_NONE is returned. */
static struct str enter(struct import *im, struct str key, size_t source, struct str id)
{
    size_t *found = hash_map_find(&im->known, key);

    if (found && im->entries) {
        im->entries[*found].source = source;
        return STR_NONE;
    }
    im->entries =
        mem_grow(im->entries, &im->entries_cap, im->entries_count + 1, sizeof *im->entries);
    im->entries[im->entries_count] = (struct entry){mem_copy(key.p, key.n), source, id};
    key.p = im->entries[im->entries_count].key;
    hash_map_set(&im->known, key, im->entries_count++);
    return key;
}

static struct entry *entry_find(const struct import *im, struct str key)
{
    size_t *found = hash_map_find(&im->known, key);

    return found ? &im->entries[*found] : NULL;
}

/* Calls `take` with SESSION/PART for each part of an origin, or with an origin that has no part,
 * until it returns false. Returns whether it never did. */
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

/* Adds a part of the line whose id is im->id. */
static bool enter_old(struct import *im, struct str key)
{
    enter(im, key, 0, im->id);
    return true;
}

/* Like enter_old, for a new message. im->new_key becomes the first key that is new. */
static bool enter_new(struct import *im, struct str key)
{
    struct str entered = enter(im, key, im->source_number, im->id);

    if (!im->new_key.p)
        im->new_key = entered;
    return true;
}

static bool is_known(struct import *im, struct str key)
{
    return entry_find(im, key) != NULL;
}

/* Sets `key` to the key of a line id within its session. An origin contains no line feed. */
static struct str line_key(struct buf *key, struct str session, struct str id)
{
    buf_clear(key);
    buf_add_str(key, session);
    buf_add_byte(key, '\n');
    buf_add_str(key, id);
    return buf_str(key);
}

/* Adds a line of the history. */
static void enter_line(struct import *im, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    struct str origin = message_text(m, FIELD_ORIGIN, &scratch);

    im->id = enter(im, m->id, 0, STR_NONE);
    if (origin.p)
        each_part(origin, enter_old, im);
    if (im->has_tally) {
        size_t place = tally_find(im, m);

        im->tallies[place].stored++;
        session_find(im, m->session_id)->lines++;
        enter(im, line_key(&scratch, m->session_id, m->id), 0, STR_NONE);
    }
    buf_release(&scratch);
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
    for (size_t i = 0; im->seen == 0 && i < im->tallies_count; i++)
        im->tallies[i].stored = 0;
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
        struct tally *tally = &im->tallies[p->tally];
        const struct entry *entry = p->key.p ? entry_find(im, p->key) : NULL;

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

/* Reports the results of all files but the one that is being read: none of their lines waits. */
static void report_results(struct import *im)
{
    size_t reported = im->results_count - (im->source ? 1 : 0);

    for (size_t i = 0; i < reported; i++)
        if (im->options.listener.done)
            im->options.listener.done(im->options.listener.arg, &im->results[i]);
    if (im->source && reported > 0)
        im->results[0] = im->results[reported];
    im->results_count -= reported;
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
        im->results[p->result].count.imported++;
        if (!p->key.p)
            im->sessions[p->session].added++;
        if (im->options.listener.line)
            im->options.listener.line(im->options.listener.arg, (struct str){p->line, p->n - 1});
    }
    pending_clear(im);
    report_results(im);
    return result;
}

/* Adds a line to those that wait, and takes the bytes of `line`. p describes it. */
static int add_pending(struct import *im, struct buf *line, struct pending p, struct err *e)
{
    p.n = line->len;
    p.line = buf_detach(line);
    p.nth = im->tallies[p.tally].given;
    p.result = im->results_count - 1;
    im->pending =
        mem_grow(im->pending, &im->pending_cap, im->pending_count + 1, sizeof *im->pending);
    im->pending[im->pending_count++] = p;
    im->pending_bytes += p.n;
    return im->pending_bytes < BATCH_BYTES ? 0 : store_pending(im, e);
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

static void note_bad(void *arg, size_t number, const char *reason)
{
    struct import *im = arg;
    const struct import_listener *l = &im->options.listener;

    count_of(im)->bad++;
    if (l->bad)
        l->bad(l->arg, im->source->name, number, count_of(im)->bad, reason);
}

static void note_altered(struct import *im, const char *field)
{
    const struct import_listener *l = &im->options.listener;

    count_of(im)->altered++;
    if (l->altered)
        l->altered(l->arg, im->source->name, im->source->number, count_of(im)->altered, field);
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

/* Counts a line of the file that is being read. Returns whether the history has it, or will. */
static bool tally_has(struct import *im, size_t place)
{
    struct tally *t = &im->tallies[place];

    if (t->source != im->source_number)
        t->given = 0;
    t->source = im->source_number;
    t->given++;
    if (t->given <= t->stored || t->given <= t->promised)
        return true;
    t->promised = t->given;
    return false;
}

/* Returns the entry of a session that the file being read has. */
static struct session *session_in_source(struct import *im, struct str name)
{
    struct session *s = session_find(im, name);

    if (s->source != im->source_number)
        s->given = 0;
    s->source = im->source_number;
    return s;
}

/* Appends the ids in `replaces` to `kept`, without those of lines that only the history has.
 * Returns whether there are any of those. */
static bool keep_own_ids(struct import *im, const struct message *m, struct buf *kept)
{
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE), key = BUF_INIT(BUF_LINE);
    bool some = false;

    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);
        const struct entry *entry = entry_find(im, line_key(&key, m->session_id, id));

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

static bool is_field(struct str raw_key, enum field f)
{
    return json_key_is(raw_key, field_name(f));
}

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
 * `replaces` unless that is NULL. All other members stay byte for byte. Returns &c->m, or NULL with
 * *e set. */
static const struct message *change_line(const struct message *m, const char *session,
                                         bool drop_reset, const struct buf *kept, struct changed *c,
                                         struct err *e)
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

/* Removes the fields that would act on lines that the file does not have. Returns the line, or NULL
 * with *e set. */
static const struct message *alter_line(struct import *im, const struct message *m,
                                        const struct session *s, struct changed *c, struct err *e)
{
    struct buf kept = BUF_INIT(BUF_LINE);
    bool reset = message_is_reset(m) && s->lines > s->given, others = keep_own_ids(im, m, &kept);

    if (reset || others)
        m = change_line(m, s->name, reset, others ? &kept : NULL, c, e);
    if (m && reset)
        note_altered(im, "reset");
    if (m && others)
        note_altered(im, "replaces");
    buf_release(&kept);
    return m;
}

/* Counts a line, and stores it unless the history has it. `place` is the index of its tally. */
static int give_line(struct import *im, const struct message *m, struct session *s, size_t place,
                     bool has, struct err *e)
{
    struct buf copy = BUF_INIT(BUF_LINE + 1), key = BUF_INIT(BUF_LINE);
    struct str id = line_key(&key, m->session_id, m->id);
    int result = 0;

    s->given++;
    /* If another line has the same id, that line does not belong to the file. */
    if (has || !entry_find(im, id))
        enter(im, id, im->source_number, STR_NONE);
    if (has) {
        count_of(im)->known++;
    } else {
        s->existed = s->existed || (s->promised == 0 && s->lines > 0);
        s->promised++;
        s->lines++;
        enter(im, m->id, im->source_number, STR_NONE);
        buf_add_str(&copy, m->line);
        buf_add_byte(&copy, '\n');
        result = add_pending(
            im, &copy, (struct pending){.tally = place, .session = (size_t)(s - im->sessions)}, e);
    }
    buf_release(&copy);
    buf_release(&key);
    return result;
}

/* Returns the session of a line: its own, or one whose id programs can use. */
static struct session *choose_session(struct import *im, struct str name)
{
    struct buf own = BUF_INIT(BUF_SMALL), quoted = BUF_INIT(BUF_SMALL);
    const struct import_listener *l = &im->options.listener;
    struct session *s;

    if (id_session_valid(name))
        return session_in_source(im, name);
    import_add_session(&own, import_lines.name, name);
    s = session_in_source(im, buf_str(&own));
    json_add_string(&quoted, name);
    if (!s->renamed && l->renamed)
        l->renamed(l->arg, buf_c(&quoted), s->name);
    s->renamed = true;
    buf_release(&own);
    buf_release(&quoted);
    return s;
}

static int take_line(void *arg, const struct message *m, struct err *e)
{
    struct import *im = arg;
    struct session *s;
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
        m = change_line(m, s->name, false, NULL, &renamed, &why);
    if (m) {
        place = tally_find(im, m);
        has = tally_has(im, place);
    }
    if (m && !has && (m = alter_line(im, m, s, &altered, &why)) && tally_find(im, m) != place) {
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

/* Sets an id that no other message has, in the draft and as im->id. */
static void set_id(struct import *im, struct draft *d, int64_t time, struct str origin)
{
    struct buf id = BUF_INIT(BUF_SMALL), seed = BUF_INIT(BUF_LINE);
    int64_t ms = time > 0 ? time / 1000 : 0;

    buf_add_str(&seed, origin);
    do {
        uint64_t hash = hash_map_hash(buf_str(&seed));

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

    if (!usage_known(&m->usage))
        return;
    buf_add_byte(&usage, '{');
    usage_add_members(&m->usage, &usage);
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
    time_add_iso(&text, im->time);
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

/* Counts the line of a new message. Returns the index of its tally. */
static size_t tally_new(struct import *im, struct str line)
{
    struct message m = MESSAGE_INIT;
    struct tally *t;
    size_t place;

    (void)message_parse(&m, line);
    place = tally_find(im, &m);
    message_release(&m);
    t = &im->tallies[place];
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
        count_of(im)->known++;
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
            im, &line, (struct pending){.key = im->new_key, .tally = tally_new(im, buf_str(&line))},
            e);
    }
    draft_release(&d);
    buf_release(&line);
    err_release(&why);
    return result;
}

static bool is_part_known(void *arg, struct str session, struct str part, struct buf *id)
{
    struct buf key = BUF_INIT(BUF_SMALL);
    const struct entry *entry;

    buf_add_str(&key, session);
    buf_add_byte(&key, '/');
    buf_add_str(&key, part);
    entry = entry_find(arg, buf_str(&key));
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

/* Imports a source. Returns 0, or -1 with *e set. */
static int read_source(struct import *im, struct source *s, const struct import_format *f,
                       struct err *e)
{
    struct import_sink sink = {.message = take_message,
                               .line = take_line,
                               .known = is_part_known,
                               .bad = note_bad,
                               .arg = im,
                               .subagents = im->options.subagents};
    int result;

    im->results =
        mem_grow(im->results, &im->results_cap, im->results_count + 1, sizeof *im->results);
    im->results[im->results_count++] = (struct import_result){.name = s->name, .format = f->name};
    im->source = s;
    im->source_number++;
    im->time = s->time;
    result = f->read(s, &sink, e);
    im->source = NULL;
    /* Without lines that wait, the result can be reported now. */
    if (im->pending_count == 0 || im->options.dry_run)
        (void)store_pending(im, NULL);
    return result;
}

int import_file(struct import *im, const char *path, const struct import_format *f, struct err *e)
{
    struct source s;
    struct str head;
    int result;

    if (source_open(&s, path, e) < 0)
        return -1;
    result = source_head(&s, &head, e);
    if (result == 0 && !f && head.n > 0)
        f = import_format_of(head);
    if (result == 0 && f)
        result = read_source(im, &s, f, e) < 0 ? -1 : 1;
    else if (result == 0)
        result = head.n == 0; /* an empty file has nothing to import */
    source_close(&s);
    return result;
}

int import_finish(struct import *im, struct err *e)
{
    const struct import_listener *l = &im->options.listener;
    int result = store_pending(im, e);

    for (size_t i = 0; l->grown && i < im->sessions_count; i++)
        if (im->sessions[i].existed && im->sessions[i].added > 0)
            l->grown(l->arg, im->sessions[i].name, im->sessions[i].added);
    return result;
}

void import_free(struct import *im)
{
    if (!im)
        return;
    pending_clear(im);
    free(im->pending);
    free(im->results);
    for (size_t i = 0; i < im->entries_count; i++)
        free(im->entries[i].key);
    free(im->entries);
    hash_map_release(&im->known);
    for (size_t i = 0; i < im->tallies_count; i++)
        free(im->tallies[i].hash);
    free(im->tallies);
    hash_map_release(&im->lines);
    for (size_t i = 0; i < im->sessions_count; i++)
        free(im->sessions[i].name);
    free(im->sessions);
    hash_map_release(&im->session_names);
    free(im);
}
