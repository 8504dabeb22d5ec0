#include "chathist/llm/mcp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

#ifndef CHATHIST_VERSION
#define CHATHIST_VERSION "unknown"
#endif

/* ---- the process of a server ---- */

/* How much one read returns (child_read), and how much is read at most before other servers and
 * calls have their turn. */
#define READ_SIZE ((size_t)65536)
#define STEP_MAX ((size_t)4 << 20)
/* How much of standard error is kept, and how much of that a message shows, in bytes. */
#define LOG_KEPT ((size_t)4096)
#define LOG_SHOWN ((size_t)400)
/* How long a server whose output has ended may take to end, and again after SIGTERM. */
#define LEAVING_MS 500
#define LOOK_MS 5

static bool is_broken(const struct mcp_server *s)
{
    return s->fault.kind != ERR_NONE;
}

/* Reads standard error and keeps the end of it. */
static void read_log(struct mcp_server *s)
{
    size_t total = 0, before = s->log.len;

    while (s->child.err >= 0 && total < STEP_MAX && child_read(&s->child.err, &s->log)) {
        total += s->log.len - before;
        if (s->log.len > LOG_KEPT)
            buf_consume(&s->log, s->log.len - LOG_KEPT);
        before = s->log.len;
    }
}

/* Adds the end of the log on one line, beginning with a whole line of it if one is near enough. */
static void add_log(struct buf *out, struct str log)
{
    struct buf text = BUF_INIT(8 * LOG_KEPT);
    const char *line;

    log = str_trim(log);
    if (log.n == 0)
        return;
    buf_add_c(out, ": ");
    if (log.n > LOG_SHOWN) {
        log = (struct str){log.p + (log.n - LOG_SHOWN), LOG_SHOWN};
        line = memchr(log.p, '\n', log.n);
        if (line)
            log = (struct str){line + 1, (size_t)(log.p + log.n - line) - 1};
        buf_add_c(out, "… ");
    }
    utf8_add_repaired(&text, log);
    vis_add_line(out, buf_str(&text), true);
    buf_release(&text);
}

/* Gives a server up for good: sets its fault, `MCP server 'name' ...`, and ends the process. */
static void give_up(struct mcp_server *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void give_up(struct mcp_server *s, const char *fmt, ...)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    va_list ap;

    if (is_broken(s))
        return;
    read_log(s);
    buf_addf(&text, "MCP server '%s' ", s->name);
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    add_log(&text, buf_str(&s->log));
    err_set(&s->fault, ERR_LIMIT, "%s", buf_c(&text));
    buf_release(&text);
    buf_release(&s->out);
    child_end(&s->child, LEAVING_MS);
}

/* Gives up a server of which `what` has ended. Waits for the process first, because its exit status
 * and its last messages say more. */
static void give_up_ended(struct mcp_server *s, const char *what)
{
    int64_t until = time_ticks() + LEAVING_MS;
    int status;

    child_close(&s->child.in);
    while (!child_ended(&s->child) && time_ticks() < until) {
        read_log(s);
        file_wait(-1, LOOK_MS);
    }
    status = s->child.status;
    if (!child_ended(&s->child))
        give_up(s, "closed its %s", what);
    else if (status > 128)
        give_up(s, "was ended by signal %d", status - 128);
    else
        give_up(s, "ended with status %d", status);
}

/* Fills in what the server waits for. Returns the number of descriptors, 0 if it is broken. */
static size_t server_fds(const struct mcp_server *s, struct pollfd fds[TOOL_FDS])
{
    size_t n = 0;

    if (is_broken(s))
        return 0;
    if (s->child.out >= 0)
        fds[n++] = (struct pollfd){.fd = s->child.out, .events = POLLIN};
    if (s->child.err >= 0)
        fds[n++] = (struct pollfd){.fd = s->child.err, .events = POLLIN};
    if (s->child.in >= 0 && s->out.len > 0)
        fds[n++] = (struct pollfd){.fd = s->child.in, .events = POLLOUT};
    return n;
}

static void write_messages(struct mcp_server *s)
{
    if (s->out.overflow)
        give_up(s, "does not read what it is sent");
    while (s->child.in >= 0 && s->out.len > 0) {
        size_t n = child_write(&s->child.in, buf_str(&s->out));

        if (n == 0)
            return;
        buf_consume(&s->out, n);
    }
}

/* Does one read. Returns false if there is nothing more to read now. */
static bool read_messages(struct mcp_server *s, size_t *total)
{
    struct buf bytes = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;

    if (!child_read(&s->child.out, &bytes)) {
        buf_release(&bytes);
        if (s->child.out < 0)
            give_up_ended(s, "output");
        return false;
    }
    *total += bytes.len;
    if (jsonrpc_feed(&s->in, buf_str(&bytes), &e) < 0)
        give_up(s, "cannot be used: %s", err_text(&e));
    buf_release(&bytes);
    err_release(&e);
    return !is_broken(s);
}

/* Writes and reads as much as is possible without waiting. */
static void exchange(struct mcp_server *s)
{
    bool ended;
    size_t total = 0;

    if (is_broken(s))
        return;
    ended = child_ended(&s->child);
    write_messages(s);
    read_log(s);
    while (!is_broken(s) && total < STEP_MAX && read_messages(s, &total))
        continue;
    if (is_broken(s) || total >= STEP_MAX)
        return;
    /* A process that the server started may keep its output open. Everything that the server
     * itself wrote before it ended, or before it closed its input, has been read here. */
    if (ended || s->child.in < 0)
        give_up_ended(s, "input");
    else
        write_messages(s);
}

static void tell(const struct mcp_server *s, enum mcp_news news, struct str text)
{
    if (s->watch)
        s->watch->tell(s->watch->arg, s->name, news, text);
}

/* ---- the list of tools ---- */

bool mcp_server_name_valid(struct str name)
{
    return tool_name_valid(name) && name.n <= MCP_SERVER_NAME_MAX;
}

/* Returns the text of a member, up to U+0000. The caller frees it. */
static char *text_of(struct str object, const char *key)
{
    struct buf text = BUF_INIT(MCP_LIST_MAX);

    json_decode(json_get(object, key), &text);
    return buf_detach(&text);
}

/* The caller frees the text. */
static char *description_of(struct str entry)
{
    char *text = text_of(entry, "description");

    if (*text != '\0')
        return text;
    free(text);
    return text_of(entry, "title");
}

/* The caller frees the text. */
static char *schema_of(struct str entry)
{
    struct buf schema = BUF_INIT(MCP_LIST_MAX);
    struct str given = json_get(entry, "inputSchema");

    if (json_type(given) == JSON_OBJECT)
        json_add_compact(&schema, given);
    else
        buf_add_c(&schema, "{\"type\":\"object\"}");
    return buf_detach(&schema);
}

static bool needs_task(struct str entry)
{
    struct buf scratch = BUF_INIT(MCP_LIST_MAX);
    struct str support = json_get(json_get(entry, "execution"), "taskSupport");
    bool needs = str_eq_c(json_text(support, &scratch), "required");

    buf_release(&scratch);
    return needs;
}

static bool takes_object(struct str entry)
{
    struct str schema = json_get(entry, "inputSchema");

    return json_is_null(schema) ||
           (json_type(schema) == JSON_OBJECT &&
            (!json_get(schema, "type").p || json_has_type(schema, "object")));
}

static bool has_tool(const struct mcp_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->tools[i]->name, name) == 0)
            return true;
    return false;
}

static void add_tool(struct mcp_server *s, struct str entry, const struct tool_kind *kind)
{
    struct mcp_list *list = &s->coming;
    char *name = text_of(entry, "name");
    struct mcp_tool *t;
    bool valid = *name != '\0' && !has_tool(list, name) && !needs_task(entry);

    if (valid && !takes_object(entry)) {
        tell(s, MCP_LEFT_OUT, str_of(name));
        valid = false;
    }
    if (!valid) {
        free(name);
        return;
    }
    t = mem_zalloc(sizeof *t);
    *t = (struct mcp_tool){.server = s, .name = name};
    t->tool = (struct tool){.description = description_of(entry),
                            .parameters = schema_of(entry),
                            .kind = kind,
                            .source = t};
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
static void add_clean(struct buf *out, const char *text)
{
    for (; *text; text++)
        /* A character outside of ASCII counts once, not once for each byte. */
        if (((unsigned char)*text & 0xc0U) != 0x80)
            buf_add_byte(out, tool_name_valid((struct str){text, 1}) ? *text : '_');
}

static bool is_taken(const struct mcp_list *list, const struct tool *const *others, size_t count,
                     const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(others[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < list->count && list->tools[i]->tool.name; i++)
        if (strcmp(list->tools[i]->tool.name, name) == 0)
            return true;
    return false;
}

void mcp_name_tools(struct mcp_server *s, const struct tool *const *others, size_t others_count)
{
    struct mcp_list *list = &s->list;

    for (size_t i = 0; i < list->count; i++) {
        struct buf full = BUF_INIT(MCP_LIST_MAX), name = BUF_INIT(MCP_LIST_MAX);
        struct buf number = BUF_INIT(BUF_SMALL);

        add_clean(&full, s->name);
        buf_add_c(&full, "__");
        add_clean(&full, list->tools[i]->name);
        for (size_t n = 1; n == 1 || is_taken(list, others, others_count, buf_c(&name)); n++) {
            buf_clear(&number);
            if (n > 1)
                buf_addf(&number, "_%zu", n);
            buf_clear(&name);
            buf_add_str(&name, buf_str(&full));
            buf_truncate(&name, TOOL_NAME_MAX - number.len);
            buf_add_str(&name, buf_str(&number));
        }
        list->tools[i]->tool.name = buf_detach(&name);
        buf_release(&full);
        buf_release(&number);
    }
}

/* ---- results and log messages as text ---- */

/* How much room the line about dropped text needs. */
#define CUT_NOTE_MAX 128

/* Adds `, TEXT` for a member that is a text. */
static void add_detail(struct buf *out, struct str object, const char *key)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str text = json_text(json_get(object, key), &scratch);

    if (text.n > 0) {
        buf_add_c(out, ", ");
        vis_add_line(out, text, false);
    }
    buf_release(&scratch);
}

/* Adds the size of the bytes that a member holds in base64. */
static void add_size(struct buf *out, struct str object, const char *key)
{
    struct str data = json_get(object, key);
    size_t n;

    if (json_type(data) != JSON_STRING)
        return;
    n = data.n - 2;
    while (n > 0 && data.p[n] == '=')
        n--;
    buf_addf(out, ", %zu bytes", n * 3 / 4);
}

/* Adds a line such as `[image, image/png, 1234 bytes]`. */
static void add_described(struct buf *out, struct str type, struct str block, const char *data)
{
    static const char *const details[] = {"uri", "name", "title", "description", "mimeType"};

    buf_add_byte(out, '[');
    vis_add_line(out, type, false);
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        add_detail(out, block, details[i]);
    add_size(out, block, data);
    buf_add_byte(out, ']');
}

static void add_block(struct buf *out, struct str block)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str type = json_text(json_get(block, "type"), &scratch);
    struct str resource = json_get(block, "resource");

    if (str_eq_c(type, "text"))
        json_decode(json_get(block, "text"), out);
    else if (!str_eq_c(type, "resource"))
        add_described(out, type.n > 0 ? type : STR("unknown"), block, "data");
    else if (!json_decode(json_get(resource, "text"), out))
        add_described(out, type, resource, "blob");
    buf_release(&scratch);
}

static void add_blocks(struct buf *text, struct str result)
{
    struct str structured = json_get(result, "structuredContent");
    struct json_iter it = json_iter(json_get(result, "content"));

    for (bool first = true; json_next(&it); first = false) {
        if (!first)
            buf_add_byte(text, '\n');
        add_block(text, it.value);
    }
    if (text->len == 0 && !json_is_null(structured))
        json_add_compact(text, structured);
}

/* Revision 2026-07-28 has `resultType`; without it a result is complete. */
static bool is_complete(struct str result)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str type = json_get(result, "resultType");
    bool complete = json_is_null(type) || str_eq_c(json_text(type, &scratch), "complete");

    buf_release(&scratch);
    return complete;
}

void mcp_result_add(struct buf *out, struct str result, bool *failed)
{
    /* The descriptions of many empty blocks are longer than the message was. */
    struct buf text = BUF_INIT(8 * JSONRPC_MESSAGE_MAX);
    size_t left = out->max - out->len, n;

    *failed = json_is_true(json_get(result, "isError")) || !is_complete(result);
    if (is_complete(result))
        add_blocks(&text, result);
    else
        buf_add_c(&text, "the tool asks for more input, which it cannot be given");
    if (text.len <= left) {
        buf_add_str(out, buf_str(&text));
    } else if (left > CUT_NOTE_MAX) {
        n = utf8_valid((struct str){text.data, left - CUT_NOTE_MAX});
        buf_add(out, text.data, n);
        buf_addf(out, "\n[%zu bytes are left out]", text.len - n);
    }
    buf_release(&text);
}

/* Adds the parameters of notifications/message, `level logger text`. Missing ones are skipped, and
 * data that is not a text is added as JSON. */
static void add_log_message(struct buf *out, struct str params)
{
    static const char *const members[] = {"level", "logger", "data"};
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct str value = json_get(params, members[i]);

        if (json_is_null(value))
            continue;
        if (out->len > 0)
            buf_add_byte(out, ' ');
        if (json_type(value) == JSON_STRING)
            buf_add_str(out, json_text(value, &scratch));
        else
            json_add_compact(out, value);
    }
    buf_release(&scratch);
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

static const struct tool_kind mcp_kind;

/* Queues a request. `params` holds the beginning of an object, which this function completes and
 * frees. Returns the id of the request. */
static int64_t request(struct mcp_server *s, const char *method, struct buf *params)
{
    if (s->stateless) {
        json_add_key(params, "_meta");
        buf_add_byte(params, '{');
        json_add_member(params, META "protocolVersion", STR(STATELESS_REVISION));
        json_add_key(params, META "clientInfo");
        buf_add_c(params, CLIENT_INFO);
        json_add_key(params, META "clientCapabilities");
        buf_add_c(params, "{}}");
    }
    buf_add_byte(params, '}');
    jsonrpc_add_call(&s->out, ++s->last_id, method, buf_str(params));
    buf_release(params);
    return s->last_id;
}

static void greet(struct mcp_server *s)
{
    struct buf params = BUF_INIT(BUF_SMALL);

    buf_add_byte(&params, '{');
    json_add_member(&params, "protocolVersion", STR(REVISION));
    json_add_key(&params, "capabilities");
    buf_add_c(&params, "{}");
    json_add_key(&params, "clientInfo");
    buf_add_c(&params, CLIENT_INFO);
    s->state = MCP_GREETING;
    s->awaited = request(s, "initialize", &params);
}

static void discover(struct mcp_server *s)
{
    struct buf params = BUF_INIT(BUF_SMALL);

    s->stateless = true;
    buf_add_byte(&params, '{');
    s->state = MCP_DISCOVERING;
    s->awaited = request(s, "server/discover", &params);
}

/* The server is ready, with the tools in s->list. */
static void set_ready(struct mcp_server *s)
{
    release_list(&s->coming);
    s->state = MCP_READY;
    s->awaited = 0;
    s->told_slow = false;
}

/* Requests a page of the list; STR_NONE: the first. */
static void request_page(struct mcp_server *s, struct str cursor)
{
    struct buf params = BUF_INIT(2 * JSONRPC_MESSAGE_MAX);

    buf_add_byte(&params, '{');
    if (cursor.n > 0) {
        json_add_key(&params, "cursor");
        buf_add_str(&params, cursor);
    }
    s->state = MCP_LISTING;
    s->awaited = request(s, "tools/list", &params);
}

/* Requests the list from a server whose capabilities say that it has tools. */
static void list_if_any(struct mcp_server *s, struct str result)
{
    if (json_is_null(json_get(json_get(result, "capabilities"), "tools")))
        set_ready(s);
    else
        request_page(s, STR_NONE);
}

static void take_greeting(struct mcp_server *s, struct str result)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str version = json_text(json_get(result, "protocolVersion"), &scratch);
    bool known = false;

    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++)
        known = known || str_eq_c(version, revisions[i]);
    if (known) {
        jsonrpc_add_call(&s->out, 0, "notifications/initialized", STR_NONE);
        list_if_any(s, result);
    } else {
        give_up(s, "speaks protocol version '%.*s', which is not known",
                (int)(version.n < 64 ? version.n : 64), version.p ? version.p : "");
    }
    buf_release(&scratch);
}

static bool supports_stateless(struct str result)
{
    struct json_iter it = json_iter(json_get(result, "supportedVersions"));
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    bool found = false;

    while (!found && json_next(&it))
        found = str_eq_c(json_text(it.value, &scratch), STATELESS_REVISION);
    buf_release(&scratch);
    return found;
}

/* Adds the tools of a page, a ListToolsResult. After the last page they become the list. */
static int take_page(struct mcp_server *s, struct str result, struct err *e)
{
    struct str cursor = json_get(result, "nextCursor");

    for (struct json_iter it = json_iter(json_get(result, "tools")); json_next(&it);) {
        s->coming.bytes += it.value.n;
        if (s->coming.count == MCP_TOOLS_MAX || s->coming.bytes > MCP_LIST_MAX)
            return err_set(e, ERR_LIMIT, "it has more than %d tools, or %zu MiB of them",
                           MCP_TOOLS_MAX, MCP_LIST_MAX >> 20);
        add_tool(s, it.value, &mcp_kind);
    }
    if (json_type(cursor) == JSON_STRING && !str_eq_c(cursor, "\"\"")) {
        if (++s->pages == PAGES_MAX)
            return err_set(e, ERR_LIMIT, "its list of tools has more than %d pages", PAGES_MAX);
        request_page(s, cursor);
        return 0;
    }
    release_list(&s->list);
    s->list = s->coming;
    s->coming = (struct mcp_list){0};
    s->renewed = s->listed;
    s->listed = true;
    set_ready(s);
    return 0;
}

static void keep_old_list(struct mcp_server *s, const char *why)
{
    tell(s, MCP_LIST_LOST, str_of(why));
    set_ready(s);
}

/* Takes the answer that getting ready depends on. */
static int get_ready(struct mcp_server *s, const struct jsonrpc_message *m, struct err *e)
{
    bool ok = m->kind == JSONRPC_RESULT;

    s->awaited = 0;
    if (s->state == MCP_GREETING) {
        if (ok) {
            take_greeting(s, m->body);
        } else {
            jsonrpc_describe_error(&s->refused, m->body);
            discover(s);
        }
    } else if (s->state == MCP_DISCOVERING) {
        if (ok && supports_stateless(m->body))
            list_if_any(s, m->body);
        else
            give_up(s, "refuses to begin: %s", buf_c(&s->refused));
    } else if (ok) {
        return take_page(s, m->body, e);
    } else {
        struct buf why = BUF_INIT(JSONRPC_MESSAGE_MAX);

        jsonrpc_describe_error(&why, m->body);
        if (s->listed)
            keep_old_list(s, buf_c(&why));
        else
            give_up(s, "cannot list its tools: %s", buf_c(&why));
        buf_release(&why);
    }
    return 0;
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

static void finish_call(struct tool_job *job, const struct jsonrpc_message *m)
{
    struct buf text = BUF_INIT(MCP_RESULT_MAX);

    if (m->kind == JSONRPC_RESULT) {
        mcp_result_add(&text, m->body, &job->failed);
        buf_add_str(&job->result, buf_str(&text));
        job->done = true;
    } else {
        jsonrpc_describe_error(&text, m->body);
        tool_fail(job, "the tool cannot be called: %s", buf_c(&text));
    }
    buf_release(&text);
}

static int take_answer(struct mcp_server *s, const struct jsonrpc_message *m, struct err *e)
{
    struct mcp_call *call = find_call(s, m->number);

    if (m->number > 0 && m->number == s->awaited)
        return get_ready(s, m, e);
    if (call)
        finish_call(remove_call(s, call), m);
    else if (m->number <= 0 || m->number > s->last_id)
        return jsonrpc_noise(&s->in, m->body, e);
    /* Other ids are those of calls that were given up. */
    return 0;
}

static void take_notification(struct mcp_server *s, const struct jsonrpc_message *m)
{
    struct buf text = BUF_INIT(2 * JSONRPC_MESSAGE_MAX);

    if (str_eq_c(m->method, "notifications/tools/list_changed"))
        s->changed = true;
    if (s->watch && str_eq_c(m->method, "notifications/message")) {
        add_log_message(&text, m->body);
        tell(s, MCP_MESSAGE, buf_str(&text));
    }
    buf_release(&text);
}

static int take_message(void *arg, const struct jsonrpc_message *m, struct err *e)
{
    struct mcp_server *s = arg;

    if (is_broken(s))
        return 0;
    if (m->kind == JSONRPC_NOTIFICATION) {
        take_notification(s, m);
        return 0;
    }
    if (m->kind != JSONRPC_REQUEST)
        return take_answer(s, m, e);
    if (str_eq_c(m->method, "ping"))
        jsonrpc_add_answer(&s->out, m->id, "result", STR("{}"));
    else
        jsonrpc_add_answer(&s->out, m->id, "error",
                           STR("{\"code\":-32601,\"message\":\"Method not found\"}"));
    return 0;
}

/* Writes and reads without waiting. If the server has failed, its calls fail. */
static void step_server(struct mcp_server *s)
{
    exchange(s);
    while (is_broken(s) && s->calls_count > 0)
        tool_fail(remove_call(s, &s->calls[0]), "%s", err_text(&s->fault));
}

/* ---- calls, as llm/tool makes them ---- */

static struct mcp_tool *tool_of(const struct tool_job *job)
{
    return job->tool->source;
}

static void begin_call(struct tool_job *job)
{
    struct mcp_tool *t = tool_of(job);
    struct mcp_server *s = t->server;
    struct buf params = BUF_INIT(2 * MCP_OUT_MAX);
    struct str args;

    step_server(s);
    if (is_broken(s)) {
        tool_fail(job, "%s", err_text(&s->fault));
        return;
    }
    if (!json_check(job->args, &args, NULL) || json_type(args) != JSON_OBJECT) {
        tool_fail(job, "the arguments are not a JSON object");
        return;
    }
    buf_add_byte(&params, '{');
    json_add_member(&params, "name", str_of(t->name));
    json_add_key(&params, "arguments");
    buf_add_str(&params, args);
    s->calls = mem_grow(s->calls, &s->calls_cap, s->calls_count + 1, sizeof *s->calls);
    job->state = s;
    s->calls[s->calls_count++] =
        (struct mcp_call){.id = request(s, "tools/call", &params), .job = job};
    step_server(s);
}

static size_t fds_of_call(const struct tool_job *job, struct pollfd fds[TOOL_FDS])
{
    return server_fds(tool_of(job)->server, fds);
}

static void step_call(struct tool_job *job)
{
    step_server(tool_of(job)->server);
}

/* Notifies the server that the call was given up. The server continues to run. */
static void stop_call(struct tool_job *job, int64_t until)
{
    struct mcp_server *s = job->state;
    struct buf params = BUF_INIT(BUF_SMALL);

    (void)until;
    for (size_t i = 0; s && i < s->calls_count; i++) {
        if (s->calls[i].job != job)
            continue;
        buf_addf(&params, "{\"requestId\":%" PRId64 ",\"reason\":\"the call was given up\"}",
                 s->calls[i].id);
        jsonrpc_add_call(&s->out, 0, "notifications/cancelled", buf_str(&params));
        remove_call(s, &s->calls[i]);
        step_server(s);
        break;
    }
    buf_release(&params);
}

static const struct tool_kind mcp_kind = {begin_call, fds_of_call, step_call,
                                          NULL,       stop_call,   false};

/* ---- waiting ---- */

/* How often servers that are not ready are stepped at least, in milliseconds. */
#define TICK_MS 100

/* Waits for servers that are not ready and steps them once. Returns 1 while one is not ready, 0 if
 * all are, or -1 with *e set. */
static int step_unready(struct mcp_server *const *servers, size_t count, struct pollfd *fds,
                        int64_t wait, struct err *e)
{
    nfds_t n = 1;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (servers[i]->state == MCP_READY)
            continue;
        any = true;
        n += server_fds(servers[i], fds + n);
    }
    if (!any)
        return 0;
    if (poll(fds, n, (int)(wait < TICK_MS ? wait : TICK_MS)) > 0 && fds[0].revents)
        return err_set(e, ERR_SIGNAL, "interrupted");
    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        if (s->state == MCP_READY)
            continue;
        step_server(s);
        if (!is_broken(s))
            continue;
        if (!s->listed)
            return err_set(e, ERR_LIMIT, "%s", err_text(&s->fault));
        /* The next call reports the fault. */
        set_ready(s);
    }
    return 1;
}

/* Tells of servers that are slow, and gives up those that are not ready after `most`. */
static void check_patience(struct mcp_server *const *servers, size_t count, int64_t waited,
                           int64_t most)
{
    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        if (s->state == MCP_READY)
            continue;
        if (waited >= MCP_SLOW_MS && !s->told_slow) {
            s->told_slow = true;
            tell(s, MCP_SLOW, STR_NONE);
        }
        if (waited < most)
            continue;
        if (s->listed)
            keep_old_list(s, "it takes too long");
        else
            give_up(s, "was not ready in %" PRId64 " s", most / 1000);
    }
}

int mcp_await(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd,
              struct err *e)
{
    int64_t began = time_ticks(), waited;
    struct pollfd *fds = NULL;
    size_t cap = 0;
    int going = 1;

    fds = mem_grow(fds, &cap, count * TOOL_FDS + 1, sizeof *fds);
    while (going > 0) {
        waited = time_ticks() - began;
        check_patience(servers, count, waited, ms);
        fds[0] = (struct pollfd){.fd = cancel_fd, .events = POLLIN};
        going = step_unready(servers, count, fds, waited < ms ? ms - waited : 0, e);
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
        if (!s->changed || !s->listed || is_broken(s))
            continue;
        s->changed = false;
        s->pages = 0;
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

int mcp_start(struct mcp_server *s, const char *name, char *const argv[], char *const env[],
              const char *cwd, const struct mcp_watch *watch, struct err *e)
{
    struct err why = ERR_INIT;

    *s = (struct mcp_server){.name = mem_copy(name, strlen(name)),
                             .child = CHILD_INIT,
                             .fault = ERR_INIT,
                             .watch = watch};
    jsonrpc_init(&s->in, take_message, s);
    buf_init(&s->out, MCP_OUT_MAX);
    buf_init(&s->log, LOG_KEPT + READ_SIZE);
    buf_init(&s->refused, BUF_SMALL);
    /* The server runs as the same user and must not read keys from this process. */
    process_hide();
    if (child_start(&s->child, argv, env, cwd, &why) < 0) {
        err_set(e, ERR_LIMIT, "MCP server '%s' cannot be started: %s", name, err_text(&why));
        err_release(&why);
        return -1;
    }
    greet(s);
    return 0;
}

void mcp_end(struct mcp_server *const *servers, size_t count, int64_t grace_ms, int hurry_fd)
{
    size_t room = 0;
    struct child **children = mem_grow(NULL, &room, count, sizeof(struct child *));

    for (size_t i = 0; i < count; i++)
        children[i] = &servers[i]->child;
    child_end_all(children, count, grace_ms, hurry_fd);
    free(children);
    for (size_t i = 0; i < count; i++) {
        struct mcp_server *s = servers[i];

        jsonrpc_release(&s->in);
        buf_release(&s->out);
        buf_release(&s->log);
        err_release(&s->fault);
        release_list(&s->list);
        release_list(&s->coming);
        buf_release(&s->refused);
        free(s->calls);
        free(s->name);
    }
}
