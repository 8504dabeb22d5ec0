#include "chathist/mcp/server.h"

#include <errno.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"

/* The longest message of a client, in bytes. */
#define MESSAGE_MAX ((size_t)16 << 20)
/* How long a client may keep the list of tools, in milliseconds. */
#define LIST_MS 3600000

#define STATELESS "2026-07-28"
static const char *const revisions[] = {STATELESS, "2025-11-25", "2025-06-18", "2025-03-26",
                                        "2024-11-05"};
#define REVISION_KEY "io.modelcontextprotocol/protocolVersion"

enum rpc_error {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_REVISION = -32022, /* UnsupportedProtocolVersionError */
};

/* A request and its answer. */
struct request {
    const struct mcp_service *service;
    struct str id; /* JSON */
    struct str params;
    bool stateless;  /* its revision has no initialize */
    struct buf body; /* the body of the answer: `"result":{...}` or `"error":{...}` */
};

static void add_revisions(struct buf *out)
{
    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++)
        buf_addf(out, "%c\"%s\"", i > 0 ? ',' : '[', revisions[i]);
    buf_add_byte(out, ']');
}

static void set_error(struct request *r, enum rpc_error code, const char *text, struct str about)
{
    struct buf message = BUF_INIT(BUF_LINE);

    buf_add_c(&message, text);
    if (about.n > 0)
        buf_addf(&message, ": '%.*s'", ERR_SHOWN(about));
    buf_set(&r->body, STR("\"error\":{"));
    json_add_member_int(&r->body, "code", code);
    json_add_member(&r->body, "message", buf_str(&message));
    if (code == RPC_REVISION) {
        json_add_key(&r->body, "data");
        buf_add_c(&r->body, "{\"supported\":");
        add_revisions(&r->body);
        json_add_member(&r->body, "requested", about);
        buf_add_byte(&r->body, '}');
    }
    buf_add_byte(&r->body, '}');
    buf_release(&message);
}

/* ---- the methods ---- */

/* Begins the result. */
static void begin_result(struct request *r)
{
    buf_set(&r->body, STR("\"result\":{"));
    if (r->stateless)
        json_add_member(&r->body, "resultType", STR("complete"));
}

/* Adds how long a list may be kept, and ends the result. */
static void end_list(struct request *r)
{
    if (r->stateless) {
        json_add_member_int(&r->body, "ttlMs", LIST_MS);
        json_add_member(&r->body, "cacheScope", STR("public"));
    }
    buf_add_byte(&r->body, '}');
}

static void add_identity(struct request *r)
{
    const struct mcp_service *s = r->service;

    json_add_key(&r->body, "capabilities");
    buf_add_c(&r->body, "{\"tools\":{}}");
    json_add_key(&r->body, "serverInfo");
    buf_add_byte(&r->body, '{');
    json_add_member(&r->body, "name", str_of(s->name));
    json_add_member(&r->body, "version", str_of(s->version));
    buf_add_byte(&r->body, '}');
    json_add_member(&r->body, "instructions", str_of(s->instructions));
}

static void initialize(struct request *r)
{
    /* The first of the list is not for this method. */
    const char *revision = revisions[1];

    for (size_t i = 2; i < sizeof revisions / sizeof *revisions; i++)
        if (json_is_text(json_get(r->params, "protocolVersion"), revisions[i]))
            revision = revisions[i];
    begin_result(r);
    json_add_member(&r->body, "protocolVersion", str_of(revision));
    add_identity(r);
    buf_add_byte(&r->body, '}');
}

static void discover(struct request *r)
{
    r->stateless = true;
    begin_result(r);
    json_add_key(&r->body, "supportedVersions");
    add_revisions(&r->body);
    add_identity(r);
    end_list(r);
}

static void ping(struct request *r)
{
    begin_result(r);
    buf_add_byte(&r->body, '}');
}

static void list_tools(struct request *r)
{
    begin_result(r);
    json_add_key(&r->body, "tools");
    for (size_t i = 0; i < r->service->tools_count; i++) {
        const struct mcp_offer *tool = &r->service->tools[i];

        buf_add_c(&r->body, i > 0 ? ",{" : "[{");
        json_add_member(&r->body, "name", str_of(tool->name));
        json_add_member(&r->body, "title", str_of(tool->title));
        json_add_member(&r->body, "description", str_of(tool->description));
        buf_addf(&r->body, ",\"inputSchema\":%s", tool->schema);
        buf_add_c(&r->body, ",\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}");
    }
    buf_add_byte(&r->body, ']');
    end_list(r);
}

static void call_tool(struct request *r)
{
    struct buf scratch = BUF_INIT(BUF_LINE), text = BUF_INIT(SIZE_MAX);
    struct str name = json_text(json_get(r->params, "name"), &scratch);
    struct str args = json_get(r->params, "arguments");
    size_t tool = 0;
    bool good;

    while (tool < r->service->tools_count && !str_eq_c(name, r->service->tools[tool].name))
        tool++;
    if (tool == r->service->tools_count) {
        set_error(r, RPC_PARAMS, "unknown tool", name);
    } else if (!json_is_null(args) && json_type(args) != JSON_OBJECT) {
        set_error(r, RPC_PARAMS, "the arguments are no object", STR(""));
    } else {
        good = r->service->call(r->service->arg, tool, json_is_null(args) ? STR("{}") : args,
                                json_get(r->params, "_meta"), &text);
        begin_result(r);
        json_add_key(&r->body, "content");
        buf_add_c(&r->body, "[{\"type\":\"text\"");
        json_add_member(&r->body, "text", buf_str(&text));
        buf_addf(&r->body, "}],\"isError\":%s}", good ? "false" : "true");
    }
    buf_release(&scratch);
    buf_release(&text);
}

static const struct {
    const char *name;
    void (*answer)(struct request *r);
} methods[] = {
    {"initialize", initialize}, {"server/discover", discover}, {"ping", ping},
    {"tools/list", list_tools}, {"tools/call", call_tool},
};

/* ---- messages ---- */

/* Answers a request whose method is a string. */
static void answer_request(struct request *r, struct str method)
{
    struct buf scratch = BUF_INIT(BUF_LINE), name = BUF_INIT(BUF_LINE);
    struct str revision = json_text(json_get(json_get(r->params, "_meta"), REVISION_KEY), &scratch);
    struct str called = json_text(method, &name);
    size_t known = 0, i = 0;

    while (known < sizeof revisions / sizeof *revisions && !str_eq_c(revision, revisions[known]))
        known++;
    while (i < sizeof methods / sizeof *methods && !str_eq_c(called, methods[i].name))
        i++;
    r->stateless = str_eq_c(revision, STATELESS);
    if (revision.n > 0 && known == sizeof revisions / sizeof *revisions)
        set_error(r, RPC_REVISION, "unsupported protocol version", revision);
    else if (i == sizeof methods / sizeof *methods)
        set_error(r, RPC_METHOD, "unknown method", called);
    else
        methods[i].answer(r);
    buf_release(&scratch);
    buf_release(&name);
}

/* Adds the answer to a message, if it has one. STR_NONE is a message that is no JSON. */
static void answer_message(const struct mcp_service *s, struct str message, struct buf *out)
{
    struct request r = {.service = s, .id = STR("null"), .body = BUF_INIT(SIZE_MAX)};
    struct str method = json_get(message, "method"), id = json_get(message, "id");

    r.params = json_get(message, "params");
    if (json_type(id) == JSON_STRING || json_type(id) == JSON_NUMBER)
        r.id = id;
    if (!message.p)
        set_error(&r, RPC_PARSE, "this is no JSON", STR(""));
    else if (json_type(method) != JSON_STRING || !json_is_text(json_get(message, "jsonrpc"), "2.0"))
        set_error(&r, RPC_INVALID, "this is no request of JSON-RPC 2.0", STR(""));
    else if (id.p && r.id.p != id.p)
        set_error(&r, RPC_INVALID, "the id is neither a string nor a number", STR(""));
    else if (id.p)
        answer_request(&r, method);
    /* A notification has no answer, nor has an answer to something that was never asked. */
    if (r.body.len > 0 && !json_get(message, "result").p && !json_get(message, "error").p) {
        buf_add_c(out, "{\"jsonrpc\":\"2.0\",\"id\":");
        buf_add_str(out, r.id);
        buf_add_byte(out, ',');
        buf_add_str(out, buf_str(&r.body));
        buf_add_byte(out, '}');
    }
    buf_release(&r.body);
}

/* Answers a line of the client: a message, or an array of them, whose answers are an array. Returns
 * 0, or -1 with *e set. */
static int receive(const struct mcp_service *s, struct str line, int out, struct err *e)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct str message = STR_NONE;
    struct json_iter it;
    int result = 0;

    if (!json_check(line, &message, NULL))
        message = STR_NONE;
    it = json_iter(json_type(message) == JSON_ARRAY ? message : STR_NONE);
    if (!json_next(&it)) {
        answer_message(s, message, &text);
    } else {
        do {
            size_t before = text.len;

            buf_add_byte(&text, before > 0 ? ',' : '[');
            answer_message(s, it.value, &text);
            if (text.len == before + 1)
                buf_truncate(&text, before);
        } while (json_next(&it));
        buf_add_c(&text, text.len > 0 ? "]" : "");
    }
    if (text.len > 0) {
        buf_add_byte(&text, '\n');
        if (file_write_all(out, text.data, text.len) < 0)
            result = err_sys(e, errno, "cannot answer");
    }
    buf_release(&text);
    return result;
}

int mcp_serve(const struct mcp_service *s, int in, int out, struct err *e)
{
    struct buf input = BUF_INIT(MESSAGE_MAX);
    bool skipping = false; /* the rest of a line that was too long */
    int more = 1, result = 0;

    while (result == 0 && more > 0) {
        struct str rest;

        more = file_read_some(in, &input);
        if (more < 0)
            result = err_sys(e, errno, "cannot read a message");
        rest = buf_str(&input);
        while (result == 0 && rest.n > 0 && memchr(rest.p, '\n', rest.n)) {
            struct str line = str_cut(&rest, '\n');

            if (!skipping && str_trim(line).n > 0)
                result = receive(s, line, out, e);
            skipping = false;
        }
        if (rest.n == MESSAGE_MAX && !skipping) {
            skipping = true;
            result = receive(s, STR("this message is too long"), out, e);
        }
        buf_consume(&input, skipping ? input.len : input.len - rest.n);
    }
    /* The last line may lack its end. */
    if (result == 0 && !skipping && str_trim(buf_str(&input)).n > 0)
        result = receive(s, buf_str(&input), out, e);
    buf_release(&input);
    return result;
}
