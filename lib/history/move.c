#include "chathist/history/move.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chathist/base/checksum.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"
#include "chathist/history/deletions.h"
#include "chathist/history/message.h"
#include "chathist/history/rewrite.h"
#include "chathist/history/scan.h"
#include "chathist/history/store.h"

/* Lines are stored when this many bytes wait. */
#define BATCH ((size_t)4 << 20)

struct move {
    struct history *from, *to;
    const struct hash_map *sessions;
    struct message message;
    struct buf key, scratch;
    struct hash_map erased; /* lines erased from the other history: ids after their sessions */
    struct hash_map left;   /* the same of lines that were moved from there */
    struct hash_map left_ids, all_ids; /* the ids of `left`, and of both, without their sessions */
    struct buf line;                   /* the line as the other history gets it */
    struct hash_map lines;             /* hashes of these lines -> counts */
    /* Of equal lines: how many the other history had or has got, how many of these were met in the
     * present pass through this history, and how many are to be erased. */
    struct line_count {
        size_t there, met, moved;
    } * counts;
    uint64_t moved;   /* lines */
    bool ended;       /* all lines of this history were met */
    struct scan scan; /* the scan of this history */
    /* The last scan of the other history. It stays open, so that no new file gets its inode. */
    struct scan other;
    off_t seen; /* the end of the last line there that was counted or stored */
};

static struct line_count *count_of_line(struct move *m, struct str line)
{
    uint64_t hash = hash64(line, 0);
    struct str key = {(const char *)&hash, sizeof hash};
    size_t n = hash_map_number(&m->lines, &key);

    m->counts = hash_map_values(&m->lines, m->counts, sizeof *m->counts);
    return &m->counts[n];
}

static bool is_moved(const struct move *m)
{
    return hash_map_find(m->sessions, m->message.session_id) != NULL;
}

static void set_line_key(struct move *m, struct str session, struct str id)
{
    buf_set(&m->key, session);
    buf_add_byte(&m->key, '/');
    buf_add_str(&m->key, id);
}

/* Reads the erased ids of the other history. */
static int read_other_erased(struct move *m, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX), session = BUF_INIT(BUF_LINE), id = BUF_INIT(BUF_LINE);
    int result = deletions_read(m->to, &text, e);
    struct str rest = buf_str(&text), line;

    while (deletions_next(&rest, &session, &id, &line)) {
        bool moved = json_is_true(json_get(line, "moved"));

        set_line_key(m, buf_str(&session), buf_str(&id));
        hash_map_add(moved ? &m->left : &m->erased, buf_str(&m->key));
        hash_map_add(&m->all_ids, buf_str(&id));
        if (moved)
            hash_map_add(&m->left_ids, buf_str(&id));
    }
    buf_release(&text);
    buf_release(&session);
    buf_release(&id);
    return result;
}

/* ---- lines that come back ----
 *
 * An id that is in FILE.deleted stays erased, in each copy of that history. So a line that was moved
 * from there gets another id when it comes back. The new id follows from the old one alone, so that
 * a move that was interrupted finds the lines that it has stored, and lines of other sessions, which
 * are copies of the line, can name it. */

/* Adds a string, or the new id if it is the id of a line that comes back: a line of the session, or
 * with `any` of any session. */
static void add_id_or_new(struct move *m, struct str string, bool any)
{
    size_t begin;

    buf_clear(&m->scratch);
    (void)json_decode(string, &m->scratch);
    set_line_key(m, m->message.session_id, buf_str(&m->scratch));
    if (any ? !hash_map_find(&m->left_ids, buf_str(&m->scratch))
            : !hash_map_find(&m->left, buf_str(&m->key))) {
        buf_add_str(&m->line, string);
        return;
    }
    for (begin = 0; begin < m->scratch.len && m->scratch.data[begin] != '-'; begin++)
        continue;
    do {
        uint32_t hash = (uint32_t)hash_fnv(buf_str(&m->scratch));

        buf_truncate(&m->scratch, begin);
        buf_addf(&m->scratch, "-%08" PRIx32, hash);
    } while (hash_map_find(&m->all_ids, buf_str(&m->scratch)));
    json_add_string(&m->line, buf_str(&m->scratch));
}

/* Adds the value of a member that has ids: a string, or an array of them. */
static void add_ids(struct move *m, struct str value, bool any)
{
    struct json_iter it = json_iter(value);

    if (json_type(value) == JSON_STRING) {
        add_id_or_new(m, value, any);
        return;
    }
    buf_add_byte(&m->line, '[');
    for (bool more = json_next(&it); more; more = json_next(&it)) {
        if (m->line.data[m->line.len - 1] != '[')
            buf_add_byte(&m->line, ',');
        if (json_type(it.value) == JSON_STRING)
            add_id_or_new(m, it.value, any);
        else
            buf_add_str(&m->line, it.value);
    }
    buf_add_byte(&m->line, ']');
}

/* Returns the line of the message as the other history gets it. */
static struct str moved_line(struct move *m)
{
    static const enum field with_ids[] = {FIELD_ID, FIELD_REPLY_TO, FIELD_REPLACES,
                                          FIELD_FORKED_FROM};
    struct json_iter it = json_iter(m->message.line);

    if (m->left.count == 0)
        return m->message.line;
    buf_set(&m->line, STR("{"));
    while (json_next(&it)) {
        bool ids = false;

        for (size_t i = 0; i < sizeof with_ids / sizeof *with_ids && !ids; i++)
            ids = json_key_is(it.key, field_name(with_ids[i]));
        buf_addf(&m->line, "%s\"", m->line.len > 1 ? "," : "");
        buf_add_str(&m->line, it.key);
        buf_add_c(&m->line, "\":");
        if (ids && (json_type(it.value) == JSON_STRING || json_type(it.value) == JSON_ARRAY))
            add_ids(m, it.value, json_key_is(it.key, field_name(FIELD_FORKED_FROM)));
        else
            buf_add_str(&m->line, it.value);
    }
    buf_add_byte(&m->line, '}');
    return buf_str(&m->line);
}

/* ---- storing ---- */

/* Counts the lines that the other history has, from m->seen on. Its lock is held: otherwise the
 * last line may not be finished, or be taken back. */
static int read_other(struct move *m, struct err *e)
{
    int got;

    scan_close(&m->other);
    if (scan_open(&m->other, m->to->dir_fd, m->to->path, e) < 0)
        return -1;
    if (m->seen > m->other.size)
        m->seen = 0;
    for (size_t i = 0; m->seen == 0 && i < m->lines.count; i++)
        m->counts[i].there = 0;
    m->other.work = m->to->work;
    m->other.task = "read";
    scan_from(&m->other, m->seen);
    while ((got = scan_message(&m->other, &m->message, NULL, e)) > 0)
        if (is_moved(m))
            count_of_line(m, m->message.line)->there++;
    return got;
}

/* Adds the next lines for the other history, under its lock. */
static int make_moved_lines(void *arg, off_t at, struct buf *lines, struct err *e)
{
    struct move *m = arg;
    int got = 1;
    /* Another program may do that between two batches. */
    bool replaced = !file_is_named(m->to->dir_fd, m->to->path, m->other.fd);

    m->seen = replaced ? 0 : m->seen;
    if ((replaced || at != m->seen) && read_other(m, e) < 0)
        return -1;
    while (lines->len < BATCH && (got = scan_message(&m->scan, &m->message, NULL, e)) > 0) {
        struct line_count *c;
        struct str line;

        if (!is_moved(m))
            continue;
        set_line_key(m, m->message.session_id, m->message.id);
        if (hash_map_find(&m->erased, buf_str(&m->key)))
            continue;
        line = moved_line(m);
        /* No program would read a line that its new ids make too long. */
        if (line.n > BUF_LINE)
            continue;
        c = count_of_line(m, line);
        c->moved++;
        m->moved++;
        if (c->there < c->moved) {
            c->there++;
            buf_add_str(lines, line);
            buf_add_byte(lines, '\n');
        }
    }
    m->ended = got == 0;
    m->seen = at + (off_t)lines->len;
    return got < 0 ? -1 : 0;
}

/* ---- the rewrite ---- */

static void begin_moving(void *arg)
{
    struct move *m = arg;

    for (size_t i = 0; i < m->lines.count; i++)
        m->counts[i].met = 0;
}

static void erase_line(void *arg, struct rewrite *r, const struct line *l)
{
    struct move *m = arg;
    struct line_count *c = NULL;

    if (!l->too_long && message_parse(&m->message, l->text) && is_moved(m))
        c = count_of_line(m, moved_line(m));
    if (c && ++c->met <= c->moved)
        rewrite_erase(r, &m->message, true);
    else
        rewrite_keep(r, l);
}

int history_move(struct history *from, struct history *to, const struct hash_map *sessions,
                 uint64_t *moved, struct err *e)
{
    struct move m = {.from = from,
                     .to = to,
                     .sessions = sessions,
                     .message = MESSAGE_INIT,
                     .key = BUF_INIT(SIZE_MAX),
                     .scratch = BUF_INIT(BUF_LINE),
                     .line = BUF_INIT(SIZE_MAX),
                     .other = {.fd = -1}};
    struct rewriter by = {.arg = &m, .begin = begin_moving, .line = erase_line};
    bool sync = to->sync;
    int result = -1;

    *moved = 0;
    /* Otherwise both would keep the lines, and a later move the other way would double them. */
    if (rewrite_check(from, e) < 0)
        return -1;
    /* The lines are on the disk before they are erased here. */
    to->sync = true;
    if (scan_open(&m.scan, from->dir_fd, from->path, e) < 0) {
        to->sync = sync;
        return -1;
    }
    if (read_other_erased(&m, e) == 0) {
        do
            result = store_append_lines(to, make_moved_lines, &m, e);
        while (result == 0 && !m.ended);
    }
    scan_close(&m.scan);
    scan_close(&m.other);
    to->sync = sync;
    if (result == 0 && rewrite_run(from, &by, e) < 0)
        result = -1;
    *moved = m.moved;
    message_release(&m.message);
    buf_release(&m.key);
    buf_release(&m.scratch);
    buf_release(&m.line);
    hash_map_release(&m.erased);
    hash_map_release(&m.left);
    hash_map_release(&m.left_ids);
    hash_map_release(&m.all_ids);
    hash_map_release(&m.lines);
    free(m.counts);
    return result;
}
