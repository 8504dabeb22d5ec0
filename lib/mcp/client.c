#include "chathist/mcp/client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/llm/provider_error.h"
#include "chathist/mcp/server.h"
#include "mcp/client.h"

#ifndef CHATHIST_VERSION
#define CHATHIST_VERSION "unknown"
#endif

/* ---- giving a server up ---- */

bool mcp_is_broken(const struct mcp_server *s)
{
    return s->fault.kind != ERR_NONE;
}

/* A server that cannot be used is a failed tool, except for the reasons that have an exit status of
 * their own for a model server, too. */
static enum err_kind fault_kind(enum err_kind kind)
{
    switch (kind) {
    case ERR_AUTH:
    case ERR_NETWORK:
    case ERR_UNTRUSTED:
    case ERR_TIMEOUT:
    case ERR_BUSY:
    case ERR_SIGNAL:
        return kind;
    default:
        return ERR_LIMIT;
    }
}

void mcp_add_noise(const struct mcp_server *s, struct buf *out)
{
    if (s->state != MCP_READY && s->noise > 0)
        buf_addf(out, ": it writes what is no message: '%s'", buf_c(&s->shown));
}

void mcp_give_up(struct mcp_server *s, enum err_kind kind, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    va_list ap;

    if (mcp_is_broken(s))
        return;
    buf_addf(&text, "MCP server '%s' ", s->name);
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    if (s->transport->drop)
        s->transport->drop(s, &text);
    err_set(&s->fault, fault_kind(kind), "%s", buf_c(&text));
    buf_release(&text);
}

static void report_news(const struct mcp_server *s, enum mcp_news news, struct str text)
{
    if (s->watch)
        s->watch->tell(s->watch->arg, s->name, news, text);
}

/* Tells a whole message that begins with the server's name. */
static void warn(const struct mcp_server *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(const struct mcp_server *s, const char *fmt, ...)
{
    struct buf text = BUF_INIT(2 * MCP_MESSAGE_MAX);
    va_list ap;

    buf_addf(&text, "MCP server '%s'", s->name);
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    report_news(s, MCP_WARNING, buf_str(&text));
    buf_release(&text);
}

/* ---- the list of tools ---- */

bool mcp_server_name_valid(struct str name)
{
    return tool_name_valid(name) && name.n <= MCP_SERVER_NAME_MAX;
}

/* Returns the text of a member, or "" if it contains U+0000: the text up to that may be the name of
 * another tool. The caller frees it. */
static char *text_member(struct str object, const char *key)
{
    struct buf text = BUF_INIT(MCP_LIST_MAX);

    json_decode(json_get(object, key), &text);
    if (text.len > 0 && memchr(text.data, '\0', text.len))
        buf_clear(&text);
    return buf_detach(&text);
}

static const struct tool_kind mcp_kind;

static void add_listed_tool(struct mcp_server *s, struct str entry)
{
    struct mcp_list *list = &s->coming;
    struct str schema = json_get(entry, "inputSchema");
    char *name = text_member(entry, "name"), *description;
    const char *why = NULL;
    struct mcp_tool *t;
    bool usable = *name != '\0' &&
                  !json_is_text(json_get(json_get(entry, "execution"), "taskSupport"), "required");

    for (size_t i = 0; i < list->count; i++)
        usable = usable && strcmp(list->tools[i]->name, name) != 0;
    if (usable && !json_is_null(schema) &&
        (json_type(schema) != JSON_OBJECT ||
         (json_get(schema, "type").p && !json_has_type(schema, "object"))))
        why = "its inputSchema is not for an object";
    else if (usable && s->transport->discover_first && s->stateless && !mcp_mirror_valid(schema))
        why = "an x-mcp-header of it is not valid";
    if (why)
        warn(s, ": tool '%.*s' is left out, %s", ERR_SHOWN(str_of(name)), why);
    if (!usable || why) {
        free(name);
        return;
    }
    description = text_member(entry, "description");
    if (*description == '\0') {
        free(description);
        description = text_member(entry, "title");
    }
    t = mem_zalloc(sizeof *t);
    *t = (struct mcp_tool){.server = s, .name = name};
    t->tool = (struct tool){
        .description = description,
        .parameters = tool_parameters(schema),
        .kind = &mcp_kind,
        .source = t,
        .read_only = json_is_true(json_get(json_get(entry, "annotations"), "readOnlyHint"))};
    list->tools = mem_grow(list->tools, &list->cap, list->count + 1, sizeof(struct mcp_tool *));
    list->tools[list->count++] = t;
}

static void release_list(struct mcp_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct mcp_tool *t = list->tools[i];

        free(t->tool.name);
        free(t->tool.description);
        free(t->tool.parameters);
        free(t->name);
        free(t);
    }
    free(list->tools);
    *list = (struct mcp_list){0};
}

/* Adds a name of which each character that a tool's name must not have became `_`. */
static void add_clean_name(struct buf *out, const char *text)
{
    for (; *text; text++)
        /* A character outside of ASCII counts once, not once for each byte. */
        if (((unsigned char)*text & 0xc0U) != 0x80)
            buf_add_byte(out, tool_name_valid((struct str){text, 1}) ? *text : '_');
}

/* Returns whether the others or one of the servers' tools have this name. */
static bool is_taken(const char *name, struct mcp_server *const *servers, size_t count,
                     const struct tool *const *others, size_t others_count)
{
    for (size_t i = 0; i < others_count; i++)
        if (strcmp(others[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < servers[i]->list.count; j++) {
            const char *own = servers[i]->list.tools[j]->tool.name;

            if (own && strcmp(own, name) == 0)
                return true;
        }
    return false;
}

void mcp_name_tools(struct mcp_server *const *servers, size_t count,
                    const struct tool *const *others, size_t others_count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < servers[i]->list.count; j++) {
            struct mcp_tool *t = servers[i]->list.tools[j];
            struct buf name = BUF_INIT(MCP_LIST_MAX), number = BUF_INIT(BUF_SMALL);

            if (t->tool.name)
                continue;
            for (size_t n = 1;
                 n == 1 || is_taken(buf_c(&name), servers, count, others, others_count); n++) {
                buf_clear(&name);
                buf_clear(&number);
                if (n > 1)
                    buf_addf(&number, "_%zu", n);
                add_clean_name(&name, t->server->name);
                buf_add_c(&name, "__");
                add_clean_name(&name, t->name);
                buf_truncate(&name, TOOL_NAME_MAX - number.len);
                buf_add_str(&name, buf_str(&number));
            }
            t->tool.name = buf_detach(&name);
            buf_release(&number);
        }
}

/* ---- getting ready ---- */

/* The newest revision with initialize, and all revisions with it that are spoken. */
#define REVISION "2025-11-25"
static const char *const revisions[] = {REVISION, "2025-06-18", "2025-03-26", "2024-11-05"};
/* The revision without initialize. */
#define STATELESS_REVISION "2026-07-28"

#define CLIENT_INFO "{\"name\":\"chathist\",\"version\":\"" CHATHIST_VERSION "\"}"
#define META "io.modelcontextprotocol/"

/* The most pages that a list of tools may have. */
#define PAGES_MAX 100

enum message_kind { KIND_REQUEST, KIND_NOTIFICATION, KIND_RESULT, KIND_ERROR };

/* A message of a server. Members that it does not have are STR_NONE. */
struct rpc_message {
    enum message_kind kind;
    struct str id;     /* JSON: a string or a number; in an error it may be null */
    int64_t number;    /* the id as a number; -1 if it is not a number or negative */
    struct str method; /* text; in requests and notifications */
    struct str body;   /* JSON: params, result or error; an answer without the last two: STR_NONE */
};

/* How many lines that are not messages (banners, log lines) are skipped before the server counts as
 * unusable, and how much of the first one an error shows, in code points. */
#define NOISE_MAX 200
#define EXCERPT_MAX 80
/* How much of an error's message is shown, in bytes. */
#define ERROR_TEXT_MAX ((size_t)4000)

/* Counts a message that makes no sense, and gives the server up after too many. */
static void count_noise(struct mcp_server *s, struct str what)
{
    if (s->shown.len == 0)
        provider_error_add_excerpt(&s->shown, what, EXCERPT_MAX);
    if (++s->noise > NOISE_MAX)
        mcp_give_up(s, ERR_LIMIT, "cannot be used: it writes what is no message: '%s'",
                    buf_c(&s->shown));
}

/* Adds the body of an error in the form `message (-32601)`. A long message is cut. */
static void describe_error(struct buf *out, struct str error)
{
    struct buf scratch = BUF_INIT(MCP_MESSAGE_MAX);
    struct str message = json_type(error) == JSON_STRING ? error : json_get(error, "message");
    struct str text = str_trim(json_text(message, &scratch));
    int64_t code;

    buf_add_str(out, tool_cut(text, ERROR_TEXT_MAX));
    if (text.n > ERROR_TEXT_MAX)
        buf_add_c(out, "…");
    if (text.n == 0)
        buf_add_c(out, "an error without a message");
    if (json_int(json_get(error, "code"), &code))
        buf_addf(out, " (%" PRId64 ")", code);
    buf_release(&scratch);
}

/* Sends a message with this method and tool. `id` and `value`, that of the other member, are JSON;
 * STR_NONE: it has none. */
static void send_message(struct mcp_server *s, struct mcp_message m, struct str id,
                         const char *member, struct str value)
{
    struct buf json = BUF_INIT(MCP_OUT_MAX);

    buf_add_c(&json, "{\"jsonrpc\":\"2.0\"");
    if (id.n > 0) {
        json_add_key(&json, "id");
        buf_add_str(&json, id);
    }
    if (m.method)
        json_add_member(&json, "method", str_of(m.method));
    if (value.n > 0) {
        json_add_key(&json, member);
        json_add_compact(&json, value); /* the message stays on one line */
    }
    buf_add_c(&json, "}\n");
    m.json = buf_str(&json);
    if (!mcp_is_broken(s))
        s->transport->send(s, &m);
    buf_release(&json);
}

/* Sends a request with this method, tool and arguments. `params` holds the beginning of an object,
 * which this function completes and frees. Returns the id of the request. */
static int64_t request(struct mcp_server *s, struct mcp_message m, struct buf *params)
{
    struct buf id = BUF_INIT(BUF_SMALL);

    m.id = ++s->last_id;
    buf_addf(&id, "%" PRId64, m.id);
    if (s->stateless || m.tool) {
        json_add_key(params, "_meta");
        buf_add_byte(params, '{');
    }
    if (m.tool)
        json_add_member_int(params, "progressToken", m.id);
    if (m.tool && s->session && s->session->len > 0)
        json_add_member(params, MCP_SESSION_KEY, buf_str(s->session));
    if (s->stateless) {
        json_add_member(params, META "protocolVersion", STR(STATELESS_REVISION));
        json_add_key(params, META "clientInfo");
        buf_add_c(params, CLIENT_INFO);
        json_add_key(params, META "clientCapabilities");
        buf_add_c(params, "{}");
    }
    buf_add_c(params, s->stateless || m.tool ? "}}" : "}");
    send_message(s, m, buf_str(&id), "params", buf_str(params));
    buf_release(&id);
    buf_release(params);
    return m.id;
}

/* Begins with server/discover, or with initialize. */
static void begin_greeting(struct mcp_server *s, bool discover)
{
    struct buf params = BUF_INIT(BUF_SMALL);

    s->stateless = discover;
    s->revision = discover ? STATELESS_REVISION : NULL;
    s->state = discover ? MCP_DISCOVERING : MCP_GREETING;
    buf_add_byte(&params, '{');
    if (!discover) {
        json_add_member(&params, "protocolVersion", STR(REVISION));
        json_add_key(&params, "capabilities");
        buf_add_c(&params, "{}");
        json_add_key(&params, "clientInfo");
        buf_add_c(&params, CLIENT_INFO);
    }
    s->awaited = request(
        s, (struct mcp_message){.method = discover ? "server/discover" : "initialize"}, &params);
}

void mcp_greet(struct mcp_server *s)
{
    s->greetings = 1;
    buf_clear(&s->refused);
    begin_greeting(s, s->transport->discover_first);
}

/* Begins in the other way. Each is tried once. */
static void greet_again(struct mcp_server *s, enum err_kind kind)
{
    if (++s->greetings > 2)
        mcp_give_up(s, kind, "refuses to begin: %s", buf_c(&s->refused));
    else
        begin_greeting(s, s->state == MCP_GREETING);
}

static void send_waiting_calls(struct mcp_server *s);

/* The server is ready, with the tools in s->list. */
static void set_ready(struct mcp_server *s)
{
    release_list(&s->coming);
    s->state = MCP_READY;
    s->awaited = 0;
    s->told_slow = false;
    send_waiting_calls(s);
}

/* Requests a page of the list; STR_NONE: the first. */
static void request_page(struct mcp_server *s, struct str cursor)
{
    struct buf params = BUF_INIT(2 * MCP_MESSAGE_MAX);

    buf_add_byte(&params, '{');
    if (cursor.n > 0) {
        json_add_key(&params, "cursor");
        buf_add_str(&params, cursor);
    } else {
        hash_map_release(&s->cursors);
    }
    s->state = MCP_LISTING;
    s->awaited = request(s, (struct mcp_message){.method = "tools/list"}, &params);
}

/* Goes on after the answer to a greeting: requests the list from a server whose capabilities say
 * that it has tools. If this is a new session of a server whose list is known, mcp_renew lists them
 * again. The instructions of the first answer are kept, because a system prompt that stays the same
 * is cached by model servers. */
static void begin_list(struct mcp_server *s, struct str result)
{
    struct buf text = BUF_INIT(MCP_MESSAGE_MAX);
    struct str said = str_trim(json_text(json_get(result, "instructions"), &text));

    if (!s->listed && s->instructions.len == 0)
        buf_add_str(&s->instructions, tool_cut(said, MCP_INSTRUCTIONS_MAX));
    buf_release(&text);
    s->changed = s->changed || s->listed;
    if (s->listed || json_is_null(json_get(json_get(result, "capabilities"), "tools")))
        set_ready(s);
    else
        request_page(s, STR_NONE);
}

static void read_greeting(struct mcp_server *s, struct str result)
{
    struct buf scratch = BUF_INIT(MCP_MESSAGE_MAX);
    struct str version = json_text(json_get(result, "protocolVersion"), &scratch);

    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++)
        if (str_eq_c(version, revisions[i]))
            s->revision = revisions[i];
    if (s->revision) {
        send_message(s, (struct mcp_message){.method = "notifications/initialized"}, STR_NONE,
                     "params", STR_NONE);
        begin_list(s, result);
    } else if (version.n == 0) {
        mcp_give_up(s, ERR_LIMIT,
                    "cannot be used: its answer to initialize has no protocolVersion");
    } else {
        mcp_give_up(s, ERR_LIMIT, "speaks protocol version '%.*s', which is not known",
                    (int)(version.n < 64 ? version.n : 64), version.p ? version.p : "");
    }
    buf_release(&scratch);
}

/* Returns whether a list of revisions names the one without initialize. */
static bool names_stateless(struct str list)
{
    for (struct json_iter it = json_iter(list); json_next(&it);)
        if (json_is_text(it.value, STATELESS_REVISION))
            return true;
    return false;
}

/* Reads the answer to server/discover. An UnsupportedProtocolVersionError that names our revision
 * nevertheless is an invitation to ask again, once. */
static void read_discovery(struct mcp_server *s, const struct rpc_message *m)
{
    struct str supported = json_get(json_get(m->body, "data"), "supported");

    if (m->kind == KIND_RESULT && names_stateless(json_get(m->body, "supportedVersions"))) {
        begin_list(s, m->body);
    } else if (m->kind == KIND_ERROR && names_stateless(supported) && !s->asked_twice) {
        s->asked_twice = true;
        begin_greeting(s, true);
    } else {
        /* What a server says to initialize is closer to the cause. */
        if (m->kind == KIND_ERROR && s->refused.len == 0)
            describe_error(&s->refused, m->body);
        greet_again(s, ERR_LIMIT);
    }
}

/* Adds the tools of a page, a ListToolsResult. After the last page they become the list. A cursor
 * is opaque: it goes back unchanged. Only in the revisions before 2026-07-28 an empty
 * one is the end, because servers of theirs mean that. */
static void read_page(struct mcp_server *s, struct str result)
{
    struct str cursor = json_get(result, "nextCursor");
    bool more = !json_is_null(cursor) && !str_eq_c(cursor, "false") &&
                (s->stateless || !str_eq_c(cursor, "\"\""));

    for (struct json_iter it = json_iter(json_get(result, "tools")); json_next(&it);) {
        s->coming.bytes += it.value.n;
        if (s->coming.count == MCP_TOOLS_MAX || s->coming.bytes > MCP_LIST_MAX) {
            mcp_give_up(s, ERR_LIMIT,
                        "cannot be used: it has more than %d tools, or %zu MiB of them",
                        MCP_TOOLS_MAX, MCP_LIST_MAX >> 20);
            return;
        }
        add_listed_tool(s, it.value);
    }
    if (more && hash_map_find(&s->cursors, cursor)) {
        warn(s, " repeats a cursor: the list of its tools ends there");
    } else if (more && s->cursors.count + 1 < PAGES_MAX) {
        hash_map_add(&s->cursors, cursor);
        request_page(s, cursor);
        return;
    } else if (more) {
        mcp_give_up(s, ERR_LIMIT, "cannot be used: its list of tools has more than %d pages",
                    PAGES_MAX);
        return;
    }
    release_list(&s->list);
    s->list = s->coming;
    s->coming = (struct mcp_list){0};
    s->renewed = s->listed;
    s->listed = true;
    set_ready(s);
}

/* The list cannot be had. If there is an older one, that stays. */
static void lose_list(struct mcp_server *s, enum err_kind kind, const char *why)
{
    if (!s->listed) {
        mcp_give_up(s, kind, "cannot list its tools: %s", why);
        return;
    }
    warn(s, " cannot list its tools anew: %s", why);
    set_ready(s);
}

/* Reads the answer that getting ready depends on. */
static void read_step(struct mcp_server *s, const struct rpc_message *m)
{
    bool ok = m->kind == KIND_RESULT;

    s->awaited = 0;
    if (s->state == MCP_DISCOVERING) {
        read_discovery(s, m);
    } else if (s->state == MCP_GREETING && ok) {
        read_greeting(s, m->body);
    } else if (s->state == MCP_GREETING) {
        buf_clear(&s->refused);
        describe_error(&s->refused, m->body);
        greet_again(s, ERR_LIMIT);
    } else if (ok) {
        read_page(s, m->body);
    } else {
        struct buf why = BUF_INIT(MCP_MESSAGE_MAX);

        describe_error(&why, m->body);
        lose_list(s, ERR_LIMIT, buf_c(&why));
        buf_release(&why);
    }
}

/* ---- messages ---- */

static struct mcp_call *find_call(struct mcp_server *s, int64_t id)
{
    for (size_t i = 0; i < s->calls_count; i++)
        if (s->calls[i].id == id)
            return &s->calls[i];
    return NULL;
}

/* Removes a call. Returns its job. */
static struct tool_job *remove_call(struct mcp_server *s, struct mcp_call *call)
{
    struct tool_job *job = call->job;

    job->state = NULL;
    *call = s->calls[--s->calls_count];
    return job;
}

static void finish_call(struct tool_job *job, const struct rpc_message *m)
{
    struct buf text = BUF_INIT(MCP_MESSAGE_MAX), data = BUF_INIT(MCP_MESSAGE_MAX);

    if (m->kind == KIND_RESULT) {
        mcp_result_read(job, m->body);
    } else {
        /* Servers name a missing argument in `data`. */
        if (!json_is_null(json_get(m->body, "data")))
            json_add_compact(&data, json_get(m->body, "data"));
        describe_error(&text, m->body);
        buf_add_c(&text, data.len > 0 ? ": " : "");
        buf_add_str(&text, tool_cut(buf_str(&data), ERROR_TEXT_MAX));
        tool_fail(job, "the tool cannot be called: %s", buf_c(&text));
    }
    buf_release(&text);
    buf_release(&data);
}

/* How long the calls under way may still take after as many answers with the id of no request: one
 * of these was probably meant for each. */
#define WRONG_ID_MS 2000

/* Counts an answer with the id of no request. */
static void read_wrong_id(struct mcp_server *s, const struct rpc_message *m)
{
    static const char why[] = "its answer does not have the id of the request";
    int64_t soon = time_ticks() + WRONG_ID_MS;

    if (s->state == MCP_LISTING) {
        lose_list(s, ERR_LIMIT, why);
    } else if (s->state != MCP_READY) {
        mcp_give_up(s, ERR_LIMIT, "cannot be used: %s", why);
    } else {
        count_noise(s, m->body);
        s->wrong_ids++;
        for (size_t i = 0; s->wrong_ids >= s->calls_count && i < s->calls_count; i++) {
            struct tool_job *job = s->calls[i].job;

            if (job->deadline > soon) {
                job->deadline = soon;
                job->overdue = "the server answered with the id of no request";
            }
        }
    }
}

static void read_reply(struct mcp_server *s, const struct rpc_message *m)
{
    struct mcp_call *call = m->number > 0 ? find_call(s, m->number) : NULL;
    bool step = m->number > 0 && m->number == s->awaited;
    /* An error has no id if the server could not read the request. */
    bool unnamed = m->kind == KIND_ERROR && json_is_null(m->id) && m->number < 0;

    if (unnamed && s->awaited > 0 && s->calls_count == 0)
        step = true;
    else if (unnamed && s->awaited == 0 && s->calls_count == 1 && s->calls[0].id > 0)
        call = s->calls;
    /* With other answers a server could send messages without end. */
    if (call || step)
        s->unasked = 0;
    if (step && m->kind == KIND_ERROR && json_is_null(m->body))
        mcp_give_up(s, ERR_LIMIT, "cannot be used: its answer has neither a result nor an error");
    else if (step)
        read_step(s, m);
    else if (call)
        finish_call(remove_call(s, call), m);
    else if (m->number <= 0 || m->number > s->last_id)
        read_wrong_id(s, m);
    /* Other ids are those of calls that were given up. */
}

/* Tells the parameters of notifications/message, `level logger text`. Missing ones are skipped, and
 * data that is not a text is added as JSON. */
static void tell_log(const struct mcp_server *s, struct str params)
{
    static const char *const members[] = {"level", "logger", "data"};
    struct buf text = BUF_INIT(2 * MCP_MESSAGE_MAX), scratch = BUF_INIT(MCP_MESSAGE_MAX);

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct str value = json_get(params, members[i]);

        if (json_is_null(value))
            continue;
        if (text.len > 0)
            buf_add_byte(&text, ' ');
        if (json_type(value) == JSON_STRING)
            buf_add_str(&text, json_text(value, &scratch));
        else
            json_add_compact(&text, value);
    }
    report_news(s, MCP_LOG, buf_str(&text));
    buf_release(&text);
    buf_release(&scratch);
}

static void read_notification(struct mcp_server *s, const struct rpc_message *m)
{
    struct mcp_call *call = NULL;
    int64_t token;

    if (str_eq_c(m->method, "notifications/tools/list_changed"))
        s->changed = true;
    if (str_eq_c(m->method, "notifications/progress") &&
        json_int(json_get(m->body, "progressToken"), &token) && token > 0)
        call = find_call(s, token);
    if (call && call->job->timeout_ms > 0) {
        int64_t now = time_ticks();

        call->job->deadline = now + call->job->timeout_ms;
        /* A long call may report more than MCP_UNASKED_MAX times, but not within a second. */
        if (now - s->progressed >= 1000) {
            s->progressed = now;
            s->unasked = 0;
        }
    }
    if (str_eq_c(m->method, "notifications/message"))
        tell_log(s, m->body);
}

/* ---- reading: JSON-RPC 2.0 (jsonrpc.org/specification) ---- */

/* Reads a message. Returns false if the object is not a message. The method is decoded into
 * `method`. */
static bool parse_message(struct str object, struct rpc_message *m, struct buf *method)
{
    enum { VERSION, ID, METHOD, PARAMS, RESULT, ERROR, COUNT };
    static const char *const keys[COUNT] = {"jsonrpc", "id", "method", "params", "result", "error"};
    struct str got[COUNT], id;
    int64_t number;
    bool has_id;

    json_pick(object, keys, got, COUNT);
    has_id = json_type(got[ID]) == JSON_STRING || json_type(got[ID]) == JSON_NUMBER;
    *m = (struct rpc_message){.id = got[ID], .number = -1};
    /* Some servers send the number as a string. */
    if (!json_plain(m->id) || !json_check(json_body(m->id), &id, NULL))
        id = m->id;
    if (json_int(id, &number) && number >= 0)
        m->number = number;
    if (json_type(got[METHOD]) == JSON_STRING) {
        m->method = json_text(got[METHOD], method);
        m->body = got[PARAMS];
        m->kind = has_id ? KIND_REQUEST : KIND_NOTIFICATION;
        return true;
    }
    m->kind = json_type(got[ERROR]) == JSON_OBJECT || got[RESULT].n == 0 ? KIND_ERROR : KIND_RESULT;
    m->body = got[m->kind == KIND_ERROR ? ERROR : RESULT];
    /* An answer without a result and an error is an error: its request gets no other one. */
    return json_type(got[ERROR]) == JSON_OBJECT ||
           has_id + (m->body.n > 0) + (got[VERSION].n > 0) > 1;
}

static void dispatch_message(struct mcp_server *s, struct str object)
{
    struct buf method = BUF_INIT(MCP_MESSAGE_MAX);
    struct rpc_message m;

    if (!parse_message(object, &m, &method))
        count_noise(s, object);
    else if (m.kind == KIND_RESULT || m.kind == KIND_ERROR)
        read_reply(s, &m);
    else if (++s->unasked > MCP_UNASKED_MAX)
        mcp_give_up(s, ERR_LIMIT, "cannot be used: it sent %d messages and no answer",
                    MCP_UNASKED_MAX);
    else if (m.kind == KIND_NOTIFICATION)
        read_notification(s, &m);
    else if (str_eq_c(m.method, "ping"))
        send_message(s, (struct mcp_message){0}, m.id, "result", STR("{}"));
    else
        send_message(s, (struct mcp_message){0}, m.id, "error",
                     STR("{\"code\":-32601,\"message\":\"Method not found\"}"));
    buf_release(&method);
}

void mcp_receive(struct mcp_server *s, struct str text)
{
    struct buf repaired = BUF_INIT(3 * MCP_MESSAGE_MAX);
    struct str value;

    if (mcp_is_broken(s))
        return;
    if (text.n > MCP_MESSAGE_MAX) {
        mcp_give_up(s, ERR_LIMIT, "cannot be used: it sent a message of more than %zu MiB",
                    MCP_MESSAGE_MAX >> 20);
        return;
    }
    text = str_trim(text);
    if (utf8_valid(text) < text.n) {
        utf8_add_repaired(&repaired, text);
        text = buf_str(&repaired);
    }
    if (json_check(text, &value, NULL)) {
        if (json_type(value) == JSON_ARRAY && str_find(value, STR("\"jsonrpc\"")))
            mcp_give_up(s, ERR_LIMIT, "cannot be used: it sent several messages as a JSON array");
        else
            dispatch_message(s, value);
    } else if (text.n > 0) {
        /* The receiver of a line that is meant as a message would wait for it. Frames with headers
         * are the transport of the Language Server Protocol; they end without a newline. */
        if (str_starts(text, STR("Content-Length:")) ||
            (str_starts(text, STR("{")) && str_find(text, STR("\"jsonrpc\"")))) {
            s->noise = NOISE_MAX;
            buf_clear(&s->shown);
        }
        count_noise(s, text);
    }
    buf_release(&repaired);
}

/* ---- what a transport reports ---- */

void mcp_receive_error(struct mcp_server *s, int64_t id, struct str error)
{
    read_reply(s, &(struct rpc_message){.kind = KIND_ERROR, .number = id, .body = error});
}

void mcp_lose_answer(struct mcp_server *s, int64_t id, const struct err *why)
{
    struct mcp_call *call = find_call(s, id);

    if (id == s->awaited) {
        s->awaited = 0;
        if (s->state == MCP_LISTING) {
            lose_list(s, why->kind, err_text(why));
        } else if (why->kind == ERR_AUTH) {
            mcp_give_up(s, why->kind, "refuses access: %s", err_text(why));
        } else if (why->kind != ERR_REQUEST && why->kind != ERR_BUSY && why->kind != ERR_REFUSED &&
                   why->kind != ERR_TOO_LONG) {
            mcp_give_up(s, why->kind, "%s: %s",
                        fault_kind(why->kind) == ERR_LIMIT ? "cannot be used" : "cannot be reached",
                        err_text(why));
        } else {
            if (s->state == MCP_GREETING || s->refused.len == 0)
                buf_set(&s->refused, str_of(err_text(why)));
            greet_again(s, why->kind);
        }
    } else if (call) {
        tool_fail(remove_call(s, call), "the tool cannot be called: %s", err_text(why));
    }
}

void mcp_lose_session(struct mcp_server *s, int64_t id)
{
    struct mcp_call *call = find_call(s, id);

    if (call && call->again) {
        tool_fail(remove_call(s, call), "the tool cannot be called: the server ended its session");
    } else if (call) {
        call->again = true;
        call->id = 0;
    }
    if (s->state != MCP_READY && !s->listed)
        mcp_give_up(s, ERR_LIMIT, "ended its session before it was ready");
    else if (s->state == MCP_READY || s->state == MCP_LISTING) {
        s->greetings = 2;
        begin_greeting(s, false);
    }
}

bool mcp_awaits(struct mcp_server *s, int64_t id)
{
    return id > 0 && (id == s->awaited || find_call(s, id));
}

/* Writes and reads without waiting. If the server has failed, its calls fail. */
static void step_server(struct mcp_server *s)
{
    s->transport->step(s);
    while (mcp_is_broken(s) && s->calls_count > 0)
        tool_fail(remove_call(s, &s->calls[0]), "%s", err_text(&s->fault));
}

/* ---- calls, as llm/tool makes them ---- */

static struct mcp_tool *tool_of(const struct tool_job *job)
{
    return job->tool->source;
}

/* Sends the calls that were made before the server was ready, or that it did not take. */
static void send_waiting_calls(struct mcp_server *s)
{
    for (size_t i = 0; i < s->calls_count; i++) {
        const struct mcp_tool *t = tool_of(s->calls[i].job);
        struct buf params = BUF_INIT(2 * MCP_OUT_MAX);
        struct mcp_message m = {.method = "tools/call", .tool = t};

        if (s->calls[i].id != 0)
            continue;
        /* begin_call has checked them. */
        json_check(s->calls[i].job->args, &m.args, NULL);
        buf_add_byte(&params, '{');
        json_add_member(&params, "name", str_of(t->name));
        json_add_key(&params, "arguments");
        buf_add_str(&params, m.args);
        s->calls[i].id = request(s, m, &params);
    }
}

static void begin_call(struct tool_job *job)
{
    struct mcp_server *s = tool_of(job)->server;
    struct str args;

    step_server(s);
    if (mcp_is_broken(s)) {
        tool_fail(job, "%s", err_text(&s->fault));
        return;
    }
    if (!json_check(job->args, &args, NULL) || json_type(args) != JSON_OBJECT) {
        tool_fail(job, "the arguments are not a JSON object");
        return;
    }
    s->calls = mem_grow(s->calls, &s->calls_cap, s->calls_count + 1, sizeof *s->calls);
    if (s->calls_count == 0)
        s->wrong_ids = 0;
    job->state = s;
    s->calls[s->calls_count++] = (struct mcp_call){.job = job};
    if (s->state == MCP_READY)
        send_waiting_calls(s);
    step_server(s);
}

static size_t fds_of_call(const struct tool_job *job, struct pollfd fds[TOOL_FDS])
{
    const struct mcp_server *s = tool_of(job)->server;

    return s->transport->fds(s, fds);
}

static void step_call(struct tool_job *job)
{
    step_server(tool_of(job)->server);
}

/* The server continues to run. It is notified that the call was given up, if the call was sent.
 * 2026-07-28 over HTTP has no such notification: the end of the response says it. */
static void stop_call(struct tool_job *job, int64_t until)
{
    struct mcp_server *s = job->state;
    struct buf params = BUF_INIT(BUF_SMALL);
    size_t i = 0;
    int64_t id;

    (void)until;
    if (!s)
        return;
    while (s->calls[i].job != job)
        i++;
    id = s->calls[i].id;
    buf_addf(&params, "{\"requestId\":%" PRId64 ",\"reason\":\"the call was given up\"}", id);
    if (id > 0 && (!s->stateless || !s->transport->forget))
        send_message(s, (struct mcp_message){.method = "notifications/cancelled"}, STR_NONE,
                     "params", buf_str(&params));
    if (id > 0 && s->transport->forget)
        s->transport->forget(s, id);
    buf_release(&params);
    remove_call(s, &s->calls[i]);
    step_server(s);
}

static const struct tool_kind mcp_kind = {begin_call, fds_of_call, step_call,
                                          NULL,       stop_call,   false};

/* ---- waiting ---- */

/* How often servers that are not ready are stepped at least, in milliseconds. */
#define TICK_MS 100
/* How soon, if one of them waits for something that is no descriptor. */
#define SOON_MS 5

/* Tells that a server is slow, and gives it up if it is not ready after `most`. */
static void be_patient(struct mcp_server *s, int64_t waited, int64_t most)
{
    struct buf noise = BUF_INIT(BUF_SMALL);

    if (waited >= MCP_SLOW_MS && !s->told_slow) {
        s->told_slow = true;
        report_news(s, MCP_SLOW, STR_NONE);
    }
    if (waited >= most && s->listed) {
        lose_list(s, ERR_LIMIT, "it takes too long");
    } else if (waited >= most) {
        mcp_add_noise(s, &noise);
        mcp_give_up(s, ERR_LIMIT, "was not ready in %" PRId64 " s%s", most / 1000, buf_c(&noise));
    }
    buf_release(&noise);
}

/* Waits until a server that is not ready has something to do, up to `left` milliseconds. `fds` has
 * room for all of them, after cancel_fd. Returns 1, 0 if all servers are ready, or -1 with *e set
 * (ERR_SIGNAL). */
static int await_unready(struct mcp_server *const *servers, size_t count, struct pollfd *fds,
                         int64_t left, struct err *e)
{
    int64_t wait = left < TICK_MS ? left : TICK_MS;
    bool any = false;
    nfds_t n = 1;

    for (size_t i = 0; i < count; i++) {
        size_t more;

        if (servers[i]->state == MCP_READY)
            continue;
        any = true;
        more = servers[i]->transport->fds(servers[i], fds + n);
        if (more == 0 && wait > SOON_MS)
            wait = SOON_MS;
        n += more;
    }
    if (any && poll(fds, n, wait > 0 ? (int)wait : 0) > 0 && fds[0].revents)
        return err_set(e, ERR_SIGNAL, "interrupted");
    return any;
}

int mcp_await(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd,
              struct err *e)
{
    int64_t began = time_ticks(), waited;
    struct pollfd *fds;
    size_t cap = 0;
    int going = 1;

    fds = mem_grow(NULL, &cap, count * TOOL_FDS + 1, sizeof *fds);
    fds[0] = (struct pollfd){.fd = cancel_fd, .events = POLLIN};
    while (going > 0) {
        waited = time_ticks() - began;
        for (size_t i = 0; i < count; i++)
            if (servers[i]->state != MCP_READY)
                be_patient(servers[i], waited, ms);
        going = await_unready(servers, count, fds, ms - waited, e);
        for (size_t i = 0; going > 0 && i < count; i++) {
            struct mcp_server *s = servers[i];

            if (s->state == MCP_READY)
                continue;
            step_server(s);
            if (mcp_is_broken(s) && !s->listed)
                going = err_set(e, s->fault.kind, "%s", err_text(&s->fault));
            else if (mcp_is_broken(s))
                set_ready(s); /* the next call reports the fault */
        }
    }
    free(fds);
    return going;
}

bool mcp_renew(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd)
{
    bool asked = false, renewed = false;

    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        step_server(s);
        if (!s->changed || !s->listed || mcp_is_broken(s))
            continue;
        s->changed = false;
        request_page(s, STR_NONE);
        asked = true;
    }
    /* After an interrupt cancel_fd stays readable, so the caller notices it as well. */
    if (asked)
        mcp_await(servers, count, ms, cancel_fd, NULL);
    for (size_t i = 0; i < count; i++) {
        if (servers[i]->state != MCP_READY) {
            set_ready(servers[i]);
            servers[i]->changed = true;
        }
        renewed = renewed || servers[i]->renewed;
        servers[i]->renewed = false;
    }
    return renewed;
}

/* ---- start and end ---- */

void mcp_init(struct mcp_server *s, const char *name, const struct mcp_transport *transport,
              void *link, const struct mcp_watch *watch)
{
    *s = (struct mcp_server){.name = mem_text(name),
                             .transport = transport,
                             .link = link,
                             .fault = ERR_INIT,
                             .watch = watch};
    buf_init(&s->shown, BUF_SMALL);
    buf_init(&s->refused, BUF_SMALL);
    buf_init(&s->instructions, MCP_INSTRUCTIONS_MAX);
}

void mcp_end(struct mcp_server *const *servers, size_t count, int64_t grace_ms, int hurry_fd)
{
    static const struct mcp_transport *const transports[] = {&mcp_http_transport,
                                                             &mcp_stdio_transport};
    size_t room = 0;
    struct mcp_server **own = mem_grow(NULL, &room, count, sizeof(struct mcp_server *));

    for (size_t k = 0; k < 2; k++) {
        size_t n = 0;

        for (size_t i = 0; i < count; i++)
            if (servers[i]->transport == transports[k])
                own[n++] = servers[i];
        if (n > 0)
            transports[k]->end(own, n, grace_ms, hurry_fd);
    }
    free(own);
    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        buf_release(&s->shown);
        err_release(&s->fault);
        release_list(&s->list);
        release_list(&s->coming);
        hash_map_release(&s->cursors);
        buf_release(&s->refused);
        buf_release(&s->instructions);
        free(s->calls);
        free(s->name);
    }
}
