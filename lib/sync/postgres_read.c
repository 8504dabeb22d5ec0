#include "chathist/sync/postgres.h"

#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/history/session_list.h"
#include "chathist/history/title.h"
#include "sync/postgres.h"

/* A query that runs, and where its results go. */
struct reading {
    struct pg *pg;
    sync_result *give;
    void *arg;
    struct buf text, now, limit;
    struct str parameter[4]; /* the name of the history, now, the limit */
    size_t rows;
};

static int pass_value(void *arg, const struct str *value, struct err *e)
{
    struct reading *r = arg;

    r->rows++;
    return r->give(r->arg, value[0], e);
}

/* Keeps the value of the last row. */
static int set_value(void *arg, const struct str *value, struct err *e)
{
    struct reading *r = arg;

    (void)e;
    buf_set(&r->text, value[0]);
    r->rows++;
    return 0;
}

/* ---- the order of time ---- */

/* Rows that were erased belong to the history ''. */
#define OF_HISTORY "($1::text IS NULL AND history <> '' OR history = $1)"
#define ROWS "FROM chathist.messages WHERE owner = current_user AND " OF_HISTORY

/* The time of a row m, as history/order.h has it; `now` is $2, as text. The two arrays have, of
 * each row that is ahead, the latest time before it that is not, and its number. Almost always no
 * row is, and PostgreSQL does not compute the arrays. */
#define TIME                                                                                       \
    "CASE WHEN m.stamp <= $2::timestamptz THEN m.stamp ELSE"                                       \
    " (ARRAY(SELECT latest FROM (SELECT number, stamp,"                                            \
    " coalesce(max(stamp) FILTER (WHERE stamp <= $2::timestamptz)"                                 \
    " OVER (PARTITION BY history ORDER BY number), '-infinity') AS latest " ROWS                   \
    ") v WHERE stamp > $2::timestamptz ORDER BY number))"                                          \
    "[width_bucket(m.number, ARRAY(SELECT number " ROWS                                            \
    " AND stamp > $2::timestamptz ORDER BY number))] END"

/* Returns 0, or -1 with *e set. The caller releases it in any case. */
static int reading_open(struct reading *r, const struct sync_job *job, size_t limit,
                        sync_result *give, void *arg, struct err *e)
{
    *r = (struct reading){.give = give,
                          .arg = arg,
                          .text = BUF_INIT(BUF_LINE),
                          .now = BUF_INIT(BUF_SMALL),
                          .limit = BUF_INIT(BUF_SMALL)};
    time_add_iso(&r->now, time_now());
    pg_add_number(&r->limit, limit < (size_t)INT64_MAX ? (int64_t)limit : INT64_MAX);
    r->parameter[0] = str_of(job->name);
    r->parameter[1] = buf_str(&r->now);
    r->parameter[2] = buf_str(&r->limit);
    r->pg = pg_open_ready(job, e);
    /* Before parallel workers start, PostgreSQL would compute the arrays of TIME. */
    return r->pg ? pg_run(r->pg, "SET max_parallel_workers_per_gather = 0", e) : -1;
}

static void reading_release(struct reading *r)
{
    pg_close(r->pg);
    buf_release(&r->text);
    buf_release(&r->now);
    buf_release(&r->limit);
}

/* ---- search ---- */

int sync_postgres_search(const struct sync_job *job, const struct str *texts, size_t count,
                         size_t limit, sync_result *give, void *arg, struct err *e)
{
    struct reading r;
    struct buf folded = BUF_INIT(BUF_LINE), array = BUF_INIT(BUF_LINE), sql = BUF_INIT(BUF_LINE);
    int result = reading_open(&r, job, limit, give, arg, e);

    buf_add_c(&sql, "SELECT line FROM chathist.messages m WHERE owner = current_user"
                    " AND " OF_HISTORY " AND role <> 'title'");
    for (size_t i = 0; i < count; i++) {
        buf_clear(&folded);
        utf8_add_folded(&folded, texts[i]);
        pg_array_add(&array, buf_str(&folded));
        buf_addf(&sql, " AND strpos(folded, ($4::text[])[%zu]) > 0", i + 1);
    }
    buf_add_c(&sql, " ORDER BY " TIME " DESC, number DESC LIMIT $3");
    pg_array_end(&array);
    r.parameter[3] = buf_str(&array);
    /* Without statistics PostgreSQL believes that a role has few rows, and reads all of them in the
     * order of an index instead of that of the table. */
    if (result == 0)
        result = pg_run(r.pg, "SET enable_indexscan = off", e);
    if (result == 0)
        result = pg_query(r.pg, buf_c(&sql), r.parameter, 4, pass_value, &r, e);
    reading_release(&r);
    buf_release(&folded);
    buf_release(&array);
    buf_release(&sql);
    return result;
}

/* ---- sessions ---- */

/* The sessions that have messages, $3 at most, the last used first. */
#define NEWEST                                                                                     \
    "WITH s AS (SELECT history, session, min(number) AS first,"                                    \
    " count(*) FILTER (WHERE role <> 'title') AS count,"                                           \
    " max(" TIME ") FILTER (WHERE role <> 'title') AS used,"                                       \
    " max(number) FILTER (WHERE role <> 'title') AS last"                                          \
    " FROM chathist.messages m WHERE owner = current_user AND " OF_HISTORY                         \
    " GROUP BY history, session HAVING count(*) FILTER (WHERE role <> 'title') > 0"                \
    " ORDER BY used DESC, last DESC LIMIT $3) "

/* For each session its number of messages, and the lines from which its summary is made: the first
 * line, the latest message, the lines that give titles, and the message that is the preview. */
#define OF_SESSION                                                                                 \
    "(SELECT line FROM chathist.messages m WHERE m.owner = current_user"                           \
    " AND m.history = s.history AND m.session = s.session AND "
static const char SESSIONS[] = NEWEST
    "SELECT s.session, s.count, f.line, l.line, t.lines, p.line FROM s"
    " CROSS JOIN LATERAL " OF_SESSION "m.number = s.first LIMIT 1) f"
    " CROSS JOIN LATERAL " OF_SESSION "m.role <> 'title'"
    "  ORDER BY " TIME " DESC, m.number DESC LIMIT 1) l"
    " CROSS JOIN LATERAL (SELECT json_agg(line) AS lines FROM chathist.messages m"
    "  WHERE m.owner = current_user AND m.history = s.history AND m.session = s.session"
    "  AND m.role = 'title') t"
    " LEFT JOIN LATERAL " OF_SESSION "m.role <> 'title'"
    "  ORDER BY m.role = 'user' AND m.folded ~ '[^[:space:]]' DESC, m.number LIMIT 1) p ON true"
    " ORDER BY s.used DESC, s.last DESC";

enum { SESSION_ID, SESSION_COUNT, FIRST_LINE, LAST_LINE, TITLE_LINES, PREVIEW_LINE };

/* Sets the title from a JSON array of lines. */
static void set_title(struct session_list *l, struct session *s, struct str lines)
{
    struct json_iter it = json_iter(lines);
    struct buf line = BUF_INIT(BUF_LINE);
    struct message m = MESSAGE_INIT;
    struct titles t = {0};

    while (json_next(&it))
        if (message_parse(&m, json_text(it.value, &line)) && message_is_title(&m))
            titles_add(&t, &m);
    session_set_titles(l, s, &t);
    titles_release(&t);
    message_release(&m);
    buf_release(&line);
}

static int pass_session(void *arg, const struct str *value, struct err *e)
{
    struct reading *r = arg;
    struct session_list l = {0};
    struct session *s = session_list_add(&l);
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    int result;

    s->id = session_list_copy(&l, value[SESSION_ID]);
    s->count = (uint64_t)pg_number(value[SESSION_COUNT]);
    s->title = s->preview = s->first_role = s->created_at = s->last_used =
        session_list_copy(&l, STR(""));
    if (message_parse(&m, value[FIRST_LINE])) {
        s->created_at = session_list_copy(&l, m.timestamp);
        s->first_role = session_list_copy(&l, m.role_text);
    }
    if (message_parse(&m, value[LAST_LINE]))
        s->last_used = session_list_copy(&l, m.timestamp);
    if (value[TITLE_LINES].p)
        set_title(&l, s, value[TITLE_LINES]);
    if (value[PREVIEW_LINE].p && message_parse(&m, value[PREVIEW_LINE]))
        s->preview = session_list_copy(&l, message_preview(&m, &scratch));
    buf_clear(&r->text);
    session_add_json(&r->text, s);
    result = r->give(r->arg, buf_str(&r->text), e);
    message_release(&m);
    buf_release(&scratch);
    session_list_release(&l);
    return result;
}

int sync_postgres_sessions(const struct sync_job *job, size_t limit, sync_result *give, void *arg,
                           struct err *e)
{
    struct reading r;
    int result = reading_open(&r, job, limit, give, arg, e);

    if (result == 0)
        result = pg_query(r.pg, SESSIONS, r.parameter, 3, pass_session, &r, e);
    reading_release(&r);
    return result;
}

/* ---- show ---- */

static const char SESSION_LINES[] =
    "SELECT line FROM chathist.messages WHERE owner = current_user AND " OF_HISTORY
    " AND session = $2 ORDER BY number";

#define SESSIONS_OF                                                                                \
    "SELECT DISTINCT session FROM chathist.messages WHERE owner = current_user AND " OF_HISTORY    \
    " AND "

/* Finds the session of a name that is not an id, and sets r->text. */
static int find_session(struct reading *r, struct str session, struct err *e)
{
    static const char by_start[] = SESSIONS_OF "starts_with(session, $2) LIMIT 2";
    static const char by_end[] = SESSIONS_OF "right(session, length($2)) = $2 LIMIT 2";
    const char *const ways[] = {by_start, session.n < SESSION_SUFFIX_MIN ? NULL : by_end};
    struct str names[] = {r->parameter[0], session};
    int result = 0;

    r->rows = 0;
    if (str_eq_c(session, "last"))
        result = pg_query(r->pg, NEWEST "SELECT session FROM s", r->parameter, 3, set_value, r, e);
    else
        for (size_t i = 0; i < 2 && r->rows == 0 && ways[i] && result == 0; i++)
            result = pg_query(r->pg, ways[i], names, 2, set_value, r, e);
    if (result == 0 && r->rows > 1)
        result = err_set(e, ERR_USAGE, "several sessions match '%.*s'", (int)session.n, session.p);
    else if (result == 0 && r->rows == 0)
        result = err_set(e, ERR_ABSENT, "no session '%.*s'", (int)session.n, session.p);
    return result;
}

int sync_postgres_show(const struct sync_job *job, struct str session, sync_result *give, void *arg,
                       struct err *e)
{
    struct reading r;
    int result = reading_open(&r, job, 1, give, arg, e);
    struct str names[2] = {r.parameter[0], session};

    if (result == 0)
        result = pg_query(r.pg, SESSION_LINES, names, 2, pass_value, &r, e);
    if (result == 0 && r.rows == 0) {
        result = find_session(&r, session, e);
        names[1] = buf_str(&r.text);
        if (result == 0)
            result = pg_query(r.pg, SESSION_LINES, names, 2, pass_value, &r, e);
    }
    reading_release(&r);
    return result;
}
