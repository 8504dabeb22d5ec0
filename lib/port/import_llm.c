#include "port/import_llm.h"

#include <sqlite3.h>
#include <string.h>

#include "base/json.h"

#define FORMAT "llm"
/* While llm writes. */
#define BUSY_MS 5000

/* Statements; those whose tables are not there are NULL and give no rows. */
enum query {
    RESPONSES,
    RESPONSE_FRAGMENTS,
    SYSTEM_FRAGMENTS,
    RESPONSE_IMAGES,
    CALLS,
    RESULTS,
    TURNS,
    CHAIN,
    PARTS,
    FRAGMENT,
    PART_IMAGES,
    QUERY_COUNT
};

/* %s is where columns stand that not every version has. */
static const char *const queries[QUERY_COUNT] = {
    [RESPONSE_FRAGMENTS] = "SELECT f.content FROM prompt_fragments p JOIN fragments f"
                           " ON f.id = p.fragment_id WHERE p.response_id = ?1 ORDER BY p.\"order\"",
    [SYSTEM_FRAGMENTS] = "SELECT f.content FROM system_fragments p JOIN fragments f"
                         " ON f.id = p.fragment_id WHERE p.response_id = ?1 ORDER BY p.\"order\"",
    [RESPONSE_IMAGES] =
        "SELECT count(*) FROM prompt_attachments p JOIN attachments a"
        " ON a.id = p.attachment_id WHERE p.response_id = ?1 AND a.type LIKE 'image/%'",
    [CALLS] =
        "SELECT tool_call_id, name, arguments FROM tool_calls WHERE response_id = ?1 ORDER BY id",
    [RESULTS] =
        "SELECT tool_call_id, name, output FROM tool_results WHERE response_id = ?1 ORDER BY id",
    [TURNS] = "SELECT thread_id, parent_message_hash, tip_message_hash,"
              " coalesce(resolved_model, model), datetime_utc, input_tokens, output_tokens"
              " FROM turns ORDER BY max(datetime_utc) OVER (PARTITION BY thread_id), thread_id,"
              " datetime_utc, id",
    [CHAIN] = "WITH RECURSIVE chain(hash, depth) AS (SELECT ?1, 0 UNION ALL"
              " SELECT m.parent_hash, depth + 1 FROM chain c JOIN messages m ON m.hash = c.hash"
              " WHERE m.parent_hash IS NOT NULL AND m.parent_hash IS NOT ?2 AND depth < 100000)"
              " SELECT m.hash, m.role FROM chain c JOIN messages m ON m.hash = c.hash"
              " ORDER BY c.depth DESC",
    [PARTS] = "SELECT id, type, text, payload FROM parts WHERE message_hash = ?1 ORDER BY position",
    [FRAGMENT] = "SELECT content FROM fragments WHERE id = ?1",
    [PART_IMAGES] = "SELECT count(*) FROM part_attachments p JOIN attachments a"
                    " ON a.id = p.attachment_id WHERE p.part_id = ?1 AND a.type LIKE 'image/%'",
};

struct reader {
    struct source *source;
    struct import_sink *sink;
    sqlite3 *db;
    sqlite3_stmt *query[QUERY_COUNT];
    int why; /* the last of those for messages is NULL */
    struct import_message m;
    struct buf session; /* of the row before */
    struct buf system;  /* its system prompt */
};

static int fail(const struct reader *r, struct err *e)
{
    return err_set(e, ERR_FAILURE, "cannot read '%s': %s", r->source->name, sqlite3_errmsg(r->db));
}

/* A column's bytes, borrowed until the statement moves; STR_NONE for NULL. */
static struct str column(sqlite3_stmt *q, int i)
{
    const void *text = sqlite3_column_text(q, i);

    return text ? (struct str){text, (size_t)sqlite3_column_bytes(q, i)} : STR_NONE;
}

static int64_t column_count(sqlite3_stmt *q, int i)
{
    bool number = sqlite3_column_type(q, i) == SQLITE_INTEGER;

    return number && sqlite3_column_int64(q, i) >= 0 ? sqlite3_column_int64(q, i) : -1;
}

/* The next row: 1, 0, -1. A statement that is NULL has none. */
static int step(const struct reader *r, sqlite3_stmt *q, struct err *e)
{
    int got = q ? sqlite3_step(q) : SQLITE_DONE;

    if (got == SQLITE_ROW)
        return 1;
    return got == SQLITE_DONE ? 0 : fail(r, e);
}

static sqlite3_stmt *start(const struct reader *r, enum query n, struct str key)
{
    sqlite3_stmt *q = r->query[n];

    if (q) {
        sqlite3_reset(q);
        sqlite3_bind_text(q, 1, key.p, (int)key.n, SQLITE_TRANSIENT);
    }
    return q;
}

/* Sets a time of llm's, which is UTC without saying so. */
static void set_time(struct import_message *m, struct str text)
{
    struct buf json = BUF_INIT(BUF_SMALL);

    json_add_string(&json, text);
    import_set_time(m, buf_str(&json));
    buf_release(&json);
}

/* ---- responses ---- */

enum { R_ID, R_CONVERSATION, R_MODEL, R_PROMPT, R_SYSTEM, R_RESPONSE, R_TIME, R_IN, R_OUT };

/* Begins a message of this response; its part is the response's id with `suffix`. */
static void begin(struct reader *r, sqlite3_stmt *row, enum role role, const char *suffix)
{
    struct str id = column(row, R_ID), conversation = column(row, R_CONVERSATION);
    struct buf part = BUF_INIT(BUF_SMALL);

    buf_add_str(&part, id);
    buf_add_c(&part, suffix);
    import_message_clear(&r->m, role);
    import_set_session(&r->m, FORMAT, conversation.n > 0 ? conversation : id);
    import_set_part(&r->m, buf_str(&part));
    set_time(&r->m, column(row, R_TIME));
    buf_release(&part);
}

static int add_texts(struct reader *r, enum query n, struct str id, struct err *e)
{
    sqlite3_stmt *q = start(r, n, id);
    int got;

    while ((got = step(r, q, e)) > 0)
        import_add_text(&r->m, column(q, 0));
    return got;
}

/* The system prompt, when it is another than before. */
static int give_system(struct reader *r, sqlite3_stmt *row, struct err *e)
{
    begin(r, row, ROLE_SYSTEM, "-system");
    if (add_texts(r, SYSTEM_FRAGMENTS, column(row, R_ID), e) < 0)
        return -1;
    import_add_text(&r->m, column(row, R_SYSTEM));
    if (!str_eq(buf_str(&r->session), buf_str(&r->m.session)))
        buf_clear(&r->system);
    buf_clear(&r->session);
    buf_add_str(&r->session, buf_str(&r->m.session));
    /* It is told again only when it changes. */
    if (r->m.text.len == 0 || str_eq(buf_str(&r->system), buf_str(&r->m.text)))
        return 0;
    buf_clear(&r->system);
    buf_add_str(&r->system, buf_str(&r->m.text));
    return import_give(r->sink, &r->m, e);
}

static int give_results(struct reader *r, sqlite3_stmt *row, struct err *e)
{
    sqlite3_stmt *q = start(r, RESULTS, column(row, R_ID));
    struct buf suffix = BUF_INIT(BUF_SMALL);
    int got, n = 0;

    while ((got = step(r, q, e)) > 0) {
        struct str id = column(q, 0);

        buf_clear(&suffix);
        buf_addf(&suffix, "-result-%d", ++n);
        begin(r, row, ROLE_TOOL, buf_c(&suffix));
        buf_add_str(&r->m.call_id, id.n > 0 ? id : column(q, 1));
        import_add_text(&r->m, column(q, 2));
        got = import_give(r->sink, &r->m, e);
        if (got < 0)
            break;
    }
    buf_release(&suffix);
    return got;
}

static int give_prompt(struct reader *r, sqlite3_stmt *row, struct err *e)
{
    sqlite3_stmt *q;
    int got;

    begin(r, row, ROLE_USER, "-prompt");
    if (add_texts(r, RESPONSE_FRAGMENTS, column(row, R_ID), e) < 0)
        return -1;
    import_add_text(&r->m, column(row, R_PROMPT));
    q = start(r, RESPONSE_IMAGES, column(row, R_ID));
    got = step(r, q, e);
    if (got < 0)
        return -1;
    r->m.images = got > 0 ? sqlite3_column_int64(q, 0) : 0;
    return import_give(r->sink, &r->m, e);
}

/* `args` is JSON in a column of text. */
static void add_call(struct import_message *m, struct str id, struct str name, struct str args)
{
    struct buf json = BUF_INIT(BUF_LINE);

    if (args.p)
        json_add_string(&json, args);
    import_add_call(m, id, name, buf_str(&json));
    buf_release(&json);
}

static int give_response(struct reader *r, sqlite3_stmt *row, struct err *e)
{
    sqlite3_stmt *q = start(r, CALLS, column(row, R_ID));
    int got;

    begin(r, row, ROLE_ASSISTANT, "");
    import_add_text(&r->m, column(row, R_RESPONSE));
    while ((got = step(r, q, e)) > 0)
        add_call(&r->m, column(q, 0), column(q, 1), column(q, 2));
    if (got < 0)
        return -1;
    buf_add_str(&r->m.model, column(row, R_MODEL));
    r->m.input_tokens = column_count(row, R_IN);
    r->m.output_tokens = column_count(row, R_OUT);
    return import_give(r->sink, &r->m, e);
}

static int read_responses(struct reader *r, struct err *e)
{
    sqlite3_stmt *row = r->query[RESPONSES];
    int got;

    while ((got = step(r, row, e)) > 0) {
        r->source->number++;
        if (!column(row, R_ID).p)
            r->sink->bad(r->sink->arg, r->source->number, "a response without an id");
        else if (give_system(r, row, e) < 0 || give_results(r, row, e) < 0 ||
                 give_prompt(r, row, e) < 0 || give_response(r, row, e) < 0)
            return -1;
    }
    return got;
}

/* ---- turns ---- */

enum { T_THREAD, T_PARENT, T_TIP, T_MODEL, T_TIME, T_IN, T_OUT };
enum { P_ID, P_TYPE, P_TEXT, P_PAYLOAD };

/* Text that is kept in pieces: `[{"fragment":ID},{"literal":TEXT}]`. */
static int add_pieces(struct reader *r, struct str pieces, struct err *e)
{
    struct json_iter it = json_iter(pieces);
    struct buf text = BUF_INIT(BUF_LINE);
    int result = 0;

    while (result == 0 && json_next(&it)) {
        sqlite3_stmt *q = r->query[FRAGMENT];
        int64_t id;

        json_decode(json_get(it.value, "literal"), &text);
        if (!q || !json_int(json_get(it.value, "fragment"), &id))
            continue;
        sqlite3_reset(q);
        sqlite3_bind_int64(q, 1, id);
        result = step(r, q, e);
        if (result > 0)
            buf_add_str(&text, column(q, 0));
        result = result < 0 ? -1 : 0;
    }
    import_add_text(&r->m, buf_str(&text));
    buf_release(&text);
    return result;
}

/* A result is a message of its own; the others of the message before and behind it are, too. */
static int give_result(struct reader *r, struct str payload, struct str hash, size_t n,
                       struct err *e)
{
    struct import_message *m = &r->m;
    struct buf part = BUF_INIT(BUF_SMALL);
    int result;

    buf_add_str(&part, hash);
    buf_addf(&part, ".%zu", n);
    m->role = ROLE_TOOL;
    import_set_part(m, buf_str(&part));
    import_set_text(&m->call_id, json_get(payload, "name"));
    import_set_text(&m->call_id, json_get(payload, "tool_call_id"));
    import_add_content(m, json_get(payload, "output"));
    result = import_give(r->sink, m, e);
    buf_clear(&m->text);
    buf_clear(&m->call_id);
    m->images = 0;
    buf_release(&part);
    return result;
}

static int add_part(struct reader *r, sqlite3_stmt *q, struct err *e)
{
    struct str type = column(q, P_TYPE), payload = STR_NONE;
    struct buf id = BUF_INIT(BUF_SMALL), name = BUF_INIT(BUF_SMALL);
    int result = 0;

    if (column(q, P_PAYLOAD).p && !json_check(column(q, P_PAYLOAD), &payload, NULL))
        payload = STR_NONE;
    if (str_eq_c(type, "text") && column(q, P_TEXT).p) {
        import_add_text(&r->m, column(q, P_TEXT));
    } else if (str_eq_c(type, "text")) {
        result = add_pieces(r, json_get(payload, "text_ref"), e);
    } else if (str_eq_c(type, "tool_call")) {
        import_add_call(&r->m, json_text(json_get(payload, "tool_call_id"), &id),
                        json_text(json_get(payload, "name"), &name),
                        json_get(payload, "arguments"));
    } else if (str_eq_c(type, "attachment")) {
        sqlite3_stmt *images = start(r, PART_IMAGES, column(q, P_ID));

        result = step(r, images, e);
        r->m.images += result > 0 ? sqlite3_column_int64(images, 0) : 0;
        result = result < 0 ? -1 : 0;
    }
    buf_release(&id);
    buf_release(&name);
    return result;
}

/* One message of the chain; the results of tools in it come first. */
static int give_chained(struct reader *r, sqlite3_stmt *turn, struct str hash, enum role role,
                        struct err *e)
{
    struct import_message *m = &r->m;
    size_t results = 0;
    sqlite3_stmt *q;
    int got;

    import_message_clear(m, role);
    import_set_session(m, FORMAT, column(turn, T_THREAD));
    set_time(m, column(turn, T_TIME));
    for (q = start(r, PARTS, hash); (got = step(r, q, e)) > 0;) {
        struct str payload;

        if (str_eq_c(column(q, P_TYPE), "tool_result") &&
            json_check(column(q, P_PAYLOAD), &payload, NULL) &&
            give_result(r, payload, hash, ++results, e) < 0)
            return -1;
    }
    m->role = role;
    for (q = start(r, PARTS, hash); got == 0 && (got = step(r, q, e)) > 0;)
        got = add_part(r, q, e);
    if (got < 0)
        return -1;
    if (role == ROLE_ASSISTANT) {
        buf_add_str(&m->model, column(turn, T_MODEL));
        m->input_tokens = column_count(turn, T_IN);
        m->output_tokens = column_count(turn, T_OUT);
    }
    import_set_part(m, hash);
    /* One that was nothing but results. */
    if (role == ROLE_TOOL && m->text.len == 0)
        return 0;
    return import_give(r->sink, m, e);
}

static int give_turn(struct reader *r, sqlite3_stmt *turn, struct err *e)
{
    sqlite3_stmt *chain = start(r, CHAIN, column(turn, T_TIP));
    struct str parent = column(turn, T_PARENT);
    int got;

    if (chain && parent.p)
        sqlite3_bind_text(chain, 2, parent.p, (int)parent.n, SQLITE_TRANSIENT);
    else if (chain)
        sqlite3_bind_null(chain, 2);
    while ((got = step(r, chain, e)) > 0) {
        enum role role = role_of(column(chain, 1));

        if (give_chained(r, turn, column(chain, 0), role == ROLE_OTHER ? ROLE_USER : role, e) < 0)
            return -1;
    }
    return got;
}

static int read_turns(struct reader *r, struct err *e)
{
    sqlite3_stmt *turn = r->query[TURNS];
    int got;

    while ((got = step(r, turn, e)) > 0) {
        r->source->number++;
        if (give_turn(r, turn, e) < 0)
            return -1;
    }
    return got;
}

/* ---- the database ---- */

static bool has_column(const struct reader *r, const char *name)
{
    sqlite3_stmt *q;
    bool has = false;

    if (sqlite3_prepare_v2(r->db, "SELECT 1 FROM pragma_table_info('responses') WHERE name = ?1",
                           -1, &q, NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_text(q, 1, name, -1, SQLITE_TRANSIENT);
    has = sqlite3_step(q) == SQLITE_ROW;
    sqlite3_finalize(q);
    return has;
}

static void prepare(struct reader *r)
{
    struct buf sql = BUF_INIT(BUF_SMALL);
    bool resolved = has_column(r, "resolved_model"), usage = has_column(r, "input_tokens");

    buf_addf(&sql,
             "SELECT id, conversation_id, %s, prompt, system, response, datetime_utc, %s"
             " FROM responses ORDER BY"
             " max(datetime_utc) OVER (PARTITION BY coalesce(conversation_id, id)),"
             " coalesce(conversation_id, id), datetime_utc, id",
             resolved ? "coalesce(resolved_model, model)" : "model",
             usage ? "input_tokens, output_tokens" : "NULL, NULL");
    for (size_t i = 0; i < QUERY_COUNT; i++)
        if (sqlite3_prepare_v2(r->db, i == RESPONSES ? buf_c(&sql) : queries[i], -1, &r->query[i],
                               NULL) != SQLITE_OK) {
            r->query[i] = NULL;
            if (i == RESPONSES || i == TURNS)
                r->why = sqlite3_errcode(r->db);
        }
    buf_release(&sql);
}

int import_llm(struct source *s, struct import_sink *sink, struct err *e)
{
    struct reader r = {.source = s, .sink = sink};
    int result = -1;

    if (!s->path)
        return err_set(e, ERR_USAGE, "cannot import '%s': a database must be a file", s->name);
    import_message_init(&r.m);
    buf_init(&r.session, BUF_SMALL);
    buf_init(&r.system, BUF_LINE);
    if (sqlite3_open_v2(s->path, &r.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        fail(&r, e);
        goto out;
    }
    sqlite3_busy_timeout(r.db, BUSY_MS);
    /* The file may come from anybody: no function runs because its schema says so. */
    sqlite3_db_config(r.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    prepare(&r);
    if (!r.query[RESPONSES] && !r.query[TURNS] && r.why != SQLITE_ERROR)
        err_set(e, ERR_FAILURE, "cannot read '%s': %s", s->name, sqlite3_errstr(r.why));
    else if (!r.query[RESPONSES] && !r.query[TURNS])
        err_set(e, ERR_FAILURE, "cannot import '%s': it is no database of llm", s->name);
    else if (read_responses(&r, e) == 0)
        result = read_turns(&r, e);
out:
    for (size_t i = 0; i < QUERY_COUNT; i++)
        sqlite3_finalize(r.query[i]);
    sqlite3_close(r.db);
    import_message_release(&r.m);
    buf_release(&r.session);
    buf_release(&r.system);
    return result;
}
