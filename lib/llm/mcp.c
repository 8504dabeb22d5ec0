#include "chathist/llm/mcp.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "llm/mcp_content.h"

#ifndef CHATHIST_VERSION
#define CHATHIST_VERSION "unknown"
#endif

/* The newest revision with initialize, and all of that kind that are spoken. */
#define REVISION "2025-11-25"
static const char *const revisions[] = {REVISION, "2025-06-18", "2025-03-26", "2024-11-05"};
/* The revision without it. */
#define STATELESS_REVISION "2026-07-28"

#define CLIENT_INFO "{\"name\":\"chathist\",\"version\":\"" CHATHIST_VERSION "\"}"
#define META "io.modelcontextprotocol/"

/* The most pages that a list of tools may have. */
#define PAGES_MAX 100

/* ---- requests ---- */

static void begin_params(struct buf *params)
{
    buf_add_byte(params, '{');
}

/* Ends them, with what a server without initialize wants to know each time. */
static void end_params(const struct mcp_server *s, struct buf *params)
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
}

/* Queues a request; gives its id. */
static int64_t request(struct mcp_server *s, const char *method, struct buf *params)
{
    end_params(s, params);
    jsonrpc_add_request(&s->link.out, ++s->last_id, method, buf_str(params));
    buf_release(params);
    return s->last_id;
}

/* ---- getting ready ---- */

static void greet(struct mcp_server *s)
{
    struct buf params = BUF_INIT(BUF_SMALL);

    begin_params(&params);
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
    begin_params(&params);
    s->state = MCP_DISCOVERING;
    s->awaited = request(s, "server/discover", &params);
}

void mcp_tell(const struct mcp_server *s, enum mcp_news news, struct str text)
{
    if (s->watch)
        s->watch->tell(s->watch->arg, s->name, news, text);
}

void mcp_settle(struct mcp_server *s)
{
    mcp_list_release(&s->coming);
    s->state = MCP_READY;
    s->awaited = 0;
    s->told_slow = false;
}

/* Asks for a page of the list; STR_NONE: the first. */
static void list(struct mcp_server *s, struct str cursor)
{
    struct buf params = BUF_INIT(2 * JSONRPC_MESSAGE_MAX);

    begin_params(&params);
    if (cursor.n > 0) {
        json_add_key(&params, "cursor");
        buf_add_str(&params, cursor);
    }
    s->state = MCP_LISTING;
    s->awaited = request(s, "tools/list", &params);
}

void mcp_list_again(struct mcp_server *s)
{
    s->pages = 0;
    list(s, STR_NONE);
}

/* Asks for the tools of a server that says that it has any. */
static void list_if_any(struct mcp_server *s, struct str result)
{
    if (json_is_null(json_get(json_get(result, "capabilities"), "tools")))
        mcp_settle(s);
    else
        list(s, STR_NONE);
}

static void take_greeting(struct mcp_server *s, struct str result)
{
    struct buf scratch = BUF_INIT(JSONRPC_MESSAGE_MAX);
    struct str version = json_text(json_get(result, "protocolVersion"), &scratch);
    bool known = false;

    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++)
        known = known || str_eq_c(version, revisions[i]);
    if (known) {
        jsonrpc_add_notification(&s->link.out, "notifications/initialized", STR_NONE);
        list_if_any(s, result);
    } else {
        mcp_link_break(&s->link, "speaks protocol version '%.*s', which is not known",
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

static void take_list(struct mcp_server *s)
{
    mcp_list_release(&s->list);
    s->list = s->coming;
    s->coming = (struct mcp_list){0};
    s->renewed = s->listed;
    s->listed = true;
    mcp_settle(s);
}

static int take_page(struct mcp_server *s, struct str result, struct err *e)
{
    struct str cursor = json_get(result, "nextCursor");

    if (mcp_list_add_page(&s->coming, result, s, &mcp_kind, e) < 0)
        return -1;
    if (json_type(cursor) != JSON_STRING || str_eq_c(cursor, "\"\"")) {
        take_list(s);
        return 0;
    }
    if (++s->pages == PAGES_MAX)
        return err_set(e, ERR_LIMIT, "its list of tools has more than %d pages", PAGES_MAX);
    list(s, cursor);
    return 0;
}

void mcp_lose_list(struct mcp_server *s, const char *why)
{
    mcp_tell(s, MCP_LIST_LOST, str_of(why));
    mcp_settle(s);
}

/* Takes the answer that getting ready waits for. */
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
            mcp_link_break(&s->link, "refuses to begin: %s", buf_c(&s->refused));
    } else if (ok) {
        return take_page(s, m->body, e);
    } else {
        struct buf why = BUF_INIT(JSONRPC_MESSAGE_MAX);

        jsonrpc_describe_error(&why, m->body);
        if (s->listed)
            mcp_lose_list(s, buf_c(&why));
        else
            mcp_link_break(&s->link, "cannot list its tools: %s", buf_c(&why));
        buf_release(&why);
    }
    return 0;
}

/* ---- what it says ---- */

static struct mcp_call *find_call(struct mcp_server *s, int64_t id)
{
    for (size_t i = 0; i < s->calls_count; i++)
        if (s->calls[i].id == id)
            return &s->calls[i];
    return NULL;
}

/* Forgets a call; gives its job. */
static struct tool_job *drop_call(struct mcp_server *s, struct mcp_call *call)
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
        mcp_content_add(&text, m->body, &job->failed);
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
        finish_call(drop_call(s, call), m);
    else if (m->number <= 0 || m->number > s->last_id)
        return jsonrpc_noise(&s->link.in, m->body, e);
    /* Else it is an answer to a call that was given up. */
    return 0;
}

static void take_notification(struct mcp_server *s, const struct jsonrpc_message *m)
{
    struct buf text = BUF_INIT(2 * JSONRPC_MESSAGE_MAX);

    if (str_eq_c(m->method, "notifications/tools/list_changed"))
        s->changed = true;
    if (s->watch && str_eq_c(m->method, "notifications/message")) {
        mcp_content_add_message(&text, m->body);
        mcp_tell(s, MCP_MESSAGE, buf_str(&text));
    }
    buf_release(&text);
}

static int take_message(void *arg, const struct jsonrpc_message *m, struct err *e)
{
    struct mcp_server *s = arg;

    if (mcp_link_broken(&s->link))
        return 0;
    if (m->kind == JSONRPC_NOTIFICATION) {
        take_notification(s, m);
        return 0;
    }
    if (m->kind != JSONRPC_REQUEST)
        return take_answer(s, m, e);
    if (str_eq_c(m->method, "ping"))
        jsonrpc_add_result(&s->link.out, m->id, STR("{}"));
    else
        jsonrpc_add_error(&s->link.out, m->id, JSONRPC_METHOD_NOT_FOUND, "Method not found");
    return 0;
}

void mcp_step(struct mcp_server *s)
{
    mcp_link_step(&s->link);
    while (mcp_link_broken(&s->link) && s->calls_count > 0)
        tool_fail(drop_call(s, &s->calls[0]), "%s", err_text(&s->link.fault));
}

/* ---- calls ---- */

static struct mcp_tool *tool_of(const struct tool_job *job)
{
    return job->tool->source;
}

static void begin_call(struct tool_job *job)
{
    struct mcp_tool *t = tool_of(job);
    struct mcp_server *s = t->server;
    struct buf params = BUF_INIT(2 * MCP_LINK_OUT_MAX);
    struct str args;

    mcp_step(s);
    if (mcp_link_broken(&s->link)) {
        tool_fail(job, "%s", err_text(&s->link.fault));
        return;
    }
    if (!json_check(job->args, &args, NULL) || json_type(args) != JSON_OBJECT) {
        tool_fail(job, "the arguments are no JSON object");
        return;
    }
    begin_params(&params);
    json_add_member(&params, "name", str_of(t->name));
    json_add_key(&params, "arguments");
    buf_add_str(&params, args);
    s->calls = mem_grow(s->calls, &s->calls_cap, s->calls_count + 1, sizeof *s->calls);
    job->state = s;
    s->calls[s->calls_count++] =
        (struct mcp_call){.id = request(s, "tools/call", &params), .job = job};
    mcp_step(s);
}

static size_t fds_of_call(const struct tool_job *job, struct pollfd fds[TOOL_FDS])
{
    return mcp_link_fds(&tool_of(job)->server->link, fds);
}

static void step_call(struct tool_job *job)
{
    mcp_step(tool_of(job)->server);
}

static void stop_call(struct tool_job *job, int64_t until)
{
    struct mcp_server *s = job->state;
    struct buf params = BUF_INIT(BUF_SMALL);

    (void)until; /* the server goes on */
    for (size_t i = 0; s && i < s->calls_count; i++) {
        if (s->calls[i].job != job)
            continue;
        buf_addf(&params, "{\"requestId\":%" PRId64 ",\"reason\":\"the call was given up\"}",
                 s->calls[i].id);
        jsonrpc_add_notification(&s->link.out, "notifications/cancelled", buf_str(&params));
        drop_call(s, &s->calls[i]);
        mcp_step(s);
        break;
    }
    buf_release(&params);
}

const struct tool_kind mcp_kind = {begin_call, fds_of_call, step_call, NULL, stop_call, false};

/* ---- from its start to its end ---- */

int mcp_start(struct mcp_server *s, const char *name, char *const argv[], char *const env[],
              const char *cwd, const struct mcp_watch *watch, struct err *e)
{
    struct err why = ERR_INIT;

    *s = (struct mcp_server){.name = mem_copy(name, strlen(name)), .watch = watch};
    buf_init(&s->refused, BUF_SMALL);
    if (mcp_link_start(&s->link, s->name, argv, env, cwd, take_message, s, &why) < 0) {
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
        children[i] = &servers[i]->link.child;
    child_end_all(children, count, grace_ms, hurry_fd);
    free(children);
    for (size_t i = 0; i < count; i++) {
        mcp_link_end(&servers[i]->link);
        mcp_list_release(&servers[i]->list);
        mcp_list_release(&servers[i]->coming);
        buf_release(&servers[i]->refused);
        free(servers[i]->calls);
        free(servers[i]->name);
    }
}
