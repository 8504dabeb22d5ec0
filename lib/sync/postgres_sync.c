#include "chathist/sync/postgres.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/file_replace.h"
#include "chathist/base/id.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "sync/postgres.h"

/* A batch is a transaction. It has at most this many lines, and ends when it has this many
 * bytes. */
#define BATCH_LINES 10000
#define BATCH_BYTES ((size_t)8 << 20)
/* Longer ids do not fit into an index of PostgreSQL. */
#define ID_MAX 1000
/* Rows that are known are fetched again if fewer than this lie between two that are not. */
#define GAP_MAX 20
/* How long another server is looked for after one has ended, how often it is tried, and how many
 * servers may end during a run. */
#define FAILOVER_MS 60000
#define FAILOVER_PAUSE_MS 500
#define FAILOVERS_MAX 5
/* PostgreSQL counts its microseconds from 2000-01-01. */
#define EPOCH_2000 (INT64_C(946684800) * TIME_SECOND)

/* A row of the table of cursors. */
struct cursor {
    uint64_t pushed, pushed_check;   /* lines of the history that the database has; merge_prefix */
    uint64_t deleted, deleted_check; /* deletions that the database has */
    int64_t pulled;                  /* rows up to this number are in the history */
    uint64_t seen, seen_check;       /* lines that the history had after the last pull */
};

/* A row of the database: its number, and the digest of its line. */
struct row {
    int64_t number;
    uint64_t digest;
};
struct rows {
    struct row *at;
    size_t count, cap;
};

struct run {
    struct sync_job *job;
    struct merge *merge;
    struct pg *pg;
    struct buf copy; /* the id of this copy */
    struct cursor cursor;
    struct cursor saved; /* what the database has */
    /* a batch */
    struct buf data; /* for COPY */
    size_t lines, deletions;
    uint64_t unanswered; /* new lines of a COMMIT, as long as its answer has not come */
    struct message message;
    struct buf line, decoded, folded;
    /* after a server has ended */
    int failovers;
    int64_t until; /* a time of time_ticks: for how long another server is looked for */
};

static struct str name_of(const struct run *r)
{
    return str_of(r->job->name);
}

static void show_rows_done(const struct run *r, const char *name, uint64_t done, uint64_t all)
{
    if (r->job->history->work && all > 0)
        r->job->history->work(&(struct task){name, "lines", done, all});
}

static void end_work(const struct run *r)
{
    if (r->job->history->work)
        r->job->history->work(NULL);
}

/* Runs a command that gives at most one number. */
static int read_number_row(void *arg, const struct str *value, struct err *e)
{
    (void)e;
    *(int64_t *)arg = pg_number(value[0]);
    return 0;
}

static int ask_number(struct run *r, const char *sql, const struct str *parameter, size_t count,
                      int64_t *n, struct err *e)
{
    return pg_query(r->pg, sql, parameter, count, read_number_row, n, e);
}

/* ---- sets of digests ---- */

static struct digests digests_of_rows(const struct rows *rows)
{
    struct digests d = {0};

    for (size_t i = 0; i < rows->count; i++)
        digests_add(&d, rows->at[i].digest);
    digests_sort(&d);
    return d;
}

static int add_numbered_row(void *arg, const struct str *value, struct err *e)
{
    struct rows *rows = arg;

    (void)e;
    rows->at = mem_grow(rows->at, &rows->cap, rows->count + 1, sizeof(*rows->at));
    rows->at[rows->count++] = (struct row){pg_number(value[0]), (uint64_t)pg_number(value[1])};
    return 0;
}

/* Runs `SELECT WHAT` about the rows of this history after `after` and up to `to`, in their order. */
static int query_between(struct run *r, const char *what, int64_t after, int64_t to, pg_row *row,
                         void *arg, struct err *e)
{
    struct buf a = BUF_INIT(BUF_SMALL), b = BUF_INIT(BUF_SMALL), sql = BUF_INIT(BUF_LINE);
    int result;

    pg_add_number(&a, after);
    pg_add_number(&b, to);
    buf_addf(&sql,
             "SELECT %s WHERE owner = current_user AND history = $1 AND number > $2::bigint"
             " AND number <= $3::bigint ORDER BY number",
             what);
    result = pg_query(r->pg, buf_c(&sql), (struct str[]){name_of(r), buf_str(&a), buf_str(&b)}, 3,
                      row, arg, e);
    buf_release(&a);
    buf_release(&b);
    buf_release(&sql);
    return result;
}

/* Lists the rows after a number, in their order. */
static int list_rows(struct run *r, int64_t after, struct rows *rows, struct err *e)
{
    rows->count = 0;
    return query_between(r, "number, mark FROM chathist.messages", after, INT64_MAX,
                         add_numbered_row, rows, e);
}

/* ---- the cursor ---- */

static int read_cursor_row(void *arg, const struct str *value, struct err *e)
{
    struct cursor *c = arg;

    (void)e;
    c->pushed = (uint64_t)pg_number(value[0]);
    c->pushed_check = (uint64_t)pg_number(value[1]);
    c->deleted = (uint64_t)pg_number(value[2]);
    c->pulled = pg_number(value[3]);
    c->seen = (uint64_t)pg_number(value[4]);
    c->seen_check = (uint64_t)pg_number(value[5]);
    c->deleted_check = (uint64_t)pg_number(value[6]);
    return 0;
}

static int cursor_load(struct run *r, struct err *e)
{
    int result;

    r->cursor = (struct cursor){0};
    result =
        pg_query(r->pg,
                 "SELECT pushed, pushed_check, deleted, pulled, seen, seen_check, deleted_check"
                 " FROM chathist.cursors WHERE owner = current_user AND history = $1"
                 " AND copy = $2",
                 (struct str[]){name_of(r), buf_str(&r->copy)}, 2, read_cursor_row, &r->cursor, e);

    if (result == 0)
        r->saved = r->cursor;
    return result;
}

static int cursor_save(struct run *r, struct err *e)
{
    const struct cursor *c = &r->cursor;
    struct buf numbers = BUF_INIT(BUF_SMALL);
    int result;

    if (memcmp(c, &r->saved, sizeof(*c)) == 0)
        return 0;
    buf_addf(&numbers,
             "{%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
             "}",
             (int64_t)c->pushed, (int64_t)c->pushed_check, (int64_t)c->deleted, c->pulled,
             (int64_t)c->seen, (int64_t)c->seen_check, (int64_t)c->deleted_check);
    result = pg_query(
        r->pg,
        "INSERT INTO chathist.cursors (history, copy, pushed, pushed_check, deleted,"
        " pulled, seen, seen_check, deleted_check)"
        " SELECT $1, $2, n[1], n[2], n[3], n[4], n[5], n[6], n[7]"
        " FROM (SELECT $3::bigint[]) AS v (n)"
        " ON CONFLICT (owner, history, copy) DO UPDATE SET (pushed, pushed_check, deleted, pulled,"
        " seen, seen_check, deleted_check) = (excluded.pushed, excluded.pushed_check,"
        " excluded.deleted, excluded.pulled, excluded.seen, excluded.seen_check,"
        " excluded.deleted_check)",
        (struct str[]){name_of(r), buf_str(&r->copy), buf_str(&numbers)}, 3, NULL, NULL, e);
    if (result == 0)
        r->saved = *c;
    buf_release(&numbers);
    return result;
}

/* ---- push: a batch ---- */

static const char BATCH_TABLE[] =
    "CREATE TEMP TABLE chathist_batch (n integer, session text COLLATE \"C\","
    " id text COLLATE \"C\", mark bigint, role text, stamp timestamptz, line text,"
    " folded text COLLATE \"C\") ON COMMIT DELETE ROWS;"
    /* The table has no statistics. Each of its few rows is to be found by an index. */
    "SET enable_hashjoin = off; SET enable_mergejoin = off";

/* The head of COPY's binary format, without flags and extension:
 * https://www.postgresql.org/docs/current/sql-copy.html */
static const char COPY_HEAD[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
#define COPY_FIELDS 8

static void add_be(struct buf *out, uint64_t n, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        buf_add_byte(out, (char)(n >> 8 * i & 0xff));
}

static void add_number_field(struct buf *out, uint64_t n, int bytes)
{
    add_be(out, (uint64_t)bytes, 4);
    add_be(out, n, bytes);
}

/* Adds a text, or NULL for an absent one. */
static void add_text_field(struct buf *out, struct str text)
{
    add_be(out, text.p ? text.n : UINT32_MAX, 4);
    if (text.p)
        buf_add_str(out, text);
}

/* A text of PostgreSQL cannot hold NUL. */
static void without_nul(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] == '\0')
            text->data[i] = ' ';
}

static void add_folded_value(struct run *r, struct str string)
{
    struct str text = json_text(string, &r->decoded);

    utf8_add_folded(&r->folded, text.p ? text : string);
    buf_add_byte(&r->folded, '\n');
}

/* Sets r->folded to the texts that a search looks at. */
static void fold_message(struct run *r)
{
    const struct message *m = &r->message;
    struct json_iter calls = json_iter(m->field[FIELD_TOOL_CALLS]);
    struct buf unpacked = BUF_INIT(BUF_LINE);
    struct message_call call;
    struct str leaf;

    buf_clear(&r->folded);
    utf8_add_folded(&r->folded, message_content(m, &r->decoded));
    buf_add_byte(&r->folded, '\n');
    while (message_next_call(&calls, &call, &unpacked)) {
        add_folded_value(r, call.name);
        while (json_next_leaf(&call.args, &leaf))
            add_folded_value(r, leaf);
    }
    without_nul(&r->folded);
    buf_release(&unpacked);
}

static void begin_row(struct run *r)
{
    if (r->lines + r->deletions == 0)
        buf_add(&r->data, COPY_HEAD, sizeof(COPY_HEAD) - 1);
    add_be(&r->data, COPY_FIELDS, 2);
    add_number_field(&r->data, r->lines + r->deletions + 1, 4);
}

/* Adds the line in r->message. */
static void batch_line(struct run *r, uint64_t digest)
{
    const struct message *m = &r->message;
    struct buf role = BUF_INIT(BUF_LINE);
    int64_t stamp = 0;

    fold_message(r);
    buf_add_str(&role, m->role_text);
    without_nul(&role);
    /* Other times are refused by the merge. */
    (void)time_parse_iso(m->timestamp, &stamp);
    begin_row(r);
    add_text_field(&r->data, m->session_id);
    add_text_field(&r->data, m->id);
    add_number_field(&r->data, digest, 8);
    add_text_field(&r->data, buf_str(&role));
    add_number_field(&r->data, (uint64_t)(stamp - EPOCH_2000), 8);
    add_text_field(&r->data, m->line);
    add_text_field(&r->data, buf_str(&r->folded));
    r->lines++;
    buf_release(&role);
}

static void batch_deletion(struct run *r, struct str session, struct str id)
{
    begin_row(r);
    add_text_field(&r->data, session);
    add_text_field(&r->data, id);
    for (int i = 2; i < COPY_FIELDS - 1; i++)
        add_text_field(&r->data, STR_NONE);
    r->deletions++;
}

/* ---- push: a transaction ---- */

/* The next numbers of this role. Its row stays locked until the transaction ends. */
static const char TAKE_NUMBERS[] =
    "INSERT INTO chathist.owners AS o (last) VALUES ($1::bigint)"
    " ON CONFLICT (owner) DO UPDATE SET last = o.last + $1::bigint RETURNING o.last - $1::bigint";

/* A line is erased by overwriting all of its row but the number. The row then belongs to no
 * history.
 */
static const char DELETE_LINES[] =
    "WITH d AS (INSERT INTO chathist.deleted (history, session, id, number)"
    " SELECT $1, session, id, $2::bigint + n FROM pg_temp.chathist_batch WHERE line IS NULL"
    " ORDER BY n ON CONFLICT DO NOTHING RETURNING owner, history, session, id)"
    " UPDATE chathist.messages m SET history = '', session = '', id = '', digest = "
    "int8send(number),"
    " mark = 0, role = '', stamp = 'epoch', line = '', folded = ''"
    " FROM d WHERE m.owner = d.owner AND m.history = d.history"
    " AND m.session = d.session AND m.id = d.id";

static const char INSERT_LINES[] =
    "WITH a AS (INSERT INTO chathist.messages"
    " (history, session, id, digest, mark, number, role, stamp, line, folded)"
    " SELECT $1, session, id, sha256(convert_to(line, 'UTF8')), mark, $2::bigint + n, role, stamp,"
    " line, folded FROM pg_temp.chathist_batch b WHERE line IS NOT NULL AND NOT EXISTS"
    " (SELECT FROM chathist.deleted d WHERE d.owner = current_user AND d.history = $1"
    " AND d.session = b.session AND d.id = b.id OFFSET 0)"
    " ORDER BY n ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM a";

static const char FIND_CONFLICTS[] =
    "SELECT b.line, m.line FROM pg_temp.chathist_batch b"
    /* A new database has no statistics. OFFSET 0 keeps the planner from a join that compares each
     * row of the batch with each of the history, and only the primary key gives this order without
     * a sort. */
    " CROSS JOIN LATERAL (SELECT line FROM chathist.messages WHERE owner = current_user"
    " AND history = $1 AND session = b.session AND id = b.id"
    " ORDER BY digest OFFSET 0) m"
    " WHERE m.line <> b.line"
    " ORDER BY b.n LIMIT 10";

static int report_conflict(void *arg, const struct str *value, struct err *e)
{
    const struct run *r = arg;

    (void)e;
    merge_report_conflict(r->merge, value[0], value[1]);
    return 0;
}

/* Counts the lines of a COMMIT that was done. */
static void count_answered(struct run *r)
{
    merge_counts(r->merge)->sent += r->unanswered;
    r->unanswered = 0;
}

/* Stores the batch and the cursor in one transaction. */
static int store_batch(struct run *r, struct err *e)
{
    struct buf count = BUF_INIT(BUF_SMALL), first = BUF_INIT(BUF_SMALL);
    struct str parameters[2] = {name_of(r), STR_NONE};
    int64_t number = 0, added = 0;
    int result;

    add_be(&r->data, UINT16_MAX, 2);
    if (r->data.overflow)
        return err_set(e, ERR_FAILURE, "the lines are too long for one transaction");
    pg_add_number(&count, (int64_t)(r->lines + r->deletions));
    result = pg_begin(r->pg, e);
    if (result == 0)
        result = ask_number(r, TAKE_NUMBERS, &(struct str){count.data, count.len}, 1, &number, e);
    pg_add_number(&first, number);
    parameters[1] = buf_str(&first);
    if (result == 0)
        result = pg_copy(r->pg, "COPY pg_temp.chathist_batch FROM STDIN (FORMAT binary)",
                         buf_str(&r->data), e);
    if (result == 0 && r->deletions > 0)
        result = pg_query(r->pg, DELETE_LINES, parameters, 2, NULL, NULL, e);
    if (result == 0 && r->lines > 0)
        result = ask_number(r, INSERT_LINES, parameters, 2, &added, e);
    /* A pull reports them, too. */
    if (result == 0 && r->lines > 0 && !r->job->pull)
        result = pg_query(r->pg, FIND_CONFLICTS, parameters, 1, report_conflict, r, e);
    if (result == 0)
        result = cursor_save(r, e);
    if (result == 0) {
        r->unanswered = (uint64_t)added;
        result = pg_commit(r->pg, e);
    }
    if (result == 0)
        count_answered(r);
    buf_clear(&r->data);
    r->lines = r->deletions = 0;
    buf_release(&count);
    buf_release(&first);
    return result;
}

/* ---- push ---- */

/* The database has the first n lines of the history. */
static void set_pushed(struct run *r, size_t n)
{
    r->cursor.pushed = n;
    r->cursor.pushed_check = merge_prefix(r->merge, FACT_LINE, n);
}

static bool is_full(const struct run *r)
{
    return r->lines + r->deletions >= BATCH_LINES || r->data.len >= BATCH_BYTES;
}

static int push_deletions(struct run *r, struct err *e)
{
    struct cursor *c = &r->cursor;
    size_t all = merge_facts(r->merge, FACT_DELETION);
    struct str session, id;

    if (merge_prefix(r->merge, FACT_DELETION, c->deleted) != c->deleted_check)
        c->deleted = 0;
    for (size_t i = c->deleted; i < all; i++) {
        merge_deletion(r->merge, i, &session, &id);
        if (session.n + id.n <= ID_MAX)
            batch_deletion(r, session, id);
        c->deleted = i + 1;
        if (is_full(r) || i + 1 == all)
            c->deleted_check = merge_prefix(r->merge, FACT_DELETION, i + 1);
        if (is_full(r) && store_batch(r, e) < 0)
            return -1;
    }
    return 0;
}

/* Adds a line to the batch. */
static int push_line(struct run *r, size_t i, struct err *e)
{
    if (merge_read(r->merge, FACT_LINE, i, &r->line, e) < 0)
        return -1;
    if (!message_parse(&r->message, buf_str(&r->line)))
        return err_set(e, ERR_FAILURE, "the history was edited in place");
    if (r->message.id.n > ID_MAX || r->message.role_text.n > ID_MAX)
        merge_counts(r->merge)->refused++;
    else
        batch_line(r, merge_digest(r->merge, FACT_LINE, i));
    return 0;
}

/* Stores the received lines, and notes that the database has the first n lines. */
static int store_up_to(struct run *r, size_t n, struct err *e)
{
    set_pushed(r, n);
    return r->lines + r->deletions > 0 ? store_batch(r, e) : cursor_save(r, e);
}

/* Pushes the lines from `from` on, without those that the database has, or only counts them. */
static int push_lines(struct run *r, size_t from, const struct digests *known, struct err *e)
{
    size_t all = merge_facts(r->merge, FACT_LINE);

    for (size_t i = from; i < all; i++) {
        if (digests_have(known, merge_digest(r->merge, FACT_LINE, i)))
            continue;
        if ((r->job->options.dry_run ? merge_count_sent(r->merge, i, e) : push_line(r, i, e)) < 0)
            return -1;
        if (is_full(r)) {
            if (store_up_to(r, i + 1, e) < 0)
                return -1;
            show_rows_done(r, "send", i + 1 - from, all - from);
        }
    }
    return r->job->options.dry_run ? 0 : store_up_to(r, all, e);
}

static int push(struct run *r, struct err *e)
{
    struct cursor *c = &r->cursor;
    bool valid = c->pushed > 0 && c->pushed <= merge_facts(r->merge, FACT_LINE) &&
                 merge_prefix(r->merge, FACT_LINE, c->pushed) == c->pushed_check;
    struct rows rows = {0};
    struct digests known = {0};
    int result = 0;

    if (!r->job->options.dry_run && (pg_run(r->pg, BATCH_TABLE, e) < 0 || push_deletions(r, e) < 0))
        return -1;
    if (!valid) {
        result = list_rows(r, 0, &rows, e);
        known = digests_of_rows(&rows);
        free(rows.at);
    }
    if (result == 0)
        result = push_lines(r, valid ? c->pushed : 0, &known, e);
    digests_release(&known);
    end_work(r);
    return result;
}

/* ---- pull ---- */

static int read_deletion_row(void *arg, const struct str *value, struct err *e)
{
    const struct run *r = arg;

    (void)e;
    (void)merge_delete(r->merge, value[0], value[1]);
    return 0;
}

static int read_line_row(void *arg, const struct str *value, struct err *e)
{
    const struct run *r = arg;

    return merge_add(r->merge, value[0], e) < 0 ? -1 : 0;
}

/* Notes that the history has all rows up to a number. */
static int set_pulled(struct run *r, int64_t number, struct err *e)
{
    if (merge_store(r->merge, e) < 0)
        return -1;
    if (r->job->options.dry_run)
        return 0;
    r->cursor.pulled = number;
    r->cursor.seen = merge_facts(r->merge, FACT_LINE);
    r->cursor.seen_check = merge_prefix(r->merge, FACT_LINE, r->cursor.seen);
    return cursor_save(r, e);
}

/* Fetches the lines of the rows that the history does not have. The deletions up to the number
 * `last` are in the history. */
static int pull_lines(struct run *r, const struct rows *rows, int64_t last, struct err *e)
{
    struct digests here = {0};
    size_t fetched = 0, i = 0;
    int result = 0;

    for (size_t k = 0; k < merge_facts(r->merge, FACT_LINE); k++)
        digests_add(&here, merge_digest(r->merge, FACT_LINE, k));
    digests_sort(&here);
    while (i < rows->count && result == 0) {
        size_t from, end, j;

        while (i < rows->count && digests_have(&here, rows->at[i].digest))
            i++;
        from = end = i;
        for (j = i; j < rows->count && j < end + GAP_MAX && j < from + BATCH_LINES; j++)
            if (!digests_have(&here, rows->at[j].digest))
                end = j + 1;
        if (end > from)
            result = query_between(r, "line FROM chathist.messages", rows->at[from].number - 1,
                                   rows->at[end - 1].number, read_line_row, r, e);
        fetched += end - from;
        i = end;
        if (result == 0 && fetched >= BATCH_LINES) {
            int64_t at = rows->at[end - 1].number;

            /* Another copy may have pushed deletions and rows after `last` meanwhile. */
            result = set_pulled(r, at < last ? at : last, e);
            fetched = 0;
            show_rows_done(r, "receive", end, rows->count);
        }
    }
    digests_release(&here);
    return result;
}

/* Moves the cursor of the push over lines that came from the database, so that they are not pushed
 * back. Lines of other programs may be between them. */
static int skip_pulled(struct run *r, struct rows *rows, bool erased, struct err *e)
{
    struct digests there;
    size_t n = r->cursor.pushed;
    /* Another program may have erased or replaced lines before the cursor, too. */
    bool moved = erased || merge_prefix(r->merge, FACT_LINE, n) != r->cursor.pushed_check;

    if (moved && list_rows(r, 0, rows, e) < 0)
        return -1;
    n = moved ? 0 : n;
    there = digests_of_rows(rows);
    while (n < merge_facts(r->merge, FACT_LINE) &&
           digests_have(&there, merge_digest(r->merge, FACT_LINE, n)))
        n++;
    digests_release(&there);
    set_pushed(r, n);
    return 0;
}

static int pull(struct run *r, struct err *e)
{
    struct cursor *c = &r->cursor;
    uint64_t erased = merge_counts(r->merge)->deleted;
    struct rows rows = {0};
    int64_t last = 0;
    bool rewritten;
    int result;

    if (c->seen > merge_facts(r->merge, FACT_LINE) ||
        merge_prefix(r->merge, FACT_LINE, c->seen) != c->seen_check)
        c->pulled = 0;
    /* Rows become visible in the order of their numbers: all up to this one are visible. */
    if (ask_number(r, "SELECT last FROM chathist.owners WHERE owner = current_user", NULL, 0, &last,
                   e) < 0)
        return -1;
    if (last <= c->pulled && c->pulled > 0)
        return 0;
    result = query_between(r, "session, id FROM chathist.deleted", c->pulled, last,
                           read_deletion_row, r, e);
    if (result == 0)
        result = merge_store(r->merge, e);
    rewritten = merge_counts(r->merge)->deleted != erased;
    if (result == 0)
        result = list_rows(r, c->pulled, &rows, e);
    if (result == 0)
        result = pull_lines(r, &rows, last, e);
    if (result == 0)
        result = merge_store(r->merge, e);
    if (result == 0 && !r->job->options.dry_run)
        result = skip_pulled(r, &rows, rewritten, e);
    if (result == 0)
        result = set_pulled(r, last, e);
    free(rows.at);
    end_work(r);
    return result;
}

/* ---- a run ---- */

/* Sets the id of this copy of the history: a random text in the user's state directory. If that is
 * lost, or two copies come to have the same, the checks of the cursor find out. */
static int load_copy(struct run *r, struct err *e)
{
    char *path = merge_state_path(r->job->history, "postgres", r->job->name, e);
    int result;

    if (!path)
        return -1;
    result = file_read_state(path, &r->copy, e);
    if (result == 0 && !r->job->options.dry_run) {
        result = id_add_token(&r->copy, e);
        if (result == 0)
            result = file_replace(path, buf_str(&r->copy), e);
    }
    free(path);
    return result < 0 ? -1 : 0;
}

static int check_version(struct pg *p, struct err *e)
{
    int64_t version = 0;

    if (pg_query(p, "SELECT version FROM chathist.version", NULL, 0, read_number_row, &version, e) <
        0)
        return -1;
    if (version > SYNC_SQL_VERSION)
        return err_set(e, ERR_USAGE, "the tables were made by a later version of hist-sync");
    if (version < SYNC_SQL_VERSION)
        return err_set(e, ERR_USAGE,
                       "the tables were made by an earlier version: run 'hist-sync init'");
    return 0;
}

struct pg *pg_open_ready(const struct sync_job *job, struct err *e)
{
    struct pg *p = pg_open(job->place, false, job->options.warn, job->options.arg, e);

    if (p && check_version(p, e) < 0) {
        pg_close(p);
        return NULL;
    }
    return p;
}

bool sync_is_postgres(const char *place)
{
    return str_starts(str_of(place), STR("postgresql://")) ||
           str_starts(str_of(place), STR("postgres://"));
}

int sync_postgres_init(const struct sync_job *job, struct err *e)
{
    struct pg *p = pg_open(job->place, true, job->options.warn, job->options.arg, e);
    int result = p ? pg_run(p, sync_sql, e) : -1;

    if (result == 0)
        result = check_version(p, e);
    pg_close(p);
    return result;
}

/* Connects and does what the job asks for, from where the database says that this copy is. */
static int run_job(struct run *r, struct err *e)
{
    struct cursor last = r->saved;

    r->pg = pg_open(r->job->place, true, r->job->options.warn, r->job->options.arg, e);
    if (!r->pg || check_version(r->pg, e) < 0 || cursor_load(r, e) < 0)
        return -1;
    /* The cursor of a transaction shows whether it was done. */
    if (memcmp(&r->cursor, &last, sizeof(last)) == 0)
        count_answered(r);
    r->unanswered = 0;
    return (r->job->push && push(r, e) < 0) || (r->job->pull && pull(r, e) < 0) ? -1 : 0;
}

/* Returns whether run_job, which failed, can be repeated with another server. Waits meanwhile, and
 * frees the connection. */
static bool fail_over(struct run *r, struct err *e)
{
    bool lost = r->pg && pg_can_fail_over(r->pg);

    if (lost && r->failovers++ < FAILOVERS_MAX) {
        merge_warn(r->merge, "%s: looking for another server of the address", err_text(e));
        r->until = time_ticks() + FAILOVER_MS;
    } else if (r->pg || time_ticks() >= r->until ||
               (e->kind != ERR_NETWORK && e->kind != ERR_BUSY)) {
        return false;
    }
    pg_close(r->pg);
    r->pg = NULL;
    buf_clear(&r->data);
    r->lines = r->deletions = 0;
    (void)poll(NULL, 0, lost ? 0 : FAILOVER_PAUSE_MS);
    err_release(e);
    return true;
}

int sync_postgres(struct sync_job *job, struct err *e)
{
    struct run r = {.job = job,
                    .copy = BUF_INIT(BUF_SMALL),
                    .data = BUF_INIT(8 * BUF_LINE),
                    .message = MESSAGE_INIT,
                    .line = BUF_INIT(BUF_LINE),
                    .decoded = BUF_INIT(BUF_LINE),
                    .folded = BUF_INIT(4 * BUF_LINE)};
    int result = -1;

    r.merge = merge_open(job->history, &job->options, e);
    if (r.merge) {
        if (job->push)
            merge_report_refused(r.merge);
        result = load_copy(&r, e);
        if (result == 0)
            while ((result = run_job(&r, e)) < 0 && fail_over(&r, e))
                ;
        if (result == 0)
            result = merge_finish(r.merge, e);
        job->count = *merge_counts(r.merge);
    }
    pg_close(r.pg);
    merge_close(r.merge);
    message_release(&r.message);
    buf_release(&r.copy);
    buf_release(&r.data);
    buf_release(&r.line);
    buf_release(&r.decoded);
    buf_release(&r.folded);
    return result;
}
