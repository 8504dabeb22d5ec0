#include "chathist/convert/import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/deletions.h"
#include "chathist/history/known.h"
#include "chathist/history/scan.h"
#include "chathist/history/store.h"
#include "chathist/history/title.h"
#include "convert/import_reader.h"
#include "convert/import_script.h"

/* Lines are stored when this many bytes wait. */
#define BATCH_BYTES ((size_t)4 << 20)
/* The most reports of a kind for a file. */
#define NAMED_MAX 10
#define MESSAGES_A_REPORT 64
#define NONE ((size_t)-1)

/* A line with an origin. */
struct imported {
    uint64_t session; /* hash64 of the session in its origin; 0: a title, or replaced */
    uint32_t source;  /* number of the last file that had it; 0: the history */
    uint32_t version; /* of its text, see version_of */
    uint32_t by;      /* number of the line of its session that replaces it, from 1, or 0 */
    off_t at;         /* in the history, or -1 */
};

/* A session in a file that always has the whole conversation. */
struct thread {
    uint64_t session; /* as above */
    size_t common;    /* number of the line, from 1, of the last message before the first new one */
    size_t first;     /* number of the pending line, from 1, of the first new message */
};

/* Something that the history or a file has: an entry of `marks`. A history has several for each
 * line, so they are small. */
struct mark {
    uint64_t key;    /* of known_key, or hash64 */
    uint32_t stored; /* how many of it the history has */
    uint32_t source; /* number of the last file that had it; 0: the history */
    /* Of equal lines the most that the history or a file has had, of a part its lines: a changed
     * record has several. */
    uint32_t most;
    union {
        uint32_t line;  /* of a part: the number of its newest line in `ids`, from 1 */
        uint32_t given; /* of equal lines: how many file `source` has had so far */
    };
};

/* What a mark stands for, the seed of its hash. MARK_SESSION_ID and
 * MARK_LINE exist once there is a line in our own form, and in a dry run. */
enum mark_kind {
    MARK_PART,       /* a part of an origin: its session and the part */
    MARK_BEGINNING,  /* the texts from the beginning of a session */
    MARK_RECORD,     /* a part of an origin: its format and the part */
    MARK_VERSION,    /* a part of an origin and the version of a line that has it no more */
    MARK_SESSION_ID, /* the session and the id of a line */
    MARK_LINE,       /* equal lines */
    MARK_ERASED, /* the session and the id of a line, or a part of its origin, that was erased */
};

/* The texts of a session so far. */
struct beginning {
    uint64_t sum;
    size_t bytes;
};
/* Beginnings with fewer bytes are equal by chance. */
#define BEGINNING_MIN 60

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

/* A line that waits to be stored. One that is not in our own form has the mark of a part of its
 * origin, and no session. */
struct pending {
    size_t n;       /* bytes in `waiting`, with the newline */
    size_t mark;    /* index of the mark of lines that are equal to it */
    uint32_t nth;   /* of these lines, from 1 */
    size_t line;    /* its number in `ids`, from 1; 0: it is in our own form */
    size_t session; /* index of its session, or NONE */
    size_t result;  /* index of the result of its file */
    bool is_title;  /* it is not counted */
    bool stored;    /* by another process */
};

struct import {
    struct history *history;
    struct import_options options;
    uint64_t bad_lines;
    struct known marks;
    struct hash_map ids;       /* of lines that have an origin -> imported */
    struct imported *imported; /* as many as it has keys */
    struct thread *threads;    /* of `source`, if it has whole conversations */
    size_t threads_count, threads_cap;
    struct hash_map session_names; /* -> sessions, as many as it has keys */
    struct session *sessions;
    /* Set at the first line in our own form. From then on all lines and sessions are counted. */
    bool has_tally;
    bool lost;  /* lines could not be stored */
    off_t seen; /* the end of the last line of the history that was read or stored */
    /* The last scan of the history. It stays open, so that no new file gets its inode. */
    struct scan scan;
    struct pending *pending;
    size_t pending_count, pending_cap;
    struct buf waiting;            /* their bytes */
    struct import_result *results; /* not reported yet; the last one is that of `source` */
    size_t results_count, results_cap;
    const struct source *source; /* that is being read, or NULL */
    struct hash_map given;       /* sessions of which it gave messages */
    struct hash_map postponed;   /* sessions that are left for the next import */
    uint32_t source_number;
    struct import **takers; /* those that store messages of `source` */
    size_t takers_count, takers_cap;
    struct hash_map titled; /* sessions with a title */
    struct titles *titles;  /* those of each */
    struct hash_map begun;  /* sessions of formats with `copies` */
    struct beginning *beginnings;
    uint64_t beginning; /* the key of one that only the message has that is being stored; 0: none */
};

/* ---- what the history has ---- */

/* Returns the mark of a key, and adds it if necessary. It is valid until the next one is added. */
static struct mark *mark_of(struct import *im, uint64_t key)
{
    return known_have(&im->marks, key);
}

static struct mark *mark_at(const struct import *im, size_t number)
{
    struct mark *marks = im->marks.entries;

    return &marks[number];
}

static size_t mark_number(const struct import *im, const struct mark *mark)
{
    return (size_t)(mark - mark_at(im, 0));
}

/* Returns the titles of a session. */
static struct titles *titles_of(struct import *im, struct str session)
{
    size_t i = hash_map_number(&im->titled, &session);

    im->titles = hash_map_values(&im->titled, im->titles, sizeof *im->titles);
    return &im->titles[i];
}

/* Adds the ids and names of calls, a JSON array, to a hash. */
static uint64_t hash_calls(struct str array, uint64_t sum)
{
    struct buf scratch = BUF_INIT(BUF_LINE), args = BUF_INIT(BUF_LINE);
    struct json_iter calls = json_iter(array);
    struct message_call call;

    while (message_next_call(&calls, &call, &args)) {
        sum = hash64(json_text(call.id, &scratch), sum);
        sum = hash64(json_text(call.name, &scratch), sum);
    }
    buf_release(&scratch);
    buf_release(&args);
    return sum;
}

/* Returns a hash of what a record may change: the text and the calls. */
static uint32_t version_of(struct str text, struct str calls)
{
    return (uint32_t)hash_calls(calls, hash64(text, 0));
}

/* Returns the key of an earlier version of a line that has this part. */
static uint64_t version_key(const struct mark *part, uint32_t version)
{
    return hash64((struct str){(const char *)&version, sizeof version}, part->key + MARK_VERSION);
}

/* Returns the number, from 1, of the line with an id, which is added if it is new. */
static size_t line_of(struct import *im, struct str id, const struct imported *as)
{
    size_t count = im->ids.count, i = hash_map_number(&im->ids, &id);

    im->imported = hash_map_values(&im->ids, im->imported, sizeof *im->imported);
    if (i == count)
        im->imported[i] = *as;
    im->imported[i].at = as->at;
    return i + 1;
}

static void raise_most(struct mark *lines, uint32_t n)
{
    lines->most = n > lines->most ? n : lines->most;
}

/* Notes that a line has a part of an origin, and returns its mark. */
static struct mark *enter_part(struct import *im, uint64_t key, uint32_t line, bool stored)
{
    struct mark *part = mark_of(im, key);

    if (part->line != 0 && part->line != line) {
        (void)mark_of(im, version_key(part, im->imported[part->line - 1].version));
        part = mark_of(im, key);
    }
    part->line = line;
    part->stored += stored;
    raise_most(part, stored ? part->stored : part->most + 1);
    return part;
}

/* Notes that a file or the history (as->at) has a line with this id and origin, which may be empty.
 * Returns the index of the mark of its first part that is new, else of its first one; or NONE. */
static size_t enter_origin(struct import *im, struct str id, struct str origin,
                           const struct imported *as)
{
    struct str parts = origin, session = str_cut(&parts, '/');
    struct str rest = session, format = str_cut(&rest, ':');
    size_t chosen = NONE, line = parts.p ? line_of(im, id, as) : 0;
    bool is_new = false;

    while (parts.p) {
        struct str name = str_cut(&parts, '+');
        struct mark *record = mark_of(im, known_key(format, name, MARK_RECORD)), *part;

        record->line = record->line == 0 ? (uint32_t)line : record->line;
        part = enter_part(im, known_key(session, name, MARK_PART), (uint32_t)line, as->at >= 0);
        if (chosen == NONE || (!is_new && part->most == 1)) {
            chosen = mark_number(im, part);
            is_new = part->most == 1;
        }
    }
    return chosen;
}

/* Adds a text to the beginning of a session. Returns the mark of the beginning with it. */
static struct mark *begin_with(struct import *im, struct str session, enum role role,
                               struct str text)
{
    size_t i = hash_map_number(&im->begun, &session);
    struct beginning *b;

    im->beginnings = hash_map_values(&im->begun, im->beginnings, sizeof *im->beginnings);
    b = &im->beginnings[i];
    b->sum = hash64(text, b->sum + (uint64_t)role + MARK_BEGINNING);
    b->bytes += text.n;
    return b->bytes >= BEGINNING_MIN ? mark_of(im, b->sum) : NULL;
}

/* Notes the text of a line of the history, if its format has copies. */
static void enter_text(struct import *im, const struct message *m)
{
    struct buf scratch = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_SMALL);
    struct str rest = m->session_id, before = str_cut(&rest, ':');
    const struct import_format *format;
    size_t *line = hash_map_find(&im->ids, m->id);
    struct mark *mark;

    buf_add_str(&name, before);
    format =
        im->options.importers && line ? importers_named(im->options.importers, buf_c(&name)) : NULL;
    if (format && format->copies && m->role != ROLE_OTHER) {
        mark = begin_with(im, m->session_id, m->role, message_content(m, &scratch));
        if (mark && mark->line == 0)
            mark->line = (uint32_t)*line + 1;
    }
    buf_release(&scratch);
    buf_release(&name);
}

/* Notes the ids in `replaces`, an array, of a line of a session (a hash) or of none. */
static void enter_replaced(struct import *im, struct str replaces, struct str id, uint64_t session)
{
    struct buf scratch = BUF_INIT(BUF_SMALL);
    const size_t *by = session != 0 ? hash_map_find(&im->ids, id) : NULL;

    for (struct json_iter it = json_iter(replaces); !it.object && json_next(&it);) {
        const size_t *line = hash_map_find(&im->ids, json_text(it.value, &scratch));

        if (line && by && im->imported[*line].session == session)
            im->imported[*line].by = (uint32_t)*by + 1;
        if (line)
            im->imported[*line].session = 0;
    }
    buf_release(&scratch);
}

/* Notes that a file (-1) has a line, or the history at this offset. */
static void enter_line(struct import *im, const struct message *m, off_t at)
{
    struct buf scratch = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_LINE);
    struct str origin = message_text(m, FIELD_ORIGIN, &scratch), parts = origin,
               session = str_cut(&parts, '/');
    struct imported as = {.source = at >= 0 ? 0 : im->source_number, .at = at};

    if (parts.p && !message_is_title(m)) {
        as.session = hash64(session, 0);
        as.version = version_of(message_content(m, &text), m->field[FIELD_TOOL_CALLS]);
    }
    (void)enter_origin(im, m->id, origin, &as);
    enter_replaced(im, m->field[FIELD_REPLACES], m->id, as.session);
    if (message_is_title(m))
        titles_add(titles_of(im, m->session_id), m);
    buf_release(&scratch);
    buf_release(&text);
}

/* Returns the number, from 1, of the line that has a part of an origin, or 0. */
static size_t known_line(const struct import *im, struct str session, struct str part)
{
    const struct mark *found = known_find(&im->marks, known_key(session, part, MARK_PART));

    return found ? found->line : 0;
}

/* Returns the mark of the first part of an origin, or NULL unless all of its parts are known. */
static const struct mark *find_origin(const struct import *im, struct str origin)
{
    struct str parts = origin, session = str_cut(&parts, '/');
    const struct mark *first = NULL, *mark = NULL;

    do {
        mark = known_find(&im->marks, known_key(session, str_cut(&parts, '+'), MARK_PART));
        first = first ? first : mark;
    } while (mark && mark->line > 0 && parts.p);
    return mark && mark->line > 0 ? first : NULL;
}

/* Reads the list of erased lines: the ids of lines, and the parts of their origins. Returns 0, or
 * -1 with *e set. */
static int read_erased(struct import *im, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX), session = BUF_INIT(BUF_SMALL), id = BUF_INIT(BUF_LINE),
               origin = BUF_INIT(BUF_LINE);
    int result = deletions_read(im->history, &text, e);
    struct str rest = buf_str(&text), line;

    while (deletions_next(&rest, &session, &id, &line)) {
        struct str parts = json_text(json_get(line, "origin"), &origin),
                   there = str_cut(&parts, '/');

        (void)mark_of(im, known_key(buf_str(&session), buf_str(&id), MARK_ERASED));
        while (parts.p)
            (void)mark_of(im, known_key(there, str_cut(&parts, '+'), MARK_ERASED));
    }
    buf_release(&text);
    buf_release(&session);
    buf_release(&id);
    buf_release(&origin);
    return result;
}

/* Returns whether a part of a session, or the message with that id, was erased. */
static bool is_part_erased(const struct import *im, struct str session, struct str part)
{
    return known_find(&im->marks, known_key(session, part, MARK_ERASED)) != NULL;
}

/* Returns whether a message was erased from the history: all parts of its origin, or its id. */
static bool is_erased(const struct import *im, struct str origin, struct str id)
{
    struct str parts = origin, session = str_cut(&parts, '/');
    bool all = parts.p != NULL;

    if (is_part_erased(im, session, id))
        return true;
    while (all && parts.p)
        all = is_part_erased(im, session, str_cut(&parts, '+'));
    return all;
}

/* ---- equal lines ---- */

/* Returns a hash of what identifies a line that has an id, in this session. */
static uint64_t hash_texts(const struct message *m, struct str session)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    uint64_t sum = hash64(session, MARK_LINE);

    sum = hash64(m->id, sum);
    sum = hash64(m->timestamp, sum);
    sum = hash64(m->role_text, sum);
    sum = hash64(message_content(m, &scratch), sum);
    sum = hash64(message_text(m, FIELD_TOOL_CALL_ID, &scratch), sum);
    buf_release(&scratch);
    return hash_calls(m->field[FIELD_TOOL_CALLS], sum);
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
            sum += hash64(buf_str(&out), MARK_LINE);
    }
    buf_release(&out);
    return sum;
}

/* Returns the mark of lines that are equal to this one in this session. */
static struct mark *mark_of_line(struct import *im, const struct message *m, struct str session)
{
    return mark_of(im, m->id.n > 0 ? hash_texts(m, session) : hash_members(m, session));
}

/* Returns the index of a session, and adds the session if necessary. */
static size_t session_of(struct import *im, struct str name)
{
    size_t i = hash_map_number(&im->session_names, &name);

    im->sessions = hash_map_values(&im->session_names, im->sessions, sizeof *im->sessions);
    im->sessions[i].name = name;
    return i;
}

/* ---- reading the history ---- */

static void count_stored(struct import *im, const struct message *m)
{
    struct mark *lines = mark_of_line(im, m, m->session_id);
    size_t session = session_of(im, m->session_id);

    raise_most(lines, ++lines->stored);
    mark_of(im, known_key(m->session_id, m->id, MARK_SESSION_ID))->source = 0;
    im->sessions[session].lines++;
    im->sessions[session].existed = true;
}

/* Reads the lines of the history from im->seen on. Returns 0, or -1 with *e set. */
static int read_history(struct import *im, struct err *e)
{
    struct message m = MESSAGE_INIT;
    struct line line;
    struct scan *scan = &im->scan;
    int got;

    scan_close(scan);
    if (scan_open(scan, im->history->dir_fd, im->history->path, e) < 0)
        return -1;
    scan->work = im->history->work;
    scan->task = "read";
    /* A history that became shorter was replaced. */
    if (im->seen > scan->size)
        im->seen = 0;
    for (size_t i = 0; im->seen == 0 && i < im->marks.count; i++)
        mark_at(im, i)->stored = 0;
    for (size_t i = 0; im->seen == 0 && i < im->session_names.count; i++)
        im->sessions[i].lines = 0;
    if (im->seen == 0)
        hash_map_release(&im->begun);
    scan_from(scan, im->seen);
    while ((got = scan_message(scan, &m, &line, e)) > 0) {
        enter_line(im, &m, line.at);
        enter_text(im, &m);
        if (im->has_tally)
            count_stored(im, &m);
    }
    /* Without the lock, the last line may not be finished yet. */
    im->seen = scan_offset(scan);
    im->bad_lines += scan->bad;
    message_release(&m);
    return got;
}

/* ---- reports ---- */

/* Returns the counts of the file that is being read. */
static struct import_count *count_of(struct import *im)
{
    return &im->results[im->results_count - 1].count;
}

void import_report(const struct source *s)
{
    const struct import_listener *l = s->import ? &s->import->options.listener : NULL;

    if (l && l->tick)
        l->tick(l->arg, s->bytes);
}

/* A database is not read through the source. */
static void report_message(struct source *s)
{
    if (s->reports++ % MESSAGES_A_REPORT == 0)
        import_report(s);
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

void import_nothing(struct source *s)
{
    if (s->unread > 0 && count_of(s->import)->bad == 0)
        warn(s->import, "'%s' is recognised as %s, but no message came of it", s->name,
             s->import->results[s->import->results_count - 1].format);
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

/* Makes the bytes to append, under the lock: another import may have stored some of them. */
static int make_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct import *im = arg;
    bool replaced = !file_is_named(im->history->dir_fd, im->history->path, im->scan.fd);

    im->seen = replaced ? 0 : im->seen;
    if ((replaced || at != im->seen) && read_history(im, e) < 0)
        return -1;
    (void)buf_room(lines, im->waiting.len);
    for (size_t i = 0, next = 0; i < im->pending_count; i++) {
        struct pending *p = &im->pending[i];
        struct mark *same = mark_at(im, p->mark);

        p->stored = p->nth <= same->stored;
        if (p->stored) {
            im->results[p->result].count.known += !p->is_title;
        } else {
            same->stored++;
            if (p->line > 0)
                im->imported[p->line - 1].at = at + (off_t)lines->len;
            buf_add(lines, im->waiting.data + next, p->n);
        }
        next += p->n;
    }
    im->seen = at + (off_t)lines->len;
    return 0;
}

static int store_pending(struct import *im, struct err *e)
{
    int result = 0;

    if (im->pending_count > 0 && !im->options.dry_run)
        result = store_append_lines(im->history, make_lines, im, e);
    im->lost = im->lost || result < 0;
    for (size_t i = 0, next = 0; result == 0 && i < im->pending_count; i++) {
        const struct pending *p = &im->pending[i];
        struct str line = {im->waiting.data + next, p->n - 1};

        next += p->n;
        if (p->stored)
            continue;
        im->results[p->result].count.imported += !p->is_title;
        if (p->session != NONE)
            im->sessions[p->session].added++;
        if (im->options.listener.line)
            im->options.listener.line(im->options.listener.arg, line);
    }
    im->pending_count = 0;
    buf_clear(&im->waiting);
    report_results(im);
    return result;
}

/* Adds a new line to those that wait. p has its mark, its place among equal lines and its session.
 */
static int add_pending(struct import *im, struct str line, struct pending p, struct err *e)
{
    p.n = line.n + 1;
    p.result = im->results_count - 1;
    buf_add_str(&im->waiting, line);
    buf_add_byte(&im->waiting, '\n');
    im->pending =
        mem_grow(im->pending, &im->pending_cap, im->pending_count + 1, sizeof *im->pending);
    im->pending[im->pending_count++] = p;
    return im->waiting.len < BATCH_BYTES || im->source->whole ? 0 : store_pending(im, e);
}

/* ---- whole conversations ----
 *
 * Some programs remove withdrawn messages from the file. Then the history has lines that the file
 * does not have any more, after the last message that both have: the first new message replaces
 * them. This is known at the end of the file, so its lines wait until then. */

/* Returns the thread of a session, or NULL if the file need not have the whole conversation. */
static struct thread *thread_of(struct import *im, struct str session)
{
    uint64_t sum = hash64(session, 0);

    if (!im->source->whole)
        return NULL;
    for (size_t i = im->threads_count; i-- > 0;)
        if (im->threads[i].session == sum)
            return &im->threads[i];
    im->threads =
        mem_grow(im->threads, &im->threads_cap, im->threads_count + 1, sizeof *im->threads);
    im->threads[im->threads_count] = (struct thread){.session = sum};
    return &im->threads[im->threads_count++];
}

/* Notes that the file has a message of the history, of which `parts` are. */
static void enter_common(struct import *im, struct str session, struct str parts)
{
    struct thread *t = thread_of(im, session);

    while (t && parts.p) {
        size_t line = known_line(im, session, str_cut(&parts, '+'));

        im->imported[line - 1].source = im->source_number;
        if (t->first == 0 && line > t->common)
            t->common = line;
    }
}

/* Adds ids to `replaces` of a line that waits. */
static void add_replaces(struct import *im, struct pending *p, const struct buf *ids)
{
    struct buf all = BUF_INIT(SIZE_MAX);
    struct str line = {im->waiting.data, p->n}, list;
    size_t at;

    for (const struct pending *before = im->pending; before < p; before++)
        line.p += before->n;
    list = json_get(str_trim(line), field_name(FIELD_REPLACES));
    at = list.p ? (size_t)(list.p - line.p) + 1 : p->n - strlen("}\n");
    buf_add(&all, im->waiting.data, (size_t)(line.p - im->waiting.data) + at);
    if (list.p)
        buf_addf(&all, "%s,", buf_c(ids));
    else
        buf_addf(&all, ",\"%s\":[%s]", field_name(FIELD_REPLACES), buf_c(ids));
    p->n += ids->len + (list.p ? 1 : strlen(",\"\":[]") + strlen(field_name(FIELD_REPLACES)));
    buf_add_str(&all, str_skip(buf_str(&im->waiting), (size_t)(line.p - im->waiting.data) + at));
    buf_release(&im->waiting);
    im->waiting = all;
}

/* Lets the first new message of each session replace what the file does not have any more. */
static void replace_lost(struct import *im)
{
    for (size_t n = 0; n < im->threads_count; n++) {
        struct thread *t = &im->threads[n];
        struct buf ids = BUF_INIT(BUF_LINE / 2);

        for (size_t i = t->common; t->first > 0 && i < im->ids.count; i++)
            if (im->imported[i].session == t->session &&
                im->imported[i].source != im->source_number) {
                import_add_id(&ids, im->ids.entries[i].key);
                im->imported[i].session = 0;
            }
        if (ids.len > 0 && !ids.overflow)
            add_replaces(im, &im->pending[t->first - 1], &ids);
        buf_release(&ids);
    }
}

/* ---- the history of a session ---- */

/* Begins to store messages of a source, which the import `lead` reads. */
static void begin_source(struct import *im, struct import *lead, const struct source *s,
                         const char *format)
{
    im->results =
        mem_grow(im->results, &im->results_cap, im->results_count + 1, sizeof *im->results);
    im->results[im->results_count++] =
        (struct import_result){.name = s->name, .format = format, .history = im->history};
    im->source = s;
    im->source_number++;
    lead->takers =
        mem_grow(lead->takers, &lead->takers_cap, lead->takers_count + 1, sizeof(struct import *));
    lead->takers[lead->takers_count++] = im;
}

/* Returns the import that stores a session of the source, or NULL if none does. */
static struct import *taker_of(const struct source *s, struct str session)
{
    struct import *lead = s->import, *im = lead;

    if (lead->options.choose)
        im = lead->options.choose(lead->options.choose_arg, session,
                                  buf_str(s->partial ? &s->began : &s->cwd));
    if (im && im->source != s)
        begin_source(im, lead, s, lead->results[lead->results_count - 1].format);
    return im;
}

/* Ends a source. Without lines that wait, its result can be reported now. Of several imports none
 * holds many lines. */
static int end_source(struct import *im, bool several, struct err *e)
{
    /* A file that was not read to its end, or in parts, may have the missing messages. */
    if (e && count_of(im)->bad == 0)
        replace_lost(im);
    im->threads_count = 0;
    im->source = NULL;
    hash_map_release(&im->given);
    if (im->pending_count == 0 || im->options.dry_run ||
        (several && im->waiting.len >= BATCH_BYTES / 16))
        return store_pending(im, e);
    return 0;
}

/* ---- lines in our own form ---- */

/* Counts all lines of the history. Called before the first line in our own form. */
static int begin_tally(struct import *im, struct err *e)
{
    uint64_t bad = im->bad_lines;
    int result;

    if (im->has_tally)
        return 0;
    if (im->pending_count > 0 && !im->options.dry_run && store_pending(im, e) < 0)
        return -1;
    im->has_tally = true;
    im->seen = 0;
    result = read_history(im, e);
    im->bad_lines = bad;
    return result;
}

/* Counts a line of the file that is being read. Returns the index of the mark of lines that are
 * equal to it. */
static size_t count_given(struct import *im, const struct message *m, struct str session)
{
    struct mark *lines = mark_of_line(im, m, session);

    if (lines->source != im->source_number)
        lines->given = 0;
    lines->source = im->source_number;
    lines->given++;
    return mark_number(im, lines);
}

/* Appends the ids in `replaces` to `kept`, without those of lines of the session that only the
 * history has. Returns whether there are any of those. */
static bool keep_own_ids(struct import *im, const struct message *m, struct str session,
                         struct buf *kept)
{
    struct json_iter it = json_iter(m->field[FIELD_REPLACES]);
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool some = false;

    while (!it.object && json_next(&it)) {
        struct str id = json_text(it.value, &scratch);
        const struct mark *mark = known_find(&im->marks, known_key(session, id, MARK_SESSION_ID));

        if (mark && mark->source != im->source_number)
            some = true;
        else
            import_add_id(kept, id);
    }
    buf_release(&scratch);
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

/* Stores a new line. `lines` is the index of the mark of lines that are equal to it. */
static int give_line(struct import *im, const struct message *m, struct session *s, size_t lines,
                     struct err *e)
{
    struct pending p = {.mark = lines,
                        .nth = mark_at(im, lines)->given,
                        .session = (size_t)(s - im->sessions),
                        .is_title = message_is_title(m)};

    s->lines++;
    raise_most(mark_at(im, lines), p.nth);
    enter_line(im, m, -1);
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
    if (!valid && !s->renamed) {
        json_add_string(&quoted, name);
        warn(im, "%s cannot be the name of a session: it is imported as '%.*s'", buf_c(&quoted),
             (int)s->name.n, s->name.p);
    }
    s->renamed = !valid;
    buf_release(&own);
    buf_release(&quoted);
    return s;
}

int import_give_line(struct source *source, const struct message *m, struct err *e)
{
    struct import *im = source->import;
    struct changed c = {BUF_INIT(BUF_LINE + 1), MESSAGE_INIT};
    struct session *s;
    uint64_t id;
    size_t lines;
    bool has;
    int result = 0;

    report_message(source);
    if (begin_tally(im, e) < 0)
        return -1;
    s = choose_session(im, m->session_id);
    id = known_key(s->name, m->id, MARK_SESSION_ID);
    lines = count_given(im, m, s->name);
    has = mark_at(im, lines)->given <= mark_at(im, lines)->most;
    if (!has)
        m = alter_line(im, m, s, &c);
    if (m) {
        s->given++;
        /* If another line has the same id, that line does not belong to the file. */
        if (has || !known_find(&im->marks, id))
            mark_of(im, id)->source = im->source_number;
        count_of(im)->known += has && !message_is_title(m);
        if (!has)
            result = give_line(im, m, s, lines, e);
    } else {
        import_bad(source, "longer than 64 MiB");
    }
    message_release(&c.m);
    buf_release(&c.line);
    return result;
}

/* ---- messages of other programs ---- */

/* Appends an id that no other imported message has; for a record that changed, none that was erased
 * either. */
static void add_id(const struct import *im, struct str origin, bool changed, struct buf *id)
{
    struct buf seed = BUF_INIT(BUF_LINE);
    struct str parts = origin, session = str_cut(&parts, '/');
    int64_t ms = im->source->said > 0 ? im->source->said / 1000 : 0;

    buf_add_str(&seed, origin);
    do {
        uint64_t hash = hash_fnv(buf_str(&seed));

        buf_clear(id);
        buf_addf(id, "%" PRId64 "-%08" PRIx32, ms, (uint32_t)hash);
        buf_add_byte(&seed, '+');
    } while (hash_map_find(&im->ids, buf_str(id)) ||
             (changed && is_part_erased(im, session, buf_str(id))));
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

/* A fork repeats records of another session: its lines name those that they copy. Either its script
 * says which record one is, or they have the same ids, or the session begins with the same texts.
 * Returns whether the message is a copy: it has no usage, which counts once. */
static bool set_forked(struct import *im, struct draft *d, const struct import_message *m)
{
    struct str parts = buf_str(&m->origin), rest = str_cut(&parts, '/'),
               format = str_cut(&rest, ':');
    struct str there = buf_str(&m->copy_of), session = str_cut(&there, '/');
    const struct mark *mark = NULL;

    if (m->copy_of.len > 0)
        mark = known_find(&im->marks, known_key(session, there, MARK_PART));
    else if (im->source->copies)
        mark = begin_with(im, buf_str(&m->session), m->role, buf_str(&m->text));
    else if (im->source->unique)
        mark = known_find(&im->marks, known_key(format, str_cut(&parts, '+'), MARK_RECORD));
    im->beginning = mark && mark->line == 0 ? mark->key : 0;
    if (mark && mark->line > 0)
        draft_set_text(d, FIELD_FORKED_FROM, im->ids.entries[mark->line - 1].key);
    return (mark && mark->line > 0) || m->copy_of.len > 0;
}

/* A record that has changed since an import, as its line was. */
struct earlier {
    struct buf line;
    struct message m; /* borrows from it */
};

/* Copies the line with this number, if it waits or is in the history. */
static bool find_line(const struct import *im, size_t number, struct earlier *was)
{
    off_t at = im->imported[number - 1].at;
    struct message m = MESSAGE_INIT;
    struct scan scan;

    for (size_t i = 0, next = 0; at < 0 && i < im->pending_count; next += im->pending[i++].n)
        if (im->pending[i].line == number)
            buf_set(&was->line, (struct str){im->waiting.data + next, im->pending[i].n - 1});
    if (at >= 0 && scan_open(&scan, im->history->dir_fd, im->history->path, NULL) == 0) {
        scan_from(&scan, at);
        if (scan_message(&scan, &m, NULL, NULL) > 0)
            buf_set(&was->line, m.line);
        scan_close(&scan);
    }
    message_release(&m);
    return was->line.len > 0 && message_parse(&was->m, buf_str(&was->line)) &&
           str_eq(was->m.id, im->ids.entries[number - 1].key);
}

/* Returns the version that the line of a message gets. */
static uint32_t version_of_given(const struct import_message *m)
{
    struct buf calls = BUF_INIT(BUF_LINE + 2);
    uint32_t version;

    if (m->calls.len > 0)
        buf_addf(&calls, "[%s]", buf_c(&m->calls));
    version = version_of(buf_str(&m->text), buf_str(&calls));
    buf_release(&calls);
    return version;
}

/* Returns whether a record whose parts are known, the first one with this mark, says something else
 * than before. A version that the history has had is no change: a file may have several, and they
 * stay. */
static bool find_changed(const struct import *im, const struct import_message *m,
                         const struct mark *part, struct earlier *was)
{
    uint32_t version = version_of_given(m);
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool changed;

    changed = m->role != ROLE_OTHER && !m->text.overflow && !m->calls.overflow &&
              im->imported[part->line - 1].version != version &&
              !known_find(&im->marks, version_key(part, version)) &&
              find_line(im, part->line, was) && was->m.role == m->role &&
              str_eq(message_text(&was->m, FIELD_ORIGIN, &scratch), buf_str(&m->origin));
    buf_release(&scratch);
    return changed;
}

/* Lets the message replace an earlier line of its record, whose tokens count no more than once. */
static void replace_earlier(struct import_message *m, const struct earlier *was)
{
    struct usage used = {0};

    usage_read_members(&used, was->m.field[FIELD_USAGE]);
    import_count_once(&m->usage, &used);
    import_add_id(&m->replaces, was->m.id);
}

static void fill_draft(struct import *im, struct draft *d, const struct import_message *m,
                       const struct earlier *was, struct str id)
{
    struct str forked = was ? was->m.field[FIELD_FORKED_FROM] : STR_NONE;
    struct buf text = BUF_INIT(BUF_LINE);
    bool copy = false;

    im->beginning = 0;
    if (m->role == ROLE_OTHER)
        titles_draft(titles_of(im, buf_str(&m->session)), buf_str(&m->text), d);
    else
        draft_message(d, m->role, buf_str(&m->text));
    draft_set_text(d, FIELD_ID, id);
    draft_set_text(d, FIELD_SESSION_ID, buf_str(&m->session));
    time_add_iso(&text, im->source->said);
    draft_set_text(d, FIELD_TIMESTAMP, buf_str(&text));
    if (m->images > 0)
        draft_set_int(d, FIELD_IMAGES, m->images);
    set_array(d, FIELD_REPLACES, &m->replaces);
    set_array(d, FIELD_TOOL_CALLS, &m->calls);
    set_optional(d, FIELD_TOOL_CALL_ID, &m->call_id);
    if (m->failed)
        draft_set(d, FIELD_FAILED, STR("true"));
    if (m->role != ROLE_OTHER) {
        copy = was ? forked.p != NULL : set_forked(im, d, m);
        if (forked.p)
            draft_set(d, FIELD_FORKED_FROM, forked);
        set_optional(d, FIELD_CWD, &im->source->cwd);
        set_optional(d, FIELD_GIT_BRANCH, &im->source->branch);
    }
    draft_set_text(d, FIELD_ORIGIN, buf_str(&m->origin));
    set_optional(d, FIELD_MODEL, &m->model);
    set_optional(d, FIELD_PROVIDER, &m->provider);
    set_optional(d, FIELD_RESPONSE, &m->response);
    if (!copy)
        draft_set_usage(d, &m->usage, STR_NONE);
    set_optional(d, FIELD_FINISH_REASON, &m->finish);
    set_array(d, FIELD_CITATIONS, &m->citations);
    buf_release(&text);
}

/* Stores the line of a new message. */
static int give_message(struct import *im, const struct import_message *m, bool is_new,
                        struct str id, struct str line, struct err *e)
{
    struct pending p = {.session = NONE, .is_title = m->role == ROLE_OTHER};
    struct imported as = {.source = im->source_number, .at = -1};
    struct message parsed = MESSAGE_INIT;
    struct thread *t = p.is_title ? NULL : thread_of(im, buf_str(&m->session));

    if (!p.is_title) {
        as.session = hash64(buf_str(&m->session), 0);
        as.version = version_of_given(m);
    }
    p.mark = enter_origin(im, id, buf_str(&m->origin), &as);
    p.nth = mark_at(im, p.mark)->most;
    p.line = *hash_map_find(&im->ids, id) + 1;
    if (m->replaces.len > 0)
        enter_replaced(im, json_get(line, field_name(FIELD_REPLACES)), id, as.session);
    if (t && t->first == 0 && is_new)
        t->first = im->pending_count + 1;
    if (im->beginning != 0)
        mark_of(im, im->beginning)->line = (uint32_t)p.line;
    im->beginning = 0;
    if (p.is_title || im->has_tally || im->options.dry_run) {
        (void)message_parse(&parsed, line);
        if (p.is_title)
            titles_add(titles_of(im, parsed.session_id), &parsed);
        raise_most(mark_of_line(im, &parsed, parsed.session_id), 1);
        message_release(&parsed);
    }
    return add_pending(im, line, p, e);
}

/* Adds the line of a message once more, without its usage: it names the line that it copies, and
 * replaces it. */
static void add_copy(struct buf *line, const struct message *m, struct str id,
                     const struct buf *replaces)
{
    static const enum field other[] = {FIELD_ID, FIELD_REPLACES, FIELD_FORKED_FROM, FIELD_USAGE};
    struct buf of = BUF_INIT(BUF_SMALL);

    json_add_string(&of, m->id);
    buf_addf(line, "{\"%s\":", field_name(FIELD_ID));
    json_add_string(line, id);
    for (struct json_iter it = json_iter(m->line); json_next(&it);) {
        bool is_other = false;

        for (size_t i = 0; i < sizeof other / sizeof *other; i++)
            is_other = is_other || is_field(it.key, other[i]);
        if (!is_other)
            add_member(line, it.key, it.value);
    }
    buf_addf(line, ",\"%s\":[%s%s%s],\"%s\":%s}", field_name(FIELD_REPLACES), buf_c(&of),
             replaces->len > 0 ? "," : "", buf_c(replaces), field_name(FIELD_FORKED_FROM),
             buf_c(&of));
    buf_release(&of);
}

/* Stores the copy of the line with this number. */
static int store_copy(struct import *im, size_t number, struct str origin, struct str id,
                      struct str line, struct err *e)
{
    struct str parts = origin, session = str_cut(&parts, '/');
    struct pending p = {.session = NONE};
    struct imported as = {.session = hash64(session, 0),
                          .source = im->source_number,
                          .version = im->imported[number - 1].version,
                          .at = -1};

    p.mark = enter_origin(im, id, origin, &as);
    p.nth = mark_at(im, p.mark)->most;
    p.line = *hash_map_find(&im->ids, id) + 1;
    enter_replaced(im, json_get(line, field_name(FIELD_REPLACES)), id, as.session);
    return add_pending(im, line, p, e);
}

/* Stores a message that is new, or a changed record, which had that line. */
static int give_new(struct import *im, struct source *s, const struct import_message *m,
                    const struct earlier *was, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE + 1), id = BUF_INIT(BUF_SMALL);
    struct err why = ERR_INIT;
    struct draft d;
    bool overflow =
        m->text.overflow || m->calls.overflow || m->citations.overflow || m->origin.overflow;
    int result = 0;

    if (m->time != IMPORT_NO_TIME)
        s->said = m->time;
    draft_init(&d);
    add_id(im, buf_str(&m->origin), was != NULL, &id);
    fill_draft(im, &d, m, was, buf_str(&id));
    /* A session that was moved away and came back has lines whose origins are among the erased. */
    if (!was && is_erased(im, buf_str(&m->origin), buf_str(&id)))
        count_of(im)->known += m->role != ROLE_OTHER;
    else if (overflow || draft_storable(&d, &why) < 0 || draft_format(&d, &line, &why) < 0)
        import_bad(s, overflow ? "longer than 64 MiB" : err_text(&why));
    else
        result = give_message(im, m, !was, buf_str(&id), str_trim(buf_str(&line)), e);
    draft_release(&d);
    buf_release(&line);
    buf_release(&id);
    err_release(&why);
    return result;
}

int import_give(struct source *s, struct import_message *m, struct err *e)
{
    struct import *im = import_is_empty(m) ? NULL : taker_of(s, buf_str(&m->session));
    struct earlier was = {BUF_INIT(BUF_LINE), MESSAGE_INIT};
    const struct mark *part;
    int result = 0;

    s->yielded = s->yielded || !import_is_empty(m);
    if (!im || hash_map_find(&s->import->postponed, buf_str(&m->session)))
        return 0;
    report_message(s);
    hash_map_add(&s->import->given, buf_str(&m->session));
    part = find_origin(im, buf_str(&m->origin));
    if (!part) {
        result = give_new(im, s, m, NULL, e);
    } else if (find_changed(im, m, part, &was)) {
        replace_earlier(m, &was);
        result = give_new(im, s, m, &was, e);
    } else {
        count_of(im)->known += m->role != ROLE_OTHER;
        if (m->role != ROLE_OTHER)
            enter_common(im, buf_str(&m->session),
                         str_skip(buf_str(&m->origin), m->session.len + 1));
    }
    message_release(&was.m);
    buf_release(&was.line);
    return result;
}

size_t import_replaced_by(const struct source *s, struct str session, struct str part)
{
    const struct import *im = taker_of(s, session);
    size_t line = im ? known_line(im, session, part) : 0;

    return line > 0 ? im->imported[line - 1].by : 0;
}

int import_give_again(struct source *s, struct str session, struct str part,
                      const struct buf *replaces, struct err *e)
{
    struct import *im = taker_of(s, session);
    struct earlier was = {BUF_INIT(BUF_LINE), MESSAGE_INIT};
    struct buf line = BUF_INIT(BUF_LINE), id = BUF_INIT(BUF_SMALL), origin = BUF_INIT(BUF_LINE);
    size_t number = im ? known_line(im, session, part) : 0;
    int result = 0;

    if (number > 0 && !is_part_erased(im, session, part) && find_line(im, number, &was)) {
        (void)json_decode(was.m.field[FIELD_ORIGIN], &origin);
        add_id(im, buf_str(&origin), true, &id);
        add_copy(&line, &was.m, buf_str(&id), replaces);
        if (!line.overflow)
            result = store_copy(im, number, buf_str(&origin), buf_str(&id), buf_str(&line), e) < 0
                         ? -1
                         : 1;
    }
    message_release(&was.m);
    buf_release(&was.line);
    buf_release(&line);
    buf_release(&id);
    buf_release(&origin);
    return result;
}

void import_postpone(struct source *s, struct str session)
{
    hash_map_add(&s->import->postponed, session);
}

bool import_gave(const struct source *s, struct str session)
{
    return hash_map_find(&s->import->given, session) != NULL;
}

int import_give_title(struct source *s, struct str session, struct str title, struct err *e)
{
    struct buf line = BUF_INIT(BUF_LINE), part = BUF_INIT(BUF_SMALL);
    struct import_message m;
    struct str text;
    int result = 0;

    vis_add_line(&line, title, false);
    text = utf8_first(str_trim(buf_str(&line)), MESSAGE_TITLE);
    if (text.n > 0) {
        import_message_init(&m);
        import_message_clear(&m, ROLE_OTHER);
        buf_add_str(&m.session, session);
        buf_add_str(&m.text, text);
        buf_addf(&part, "title-%016" PRIx64, hash_fnv(text));
        import_set_part(&m, buf_str(&part));
        /* Another title that counts more may be in the part that was not read. */
        s->restarts = s->partial && !import_knows(s, session, buf_str(&part), NULL);
        result = s->restarts ? -1 : import_give(s, &m, e);
        import_message_release(&m);
    }
    buf_release(&line);
    buf_release(&part);
    return result;
}

bool import_is_scan(const struct source *s)
{
    return s->import->options.foreign;
}

size_t import_knows(const struct source *s, struct str session, struct str part, struct buf *id)
{
    const struct import *im = taker_of(s, session);
    size_t line = im ? known_line(im, session, part) : 0;

    if (line > 0 && id)
        buf_add_str(id, im->ids.entries[line - 1].key);
    return line;
}

/* ---- the import ---- */

struct import *import_new(struct history *h, const struct import_options *o, uint64_t *bad_lines,
                          struct err *e)
{
    struct import *im = mem_zalloc(sizeof *im);

    im->marks = (struct known)KNOWN_INIT(struct mark);
    im->history = h;
    im->options = *o;
    im->scan.fd = -1;
    buf_init(&im->waiting, SIZE_MAX);
    if (h && (read_history(im, e) < 0 || (!o->again && read_erased(im, e) < 0))) {
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

    s->import = im;
    s->subagents = im->options.subagents;
    s->copies = f->copies;
    s->waits = im->options.waits && s->is_file;
    s->said = s->time;
    im->takers_count = 0;
    begin_source(im, im, s, f->name);
    result = f->read(f, s, e);
    if (result < 0 && s->restarts) {
        s->partial = s->restarts = false;
        s->point->offset = 0;
        for (size_t i = 0; i < im->takers_count; i++)
            count_of(im->takers[i])->known = 0;
        result = source_seek(s, NULL) ? f->read(f, s, e) : -1;
    }
    if (result < 0 && e->kind == ERR_ABSENT)
        im->results_count--;
    for (size_t i = 0; i < im->takers_count; i++) {
        struct err *why = result < 0 ? NULL : e;

        if (end_source(im->takers[i], im->options.choose != NULL, why) < 0)
            result = -1;
    }
    return result;
}

int import_file(struct import *im, const char *path, const struct import_format *f,
                struct import_point *point, struct err *e)
{
    const struct import_format *found = f;
    struct source s;
    struct str head;
    int result;

    if (source_open(&s, path, e) < 0)
        return -1;
    s.point = point;
    result = source_head(&s, &head, e);
    if (result == 0 && str_starts(head, STR("PK\x03\x04"))) /* APPNOTE.TXT, 4.3.7 */
        result = err_set(e, ERR_FAILURE,
                         "cannot import '%s': it is a zip archive: unzip it and import its "
                         "conversations.json",
                         s.name);
    if (result == 0 && !f && head.n > 0)
        result = importers_recognise(im->options.importers, &s, head, &found, e);
    if (result == 0 && found == &import_lines && im->options.foreign)
        result = 1;
    else if (result == 0 && found)
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

bool import_lost(const struct import *im)
{
    return im->lost;
}

void import_free(struct import *im)
{
    if (!im)
        return;
    scan_close(&im->scan);
    free(im->pending);
    buf_release(&im->waiting);
    free(im->results);
    known_release(&im->marks);
    for (size_t i = 0; i < im->titled.count; i++)
        titles_release(&im->titles[i]);
    hash_map_release(&im->titled);
    free(im->titles);
    free(im->takers);
    hash_map_release(&im->ids);
    hash_map_release(&im->postponed);
    hash_map_release(&im->begun);
    free(im->beginnings);
    free(im->imported);
    free(im->threads);
    free(im->sessions);
    hash_map_release(&im->session_names);
    free(im);
}
