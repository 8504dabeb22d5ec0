#include "chathist/sync/postgres.h"

#include <string.h>

#include "chathist/base/utf8.h"
#include "chathist/history/message.h"
#include "chathist/history/session_list.h"
#include "sync/postgres.h"

/* A query that runs, and where its results go. */
struct reading {
    sync_result *give;
    void *arg;
    struct buf text;
    size_t rows;
};

static int give_value(void *arg, const struct str *value, struct err *e)
{
    struct reading *r = arg;

    r->rows++;
    return r->give(r->arg, value[0], e);
}

/* Keeps the value of the last row. */
static int keep_value(void *arg, const struct str *value, struct err *e)
{
    struct reading *r = arg;

    (void)e;
    buf_set(&r->text, value[0]);
    r->rows++;
    return 0;
}

static void add_limit(struct buf *out, size_t limit)
{
    pg_add_number(out, limit < (size_t)INT64_MAX ? (int64_t)limit : INT64_MAX);
}

/* ---- search ---- */

int sync_postgres_search(const struct sync_job *job, const struct str *texts, size_t count,
                         size_t limit, sync_result *give, void *arg, struct err *e)
{
    struct reading r = {.give = give, .arg = arg};
    struct buf folded = BUF_INIT(BUF_LINE), array = BUF_INIT(BUF_LINE), most = BUF_INIT(BUF_SMALL);
    struct pg *p = pg_open_ready(job, e);
    int result = -1;

    for (size_t i = 0; i < count; i++) {
        buf_clear(&folded);
        utf8_add_folded(&folded, texts[i]);
        pg_array_add(&array, buf_str(&folded));
    }
    pg_array_end(&array);
    add_limit(&most, limit);
    if (p)
        result = pg_query(p, "SELECT chathist.search($1, $2, $3)",
                          (struct str[]){str_of(job->name), buf_str(&array), buf_str(&most)}, 3,
                          give_value, &r, e);
    pg_close(p);
    buf_release(&folded);
    buf_release(&array);
    buf_release(&most);
    return result;
}

/* ---- sessions ---- */

/* For each session its number of messages, and the lines from which its summary is made: the first
 * line, the last message, the title, and the message that is the preview. */
static const char SESSIONS[] =
    "WITH s AS (SELECT * FROM (SELECT history, session_id, message_count, first, last"
    " FROM chathist.sessions) v WHERE $1::text IS NULL OR history = $1 ORDER BY last DESC LIMIT $2)"
    " SELECT s.session_id, s.message_count, f.line, l.line, t.line, p.line FROM s"
    " CROSS JOIN LATERAL (SELECT line FROM chathist.messages m WHERE m.owner = current_user"
    "  AND m.history = s.history AND m.session = s.session_id AND m.number = s.first LIMIT 1) f"
    " CROSS JOIN LATERAL (SELECT line FROM chathist.messages m WHERE m.owner = current_user"
    "  AND m.history = s.history AND m.session = s.session_id AND m.number = s.last LIMIT 1) l"
    " LEFT JOIN LATERAL (SELECT line FROM chathist.messages m WHERE m.owner = current_user"
    "  AND m.history = s.history AND m.session = s.session_id AND m.role = 'title'"
    "  ORDER BY m.stamp DESC, m.id DESC LIMIT 1) t ON true"
    " LEFT JOIN LATERAL (SELECT line FROM chathist.messages m WHERE m.owner = current_user"
    "  AND m.history = s.history AND m.session = s.session_id AND m.role <> 'title'"
    "  ORDER BY m.role = 'user' AND m.folded ~ '[^[:space:]]' DESC, m.number LIMIT 1) p ON true"
    " ORDER BY s.last DESC";

enum { SESSION_ID, SESSION_COUNT, FIRST_LINE, LAST_LINE, TITLE_LINE, PREVIEW_LINE };

static int give_session(void *arg, const struct str *value, struct err *e)
{
    struct reading *r = arg;
    struct session_list l = {0};
    struct session *s = session_list_add(&l);
    struct message m = MESSAGE_INIT;
    struct buf scratch = BUF_INIT(BUF_LINE);
    int result;

    s->id = session_list_keep(&l, value[SESSION_ID]);
    s->count = (uint64_t)pg_number(value[SESSION_COUNT]);
    s->title = s->preview = s->first_role = s->created_at = s->last_used =
        session_list_keep(&l, STR(""));
    if (message_parse(&m, value[FIRST_LINE])) {
        s->created_at = session_list_keep(&l, m.timestamp);
        s->first_role = session_list_keep(&l, m.role_text);
    }
    if (message_parse(&m, value[LAST_LINE]))
        s->last_used = session_list_keep(&l, m.timestamp);
    if (value[TITLE_LINE].p && message_parse(&m, value[TITLE_LINE]))
        s->title = session_list_keep(&l, message_title(&m, &scratch));
    if (value[PREVIEW_LINE].p && message_parse(&m, value[PREVIEW_LINE]))
        s->preview = session_list_keep(&l, message_preview(&m, &scratch));
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
    struct reading r = {.give = give, .arg = arg, .text = BUF_INIT(BUF_LINE)};
    struct buf most = BUF_INIT(BUF_SMALL);
    struct pg *p = pg_open_ready(job, e);
    int result = -1;

    add_limit(&most, limit);
    if (p)
        result = pg_query(p, SESSIONS, (struct str[]){str_of(job->name), buf_str(&most)}, 2,
                          give_session, &r, e);
    pg_close(p);
    buf_release(&most);
    buf_release(&r.text);
    return result;
}

/* ---- show ---- */

static const char SESSION_LINES[] =
    "SELECT line FROM chathist.messages WHERE owner = current_user"
    " AND ($1::text IS NULL OR history = $1) AND session = $2 ORDER BY number";

#define SESSIONS_OF                                                                                \
    "SELECT DISTINCT session FROM chathist.messages WHERE owner = current_user"                    \
    " AND ($1::text IS NULL OR history = $1) AND "

/* Finds the session of a name that is not an id, and sets r->text. */
static int find_session(struct pg *p, const struct str *names, struct reading *r, struct err *e)
{
    static const char by_start[] = SESSIONS_OF "starts_with(session, $2) LIMIT 2";
    static const char by_end[] = SESSIONS_OF "right(session, length($2)) = $2 LIMIT 2";
    static const char newest[] =
        "SELECT session_id FROM chathist.sessions WHERE ($1::text IS NULL OR history = $1)"
        " AND $2::text = 'last' ORDER BY last DESC LIMIT 1";
    const char *const ways[] = {by_start, names[1].n < SESSION_SUFFIX_MIN ? NULL : by_end};

    r->rows = 0;
    if (str_eq_c(names[1], "last"))
        return pg_query(p, newest, names, 2, keep_value, r, e);
    for (size_t i = 0; i < 2 && r->rows == 0 && ways[i]; i++)
        if (pg_query(p, ways[i], names, 2, keep_value, r, e) < 0)
            return -1;
    if (r->rows > 1)
        return err_set(e, ERR_USAGE, "several sessions match '%.*s'", (int)names[1].n, names[1].p);
    return 0;
}

int sync_postgres_show(const struct sync_job *job, struct str session, sync_result *give, void *arg,
                       struct err *e)
{
    struct reading r = {.give = give, .arg = arg, .text = BUF_INIT(BUF_SMALL)};
    struct str names[2] = {str_of(job->name), session};
    struct pg *p = pg_open_ready(job, e);
    int result = p ? pg_query(p, SESSION_LINES, names, 2, give_value, &r, e) : -1;

    if (result == 0 && r.rows == 0) {
        result = find_session(p, names, &r, e);
        if (result == 0 && r.rows == 0)
            result = err_set(e, ERR_ABSENT, "no session '%.*s'", (int)session.n, session.p);
        names[1] = buf_str(&r.text);
        if (result == 0)
            result = pg_query(p, SESSION_LINES, names, 2, give_value, &r, e);
    }
    pg_close(p);
    buf_release(&r.text);
    return result;
}
