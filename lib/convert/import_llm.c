/*
 * import_llm - reads logs.db, the database of llm (https://llm.datasette.io).
 *
 * Sources: simonw/llm, llm/migrations.py, llm/logs.py (LogStore.log, LogStore.load_chain,
 * _LogRowBuilder.build) and docs/logging.md. There are two generations of tables, and a database
 * may have both:
 *
 *   - conversations, responses (up to 0.31): a row is a prompt and its response, with the id of the
 *     conversation; a response without one is a session. tool_calls belong to the response,
 *     tool_results to the prompt that contained them; fragments come before the prompt or the
 *     system prompt.
 *   - threads, turns, messages, parts (from 0.32): each message names the message before it. A
 *     turn's parent_message_hash is the last message that was sent (the prompt, or the last result
 *     of a tool), and its tip_message_hash the last message of the response. So the messages of a
 *     turn are those from its tip back to the first one that an earlier turn of the thread has.
 *
 * A thread that continues a conversation of the older tables has the same id, and the chain of its
 * first turn begins with messages that the older tables have, too. Of such a turn, and of a turn
 * whose chain has no message of the turns before it, only the messages after the last response are
 * imported; llm itself shows such a turn in the same way.
 *
 * In the older tables, a system prompt becomes a message where it changes. Images are counted,
 * reasoning is not imported. Only this file uses sqlite3.
 *
 * A database may be hostile. Only plain tables are read, a row has a maximum size, and the work is
 * bounded by the size of the file. Nothing is written, and no new file is left beside the database.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chathist/base/hash_map.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/path.h"
#include "convert/import_reader.h"

#define FORMAT "llm"
/* How long to wait for a lock, because llm may be writing. */
#define BUSY_MS 5000
/* SQLite's virtual machine may execute WORK_MIN instructions, and WORK_PER_BYTE more for each byte
 * of the file. Real databases need less than a hundredth of that. */
#define WORK_MIN INT64_C(100000000)
#define WORK_PER_BYTE 300
#define WORK_STEP 100000

/* The statements. A statement whose tables do not exist is NULL and has no rows. Keys are sorted,
 * and then the rows are read one by one, so that texts are not sorted. */
enum query {
    RESPONSES,
    RESPONSE,
    RESPONSE_FRAGMENTS,
    SYSTEM_FRAGMENTS,
    RESPONSE_IMAGES,
    CALLS,
    RESULTS,
    OLD_CONVERSATION,
    TURNS,
    TURN,
    MESSAGE,
    PARTS,
    FRAGMENT,
    PART_IMAGES,
    CONVERSATION_NAMES,
    THREAD_NAMES,
    QUERY_COUNT
};

static const char *const queries[QUERY_COUNT] = {
    [RESPONSES] = "SELECT rowid FROM responses ORDER BY"
                  " max(datetime_utc) OVER (PARTITION BY coalesce(conversation_id, id)),"
                  " coalesce(conversation_id, id), datetime_utc, id",
    [RESPONSE_FRAGMENTS] =
        "SELECT fragment_id FROM prompt_fragments WHERE response_id = ?1 ORDER BY \"order\"",
    [SYSTEM_FRAGMENTS] =
        "SELECT fragment_id FROM system_fragments WHERE response_id = ?1 ORDER BY \"order\"",
    [RESPONSE_IMAGES] =
        "SELECT count(*) FROM prompt_attachments p JOIN attachments a"
        " ON a.id = p.attachment_id WHERE p.response_id = ?1 AND a.type LIKE 'image/%'",
    [CALLS] =
        "SELECT tool_call_id, name, arguments FROM tool_calls WHERE response_id = ?1 ORDER BY id",
    [RESULTS] =
        "SELECT tool_call_id, name, output FROM tool_results WHERE response_id = ?1 ORDER BY id",
    [OLD_CONVERSATION] = "SELECT 1 FROM responses WHERE conversation_id = ?1 LIMIT 1",
    [TURNS] = "SELECT rowid, thread_id FROM turns ORDER BY"
              " max(datetime_utc) OVER (PARTITION BY thread_id), thread_id, datetime_utc, id",
    [MESSAGE] = "SELECT parent_hash, role FROM messages WHERE hash = ?1",
    [PARTS] = "SELECT id, type, text, payload FROM parts WHERE message_hash = ?1 ORDER BY position",
    [FRAGMENT] = "SELECT content FROM fragments WHERE id = ?1",
    [PART_IMAGES] = "SELECT count(*) FROM part_attachments p JOIN attachments a"
                    " ON a.id = p.attachment_id WHERE p.part_id = ?1 AND a.type LIKE 'image/%'",
};
/* Finds an object that has the name of a table above, but is a view, virtual or has generated
 * columns: reading it would execute code of the file. */
static const char odd_table[] =
    "SELECT name FROM pragma_table_list AS l WHERE schema = 'main' AND lower(name) IN ('responses',"
    " 'prompt_fragments', 'system_fragments', 'fragments', 'prompt_attachments', 'attachments',"
    " 'tool_calls', 'tool_results', 'turns', 'messages', 'parts', 'part_attachments',"
    " 'conversations', 'threads')"
    " AND (type <> 'table' OR"
    " EXISTS (SELECT 1 FROM pragma_table_xinfo(l.name) WHERE hidden <> 0))";

/* A message of a turn. */
struct link {
    struct str hash; /* borrowed from the keys of `seen` */
    enum role role;
};

struct reader {
    struct source *source;
    sqlite3 *db;
    sqlite3_stmt *query[QUERY_COUNT];
    int64_t work, work_max;
    bool unlocked; /* other programs can write while the database is read */
    struct import_message m;
    struct buf session;   /* of the last response */
    struct buf system;    /* its system prompt */
    struct buf thread;    /* id of the current thread */
    struct hash_map seen; /* the hashes of its messages so far */
    struct link *links;   /* the messages of the current turn, the last one first */
    size_t links_count, links_cap;
};

static int fail(const struct reader *r, struct err *e)
{
    if (sqlite3_errcode(r->db) == SQLITE_INTERRUPT)
        return err_set(e, ERR_FAILURE, "cannot read '%s': it takes too much work for its size",
                       r->source->name);
    return err_set(e, ERR_FAILURE, "cannot read '%s': %s", r->source->name, sqlite3_errmsg(r->db));
}

/* Returns the bytes of a column, valid until the next step; STR_NONE for NULL. */
static struct str column(sqlite3_stmt *q, int i)
{
    const void *text = sqlite3_column_text(q, i);

    return text ? (struct str){text, (size_t)sqlite3_column_bytes(q, i)} : STR_NONE;
}

static void read_count(struct usage *u, enum usage_kind kind, sqlite3_stmt *q, int i)
{
    if (sqlite3_column_type(q, i) == SQLITE_INTEGER)
        usage_read(u, kind, column(q, i));
}

/* Reads the columns input_tokens, output_tokens and token_details, of which the first is column i.
 * The details are those of the provider. OpenAI's totals include them; Anthropic's input does not
 * include the tokens of the cache. */
static void set_usage(struct usage *u, sqlite3_stmt *q, int i)
{
    struct str details, prompt, completion;
    bool apart;

    read_count(u, USAGE_INPUT, q, i);
    read_count(u, USAGE_OUTPUT, q, i + 1);
    if (!json_check(column(q, i + 2), &details, NULL))
        return;
    prompt = json_get(details, "prompt_tokens_details");
    completion = json_get(details, "completion_tokens_details");
    usage_read(u, USAGE_CACHE_READ, json_get(prompt, "cached_tokens"));
    usage_read(u, USAGE_REASONING, json_get(completion, "reasoning_tokens"));
    apart = u->at[USAGE_CACHE_READ] < 0;
    usage_read(u, USAGE_CACHE_READ, json_get(details, "cache_read_input_tokens"));
    usage_read(u, USAGE_CACHE_WRITE, json_get(details, "cache_creation_input_tokens"));
    if (apart && u->at[USAGE_INPUT] >= 0)
        u->at[USAGE_INPUT] += usage_cached(u);
}

/* Advances to the next row. Returns 1; 0 after the last row, or if the statement is NULL; -1 with
 * *e set. */
static int step(const struct reader *r, sqlite3_stmt *q, struct err *e)
{
    int got = q ? sqlite3_step(q) : SQLITE_DONE;

    return got == SQLITE_ROW ? 1 : got == SQLITE_DONE ? 0 : fail(r, e);
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

/* Advances to the first row for a number. Returns as step. */
static int step_first(struct reader *r, enum query n, int64_t key, struct err *e)
{
    if (r->query[n]) {
        sqlite3_reset(r->query[n]);
        sqlite3_bind_int64(r->query[n], 1, key);
    }
    return step(r, r->query[n], e);
}

/* Adds the number of images to the message. Returns 0, or -1 with *e set. */
static int add_images(struct reader *r, sqlite3_stmt *q, struct err *e)
{
    int got = step(r, q, e);

    r->m.images += got > 0 ? sqlite3_column_int64(q, 0) : 0;
    return got < 0 ? -1 : 0;
}

/* Sets the time. Times without a zone are UTC. */
static void set_time(struct import_message *m, struct str text)
{
    struct buf json = BUF_INIT(BUF_SMALL);

    json_add_string(&json, text);
    import_set_time(m, buf_str(&json));
    buf_release(&json);
}

/* ---- responses ---- */

enum { R_ID, R_CONVERSATION, R_PROMPT, R_SYSTEM, R_RESPONSE, R_TIME, R_MODEL, R_USAGE };

/* Begins a message of this response. Its part is the id of the response and `suffix`. */
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

/* Adds each fragment as a paragraph, until the text is too long. */
static int add_fragments(struct reader *r, enum query n, struct str id, struct err *e)
{
    sqlite3_stmt *q = start(r, n, id);
    int got = 0;

    while (got >= 0 && !r->m.text.overflow && (got = step(r, q, e)) > 0) {
        got = step_first(r, FRAGMENT, sqlite3_column_int64(q, 0), e);
        if (got > 0)
            import_add_text(&r->m, column(r->query[FRAGMENT], 0));
    }
    return got < 0 ? -1 : 0;
}

/* Gives the system prompt if it changed. */
static int give_system(struct reader *r, sqlite3_stmt *row, struct err *e)
{
    begin(r, row, ROLE_SYSTEM, "-system");
    if (add_fragments(r, SYSTEM_FRAGMENTS, column(row, R_ID), e) < 0)
        return -1;
    import_add_text(&r->m, column(row, R_SYSTEM));
    if (!str_eq(buf_str(&r->session), buf_str(&r->m.session)))
        buf_clear(&r->system);
    buf_set(&r->session, buf_str(&r->m.session));
    if (!r->m.text.overflow &&
        (r->m.text.len == 0 || str_eq(buf_str(&r->system), buf_str(&r->m.text))))
        import_message_clear(&r->m, ROLE_SYSTEM);
    buf_set(&r->system, buf_str(&r->m.text));
    return import_give(r->source, &r->m, e);
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
        got = import_give(r->source, &r->m, e);
        if (got < 0)
            break;
    }
    buf_release(&suffix);
    return got;
}

static int give_prompt(struct reader *r, sqlite3_stmt *row, struct err *e)
{
    begin(r, row, ROLE_USER, "-prompt");
    if (add_fragments(r, RESPONSE_FRAGMENTS, column(row, R_ID), e) < 0 ||
        add_images(r, start(r, RESPONSE_IMAGES, column(row, R_ID)), e) < 0)
        return -1;
    import_add_text(&r->m, column(row, R_PROMPT));
    return import_give(r->source, &r->m, e);
}

/* Adds a call. `args` is JSON in a text column. */
static void add_call(struct import_message *m, struct str id, struct str name, struct str args)
{
    struct buf json = BUF_INIT(BUF_LINE);

    if (args.p)
        json_add_string(&json, args);
    import_add_call(m, id, name, buf_str(&json));
    m->calls.overflow = m->calls.overflow || json.overflow;
    buf_release(&json);
}

static int give_response(struct reader *r, sqlite3_stmt *row, struct err *e)
{
    sqlite3_stmt *q = start(r, CALLS, column(row, R_ID));
    int got = 0;

    begin(r, row, ROLE_ASSISTANT, "");
    import_add_text(&r->m, column(row, R_RESPONSE));
    while (!r->m.calls.overflow && (got = step(r, q, e)) > 0)
        add_call(&r->m, column(q, 0), column(q, 1), column(q, 2));
    if (got < 0)
        return -1;
    buf_add_str(&r->m.model, column(row, R_MODEL));
    set_usage(&r->m.usage, row, R_USAGE);
    return import_give(r->source, &r->m, e);
}

static int read_responses(struct reader *r, struct err *e)
{
    sqlite3_stmt *rows = r->query[RESPONSES], *row = r->query[RESPONSE];
    int got;

    while ((got = step(r, rows, e)) > 0) {
        r->source->number++;
        got = step_first(r, RESPONSE, sqlite3_column_int64(rows, 0), e);
        if (got < 0)
            return -1;
        if (!column(row, R_ID).p)
            import_bad(r->source, "a response without an id");
        else if (give_system(r, row, e) < 0 || give_results(r, row, e) < 0 ||
                 give_prompt(r, row, e) < 0 || give_response(r, row, e) < 0)
            return -1;
    }
    return got;
}

/* ---- a message of a thread ---- */

enum { T_PARENT, T_TIP, T_TIME, T_MODEL, T_USAGE };
enum { M_PARENT, M_ROLE };
enum { P_ID, P_TYPE, P_TEXT, P_PAYLOAD };

/* Adds text that is stored in pieces: `[{"fragment":ID},{"literal":TEXT}]`. */
static int add_pieces(struct reader *r, struct str pieces, struct err *e)
{
    struct json_iter it = json_iter(pieces);
    struct buf text = BUF_INIT(BUF_LINE);
    int got = 0;

    while (got >= 0 && !text.overflow && json_next(&it)) {
        int64_t id;

        json_decode(json_get(it.value, "literal"), &text);
        if (!json_int(json_get(it.value, "fragment"), &id))
            continue;
        got = step_first(r, FRAGMENT, id, e);
        if (got > 0)
            buf_add_str(&text, column(r->query[FRAGMENT], 0));
    }
    import_add_text(&r->m, buf_str(&text));
    r->m.text.overflow = r->m.text.overflow || text.overflow;
    buf_release(&text);
    return got < 0 ? -1 : 0;
}

/* Gives the nth result of a message as a separate message. */
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
    result = import_give(r->source, &r->m, e);
    import_message_rewind(m);
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
    if (str_eq_c(type, "text") && column(q, P_TEXT).p)
        import_add_text(&r->m, column(q, P_TEXT));
    else if (str_eq_c(type, "text"))
        result = add_pieces(r, json_get(payload, "text_ref"), e);
    else if (str_eq_c(type, "tool_call"))
        import_add_call(&r->m, json_text(json_get(payload, "tool_call_id"), &id),
                        json_text(json_get(payload, "name"), &name),
                        json_get(payload, "arguments"));
    else if (str_eq_c(type, "attachment"))
        result = add_images(r, start(r, PART_IMAGES, column(q, P_ID)), e);
    buf_release(&id);
    buf_release(&name);
    return result;
}

/* Gives a message of the turn in the current row; the results of tools in it come first. The tip,
 * the last message of the turn, gets the model and the tokens. */
static int give_link(struct reader *r, const struct link *link, bool tip, struct err *e)
{
    struct import_message *m = &r->m;
    sqlite3_stmt *q, *turn = r->query[TURN];
    struct str payload;
    size_t results = 0;
    int got = 0;

    import_message_clear(m, link->role);
    import_set_session(m, FORMAT, buf_str(&r->thread));
    set_time(m, column(turn, T_TIME));
    for (q = start(r, PARTS, link->hash); (got = step(r, q, e)) > 0;)
        if (str_eq_c(column(q, P_TYPE), "tool_result") &&
            json_check(column(q, P_PAYLOAD), &payload, NULL) &&
            give_result(r, payload, link->hash, ++results, e) < 0)
            return -1;
    m->role = link->role;
    import_set_part(m, link->hash);
    q = start(r, PARTS, link->hash);
    while (got == 0 && !m->text.overflow && !m->calls.overflow && (got = step(r, q, e)) > 0)
        got = add_part(r, q, e);
    if (got < 0)
        return -1;
    if (tip && link->role == ROLE_ASSISTANT) {
        buf_add_str(&m->model, column(turn, T_MODEL));
        set_usage(&m->usage, turn, T_USAGE);
    }
    /* A tool message that had only results. */
    if (link->role == ROLE_TOOL && m->text.len == 0 && !m->text.overflow)
        return 0;
    return import_give(r->source, &r->m, e);
}

/* ---- threads ---- */

/* Sets the links to the messages from `hash` back to one that the thread has, or to the first one.
 * Returns 1 if it came to the first one, 0 if not, -1 with *e set. */
static int follow(struct reader *r, struct str hash, struct err *e)
{
    struct buf at = BUF_INIT(BUF_SMALL);
    int got = 1;

    r->links_count = 0;
    buf_add_str(&at, hash);
    while (at.len > 0 && !hash_map_find(&r->seen, buf_str(&at))) {
        sqlite3_stmt *q = start(r, MESSAGE, buf_str(&at));
        struct link link = {.hash = buf_str(&at)};

        got = step(r, q, e);
        if (got <= 0)
            break;
        (void)hash_map_number(&r->seen, &link.hash);
        link.role = role_of(column(q, M_ROLE));
        if (link.role == ROLE_OTHER)
            link.role = ROLE_USER;
        r->links = mem_grow(r->links, &r->links_cap, r->links_count + 1, sizeof *r->links);
        r->links[r->links_count++] = link;
        buf_set(&at, column(q, M_PARENT));
    }
    if (got == 0)
        import_bad(r->source, "a message of it is missing");
    got = got < 0 ? -1 : at.len == 0;
    buf_release(&at);
    return got;
}

/* Removes the links up to the last response that was sent. `sent` is the hash of the last message
 * that was sent. */
static void drop_earlier(struct reader *r, struct str sent)
{
    size_t i = 0;

    while (i < r->links_count && !str_eq(r->links[i].hash, sent))
        i++;
    while (i < r->links_count && r->links[i].role != ROLE_ASSISTANT)
        i++;
    r->links_count = i;
}

/* Gives the new messages of a turn. */
static int give_turn(struct reader *r, int64_t row, struct err *e)
{
    sqlite3_stmt *turn = r->query[TURN];
    bool first = r->seen.count == 0;
    struct str parent, tip;
    int got = step_first(r, TURN, row, e), whole;

    if (got <= 0)
        return got;
    parent = column(turn, T_PARENT);
    tip = column(turn, T_TIP);
    whole = follow(r, tip.n > 0 ? tip : parent, e);
    /* Does the thread continue a conversation of the older tables? */
    if (whole > 0 && first)
        whole = step(r, start(r, OLD_CONVERSATION, buf_str(&r->thread)), e);
    if (whole > 0)
        drop_earlier(r, parent);
    for (size_t i = r->links_count; whole >= 0 && i-- > 0;)
        if (give_link(r, &r->links[i], i == 0, e) < 0)
            return -1;
    return whole < 0 ? -1 : 0;
}

static int read_turns(struct reader *r, struct err *e)
{
    sqlite3_stmt *rows = r->query[TURNS];
    int got;

    while ((got = step(r, rows, e)) > 0) {
        struct str thread = column(rows, 1);

        if (!str_eq(thread, buf_str(&r->thread)))
            hash_map_release(&r->seen);
        buf_set(&r->thread, thread);
        r->source->number++;
        if (give_turn(r, sqlite3_column_int64(rows, 0), e) < 0)
            return -1;
    }
    return got;
}

/* ---- names ---- */

/* Gives the names of the conversations or the threads of which messages were given. */
static int read_names(struct reader *r, enum query n, struct err *e)
{
    sqlite3_stmt *rows = r->query[n];
    int got;

    while ((got = step(r, rows, e)) > 0) {
        import_message_clear(&r->m, ROLE_USER);
        import_set_session(&r->m, FORMAT, column(rows, 0));
        if (import_give_title(r->source, buf_str(&r->m.session), column(rows, 1), e) < 0)
            return -1;
    }
    return got;
}

/* ---- the database ---- */

static bool has_column(const struct reader *r, const char *table, const char *name)
{
    sqlite3_stmt *q;
    bool has = false;

    if (sqlite3_prepare_v2(r->db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", -1, &q,
                           NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_text(q, 1, table, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 2, name, -1, SQLITE_TRANSIENT);
    has = sqlite3_step(q) == SQLITE_ROW;
    sqlite3_finalize(q);
    return has;
}

/* Makes a statement, which stays NULL if its tables do not exist. Returns 0; -1 with *e set if the
 * database cannot be read, or a table lacks a column: without the statement messages would be left
 * out in silence. */
static int prepare_one(struct reader *r, enum query n, const char *sql, struct err *e)
{
    const char *problem;

    if (sqlite3_prepare_v2(r->db, sql, -1, &r->query[n], NULL) == SQLITE_OK)
        return 0;
    r->query[n] = NULL;
    problem = sqlite3_errmsg(r->db);
    if (sqlite3_errcode(r->db) != SQLITE_ERROR)
        return fail(r, e);
    if (str_starts(str_of(problem), STR("no such table")))
        return 0;
    return err_set(e, ERR_FAILURE, "cannot import '%s': %s", r->source->name, problem);
}

/* Makes a statement for a row, whose last columns depend on the version of llm: the model and the
 * usage. Returns as prepare_one. */
static int prepare_row(struct reader *r, enum query n, const char *table, const char *columns,
                       struct err *e)
{
    struct buf sql = BUF_INIT(BUF_SMALL);
    int result;

    buf_addf(&sql, "SELECT %s, %s, %s, %s FROM %s WHERE rowid = ?1", columns,
             has_column(r, table, "resolved_model") ? "coalesce(resolved_model, model)" : "model",
             has_column(r, table, "input_tokens") ? "input_tokens, output_tokens" : "NULL, NULL",
             has_column(r, table, "token_details") ? "token_details" : "NULL", table);
    result = prepare_one(r, n, buf_c(&sql), e);
    buf_release(&sql);
    return result;
}

/* Refuses a database with tables that are not plain. Returns 0, or -1 with *e set. */
static int check_tables(struct reader *r, struct err *e)
{
    sqlite3_stmt *odd = NULL;
    int result;

    if (sqlite3_prepare_v2(r->db, odd_table, -1, &odd, NULL) != SQLITE_OK)
        return fail(r, e);
    result = step(r, odd, e);
    if (result > 0)
        err_set(e, ERR_FAILURE, "cannot import '%s': '%s' in it is not a plain table",
                r->source->name, (const char *)sqlite3_column_text(odd, 0));
    sqlite3_finalize(odd);
    return result == 0 ? 0 : -1;
}

static int refuse_other(const struct reader *r, struct err *e)
{
    return err_set(e, ERR_ABSENT, "cannot import '%s': it is no database of llm", r->source->name);
}

/* Returns 0 if the database has a table of llm, or -1 with *e set. */
static int check_names(struct reader *r, struct err *e)
{
    static const char sql[] =
        "SELECT 1 FROM sqlite_master WHERE lower(name) IN ('responses', 'turns')";
    sqlite3_stmt *names = NULL;
    int result;

    if (sqlite3_prepare_v2(r->db, sql, -1, &names, NULL) != SQLITE_OK)
        return fail(r, e);
    result = step(r, names, e);
    sqlite3_finalize(names);
    return result == 0 ? refuse_other(r, e) : result < 0 ? -1 : 0;
}

/* Makes the statements. Returns 0; -1 with *e set if it is no database of llm (ERR_ABSENT), or one
 * of a version whose messages cannot be read. */
static int prepare(struct reader *r, struct err *e)
{
    if (check_names(r, e) < 0 || check_tables(r, e) < 0)
        return -1;
    for (size_t i = 0; i < QUERY_COUNT; i++)
        if (queries[i] && prepare_one(r, (enum query)i, queries[i], e) < 0)
            return -1;
    if (prepare_row(r, RESPONSE, "responses",
                    "id, conversation_id, prompt, system, response, datetime_utc", e) < 0 ||
        prepare_row(r, TURN, "turns", "parent_message_hash, tip_message_hash, datetime_utc", e) < 0)
        return -1;
    if ((has_column(r, "conversations", "name") &&
         prepare_one(r, CONVERSATION_NAMES, "SELECT id, name FROM conversations ORDER BY id", e) <
             0) ||
        (has_column(r, "threads", "name") &&
         prepare_one(r, THREAD_NAMES, "SELECT id, name FROM threads ORDER BY id", e) < 0))
        return -1;
    if (r->query[RESPONSES] || (r->query[TURNS] && r->query[MESSAGE] && r->query[PARTS]))
        return 0;
    return refuse_other(r, e);
}

/* Called every WORK_STEP instructions. Returning 1 ends the statement. */
static int count_work(void *arg)
{
    struct reader *r = arg;

    r->work += WORK_STEP;
    return r->work > r->work_max;
}

/* Appends a path as a URI for SQLite. */
static void add_uri(struct buf *uri, const char *path)
{
    buf_add_c(uri, "file:");
    for (; *path; path++) {
        if (*path == '%' || *path == '?' || *path == '#')
            buf_addf(uri, "%%%02X", (unsigned)*path);
        else
            buf_add_byte(uri, *path);
    }
}

static bool exists(const char *path, const char *suffix, bool empty_too)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    struct stat st;
    bool is;

    buf_addf(&name, "%s%s", path, suffix);
    is = stat(buf_c(&name), &st) == 0 && (empty_too || st.st_size > 0);
    buf_release(&name);
    return is;
}

/*
 * Opens the database for reading. `path` is absolute. Returns 0, or -1 with *e set.
 *
 * SQLite creates the files -wal and -shm beside a database in WAL mode, and a connection that only
 * reads does not remove them (https://sqlite.org/wal.html#readonly). If both exist, another program
 * may be writing, and they are used. Without a -wal file, the database is complete and no
 * program has it open; it is opened as `immutable`. If there is only a -wal file, left by a crash
 * or a copy, its index must be in memory. That needs the exclusive mode, but a descriptor that can
 * only read cannot get its lock, so the database is opened without locks.
 */
static int open_database(struct reader *r, const char *path, struct err *e)
{
    struct buf name = BUF_INIT(BUF_SMALL);
    bool wal_mode = false, wal = exists(path, "-wal", false), shm = exists(path, "-shm", true);
    bool alone;
    struct str head;
    int opened;

    if (source_head(r->source, &head, e) < 0)
        return -1;
    wal_mode = head.n > 19 && head.p[18] == 2;
    alone = wal_mode && wal && !shm;
    r->unlocked = wal_mode && !shm;
    add_uri(&name, path);
    if (wal_mode && !wal && !shm)
        buf_add_c(&name, "?immutable=1");
    opened = sqlite3_open_v2(buf_c(&name), &r->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                             alone ? "unix-none" : NULL);
    buf_release(&name);
    if (opened != SQLITE_OK)
        return fail(r, e);
    sqlite3_busy_timeout(r->db, BUSY_MS);
    sqlite3_progress_handler(r->db, WORK_STEP, count_work, r);
    sqlite3_limit(r->db, SQLITE_LIMIT_LENGTH, (int)SOURCE_VALUE_MAX);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if ((alone && sqlite3_exec(r->db, "PRAGMA locking_mode = exclusive", NULL, NULL, NULL)) ||
        sqlite3_exec(r->db, "PRAGMA query_only = on", NULL, NULL, NULL))
        return fail(r, e);
    return 0;
}

static int read_llm(struct source *s, struct err *e)
{
    struct reader r = {.source = s};
    struct stat before, after;
    char *path = s->path ? path_real(s->path, e) : NULL;
    int result = -1;

    if (!s->path)
        return err_set(e, ERR_USAGE, "cannot import '%s': a database must be a file", s->name);
    if (!path)
        return -1;
    import_message_init(&r.m);
    buf_init(&r.session, BUF_SMALL);
    buf_init(&r.system, BUF_LINE);
    buf_init(&r.thread, BUF_SMALL);
    if (stat(path, &before) < 0) {
        err_sys(e, errno, "cannot read '%s'", s->name);
        goto out;
    }
    r.work_max = WORK_MIN + WORK_PER_BYTE * (int64_t)before.st_size;
    if (open_database(&r, path, e) < 0 || prepare(&r, e) < 0 || read_responses(&r, e) < 0 ||
        read_turns(&r, e) < 0 || read_names(&r, CONVERSATION_NAMES, e) < 0 ||
        read_names(&r, THREAD_NAMES, e) < 0)
        goto out;
    if (r.unlocked && (stat(path, &after) < 0 || after.st_size != before.st_size ||
                       after.st_mtime != before.st_mtime || exists(path, "-shm", true)))
        err_set(e, ERR_FAILURE, "'%s' changed while it was read: import it again", s->name);
    else
        result = 0;
out:
    hash_map_release(&r.seen);
    free(r.links);
    for (size_t i = 0; i < QUERY_COUNT; i++)
        sqlite3_finalize(r.query[i]);
    sqlite3_close(r.db);
    import_message_release(&r.m);
    buf_release(&r.session);
    buf_release(&r.system);
    buf_release(&r.thread);
    free(path);
    return result;
}

static bool is_llm(struct str head)
{
    return str_starts(head, (struct str){"SQLite format 3", sizeof "SQLite format 3"});
}

const struct import_format import_llm = {"llm", is_llm, read_llm};
