/*
 * Streamable HTTP (modelcontextprotocol.io/specification/2025-11-25/basic/transports and
 * 2026-07-28/basic/transports/streamable-http): each message has its own POST request. The response
 * to a request is JSON or a stream of events, which may carry other messages before the answer. A
 * server with sessions names one in the response to initialize, and every later request repeats the
 * name.
 */
#include "mcp/client.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider_error.h"
#include "chathist/llm/secret.h"
#include "chathist/llm/sse.h"

/* The time limit for the response to a notification, to an answer and to DELETE. A request has the
 * one of its tool call, or of getting ready. */
#define NOTICE_MS 10000
/* How long later messages wait for the server to accept a notification. */
#define ORDER_MS 500
/* How long a stream may stay open after the answer. */
#define LINGER_MS 1000
/* How long to wait before a stream is resumed if the server does not say, at least and at most. */
#define RESUME_MS ((int64_t)1000)
#define RESUME_MIN_MS ((int64_t)100)
#define RESUME_MAX_MS ((int64_t)60000)
/* How many times in a row a stream is resumed that then brings no event. */
#define RESUMES_MAX 5
/* How many redirects within the server are followed for one message. */
#define REDIRECTS_MAX 3
/* How much of the body of an error is kept, and how much of a text a message shows. */
#define ERROR_BODY_MAX ((size_t)65536)
#define EXCERPT_MAX 200

struct link {
    struct buf url;
    const struct ask_header *headers; /* borrowed */
    size_t headers_count;
    struct http_pool *pool;
    struct http_limits limits, notice_limits;
    struct buf session; /* Mcp-Session-Id; empty: none */
    struct post *first; /* a list in the order of sending */
};

enum post_kind {
    POST_REQUEST, /* a message that has an answer */
    POST_NOTICE,  /* one that has none */
    POST_DELETE,  /* the end of the session */
};

/* A message, with the HTTP request that carries it. */
struct post {
    struct post *next;
    struct mcp_server *server;
    enum post_kind kind;
    int64_t id;
    bool initializes;   /* `initialize` */
    bool initialized;   /* `notifications/initialized` */
    struct buf message; /* its JSON */
    struct buf mirror;  /* header lines that repeat parts of the message */
    struct http_request request;
    struct http_head head;
    struct http_sink sink;
    struct err e;
    struct http_transfer *transfer; /* NULL: it is not under way */
    struct buf session;             /* the session id that it was sent with */
    struct buf body;                /* the body of a response that is not a stream */
    struct sse sse;
    struct buf last_id; /* the last event of the stream to be resumed; empty: there is none */
    int64_t begin_at;   /* the earliest time to begin (time_ticks) */
    int64_t begun;      /* the transfer began then (time_ticks) */
    int64_t linger;     /* once it is answered: until when its stream may stay open */
    int resumes, redirects;
};

/* ---- messages of the server ---- */

/* Masks secret headers in bytes of the server, also as JSON strings have them: the whole value,
 * because a cookie has several parts, and the word that is the secret. Some servers write `/`, `+`
 * or `&` of it as an escape. */
static void mask_secrets(const struct link *l, struct buf *text)
{
    struct buf plain = BUF_INIT(SIZE_MAX), escaped = BUF_INIT(SIZE_MAX);
    struct str value;

    if (l->headers_count > 0 && json_check(buf_str(text), &value, NULL)) {
        json_add_plain(&plain, value);
        buf_set(text, buf_str(&plain));
    }
    for (size_t i = 0; i < 2 * l->headers_count; i++) {
        const struct ask_header *h = &l->headers[i / 2];
        struct str secret = secret_distinct(i % 2 == 0 ? h->value : header_secret(h));

        if (!h->secret || secret.n == 0)
            continue;
        buf_clear(&escaped);
        json_add_string(&escaped, secret);
        secret_mask(text, secret, 0, 0);
        secret_mask(text, json_body(buf_str(&escaped)), 0, 0);
        mem_wipe(escaped.data, escaped.len);
    }
    buf_release(&plain);
    buf_release(&escaped);
}

/* Gives a message to mcp/client. */
static void pass_message(struct mcp_server *s, struct str message)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    utf8_add_repaired(&text, message); /* else unescape would leave it alone */
    mask_secrets(s->link, &text);
    mcp_receive(s, buf_str(&text));
    buf_release(&text);
}

static int on_stream_event(void *arg, struct str event, struct str data, struct err *e)
{
    struct post *p = arg;

    (void)e;
    p->resumes = 0;
    if (str_eq_c(event, "message"))
        pass_message(p->server, data);
    return mcp_is_broken(p->server) ? 1 : 0;
}

static bool is_stream(const struct post *p)
{
    return http_head_is_success(&p->head) &&
           str_eq_c(buf_str(&p->head.field[HTTP_MEDIA_TYPE]), "text/event-stream");
}

static int on_response_body(void *arg, struct str piece, struct err *e)
{
    struct post *p = arg;

    if (is_stream(p))
        return sse_feed(&p->sse, piece, e);
    if (!http_head_is_success(&p->head))
        piece.n = piece.n < ERROR_BODY_MAX - p->body.len ? piece.n : ERROR_BODY_MAX - p->body.len;
    buf_add_str(&p->body, piece);
    return p->body.overflow
               ? err_set(e, ERR_LIMIT, "its answer is longer than %zu MiB", MCP_MESSAGE_MAX >> 20)
               : 0;
}

/* ---- messages to the server ---- */

static struct post *add_post(struct mcp_server *s, enum post_kind kind)
{
    struct link *l = s->link;
    struct post *p = mem_zalloc(sizeof *p), **at = &l->first;

    *p = (struct post){.server = s, .kind = kind, .e = ERR_INIT};
    buf_init(&p->message, MCP_OUT_MAX);
    buf_init(&p->mirror, MCP_OUT_MAX);
    buf_init(&p->session, BUF_SMALL);
    buf_init(&p->body, MCP_MESSAGE_MAX);
    buf_init(&p->last_id, BUF_SMALL);
    http_request_init(&p->request);
    http_head_init(&p->head);
    sse_init(&p->sse, on_stream_event, p);
    p->sink = (struct http_sink){.head = &p->head, .body = on_response_body, .arg = p};
    while (*at)
        at = &(*at)->next;
    *at = p;
    return p;
}

/* Takes a post out of the list and frees it. */
static void drop_post(struct link *l, struct post *p)
{
    struct post **at = &l->first;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (p->transfer)
        http_end(p->transfer);
    buf_release(&p->message);
    buf_release(&p->mirror);
    buf_release(&p->session);
    buf_release(&p->body);
    buf_release(&p->last_id);
    http_request_release(&p->request);
    http_head_release(&p->head);
    sse_release(&p->sse);
    err_release(&p->e);
    free(p);
}

static void remote_send(struct mcp_server *s, const struct mcp_message *m)
{
    struct post *p = add_post(s, m->id > 0 ? POST_REQUEST : POST_NOTICE);

    p->id = m->id;
    p->initializes = m->method && strcmp(m->method, "initialize") == 0;
    p->initialized = m->method && strcmp(m->method, "notifications/initialized") == 0;
    p->request.once = m->tool != NULL;
    buf_add(&p->message, m->json.p, m->json.n - 1);
    if (m->method)
        mcp_add_headers(&p->mirror, m->method, m->tool ? m->tool->name : NULL,
                        m->tool && s->stateless ? str_of(m->tool->tool.parameters) : STR_NONE,
                        m->args);
}

/* Adds a header line, unless its value is empty. Sets p->e if it cannot be sent. */
static void set_header(struct post *p, const char *name, struct str value)
{
    if (value.n > 0 && p->e.kind == ERR_NONE)
        http_add_header(&p->request, name, value, &p->e);
}

static void begin_post(struct post *p)
{
    struct link *l = p->server->link;
    bool posts = p->kind != POST_DELETE && p->last_id.len == 0;

    http_head_release(&p->head);
    http_head_init(&p->head);
    buf_clear(&p->body);
    sse_release(&p->sse);
    sse_init(&p->sse, on_stream_event, p);
    buf_set(&p->session, buf_str(&l->session));
    buf_set(&p->request.url, buf_str(&l->url));
    buf_clear(&p->request.body);
    if (posts)
        buf_add_str(&p->request.body, buf_str(&p->message));
    p->request.method = p->kind == POST_DELETE ? "DELETE" : NULL;
    buf_clear(&p->request.headers);
    if (posts)
        set_header(p, "Content-Type", STR("application/json"));
    if (p->kind != POST_DELETE)
        set_header(p, "Accept",
                   posts ? STR("application/json, text/event-stream") : STR("text/event-stream"));
    set_header(p, "MCP-Protocol-Version", str_of(p->server->revision));
    set_header(p, "Mcp-Session-Id", buf_str(&p->session));
    set_header(p, "Last-Event-ID", buf_str(&p->last_id));
    if (posts)
        buf_add_str(&p->request.headers, buf_str(&p->mirror));
    for (size_t i = 0; i < l->headers_count; i++)
        set_header(p, l->headers[i].name, str_of(l->headers[i].value));
    if (p->e.kind != ERR_NONE)
        return;
    p->transfer =
        http_begin(l->pool, &p->request, p->kind == POST_REQUEST ? &l->limits : &l->notice_limits,
                   &p->sink, &p->e);
}

/* Begins what may be begun. The server handles requests side by side, so that what is sent first
 * does not have to arrive first. Nothing is sent before the server has accepted `initialized`;
 * other notifications hold up the messages after them for a moment only, because a server whose
 * call is cancelled may hang. The end of the session, which may have less time than that, waits for
 * none. Returns whether something began. */
static bool begin_posts(struct link *l)
{
    bool any = false, held = false;
    int64_t now = time_ticks();

    for (struct post *p = l->first; p; p = p->next) {
        if (!p->transfer && p->e.kind == ERR_NONE && p->begin_at <= now &&
            (!held || p->kind == POST_DELETE)) {
            begin_post(p);
            p->begun = now;
            any = true;
        }
        if (p->initialized)
            break;
        if (p->kind == POST_NOTICE && now - p->begun < ORDER_MS)
            held = true;
    }
    return any;
}

/* ---- responses ---- */

/* Adds advice to the error of a server that wants other headers, or that refuses initialize as
 * servers do that only know the transport before this one (2025-11-25/basic/transports, "Backwards
 * Compatibility"). RFC 9728, section 5.1: the challenge of a server with OAuth names its
 * metadata. */
static void add_advice(const struct post *p, struct err *why)
{
    static const char key[] = "resource_metadata=\"";
    const char *name = p->server->name, *at = strstr(buf_c(&p->head.field[HTTP_CHALLENGE]), key);
    struct buf text = BUF_INIT(BUF_SMALL);
    int status = p->head.status;

    buf_add_c(&text, err_text(why));
    if (status == 401 || status == 403) {
        buf_addf(&text, " (set 'mcp.%s.header_command.Authorization' or another header", name);
        if (at) {
            struct str rest = str_of(at + sizeof key - 1);

            buf_add_c(&text, "; who gives access is described at ");
            provider_error_add_excerpt(&text, str_cut(&rest, '"'), EXCERPT_MAX);
        }
        buf_add_c(&text, ")");
        why->kind = ERR_AUTH;
    } else if (p->initializes && (status == 400 || status == 404 || status == 405)) {
        buf_addf(&text,
                 " (if it only speaks HTTP+SSE, the transport of 2024-11-05, start it as "
                 "'mcp.%s = npx -y mcp-remote URL')",
                 name);
    }
    err_set(why, why->kind, "%s", buf_c(&text));
    buf_release(&text);
}

/* Reports that the request of this post gets no answer. */
static void lose(struct post *p, const struct err *why)
{
    struct buf text = BUF_INIT(BUF_LINE);
    struct err e = ERR_INIT;

    buf_add_c(&text, err_text(why));
    mask_secrets(p->server->link, &text);
    err_set(&e, why->kind, "%s", buf_c(&text));
    mcp_lose_answer(p->server, p->id, &e);
    buf_release(&text);
    err_release(&e);
}

/* Follows a redirect within the server. Any other redirect would hand the headers to another
 * server. Returns whether the message is to be sent again. */
static bool follow_redirect(struct post *p, struct err *why)
{
    struct link *l = p->server->link;
    struct buf url = BUF_INIT(BUF_SMALL);
    bool same = http_resolve(buf_c(&p->request.url), buf_c(&p->head.field[HTTP_LOCATION]), &url) &&
                p->head.status >= 307 && p->redirects++ < REDIRECTS_MAX;

    if (same)
        buf_set(&l->url, buf_str(&url));
    else
        http_refuse_redirect(&p->head, why);
    buf_release(&url);
    return same;
}

/* Reads a response that is an error. A body that is a JSON-RPC error is the answer, also if it has
 * no id, as one about a request that was not understood. Returns whether the post stays. */
static bool read_refusal(struct post *p)
{
    struct link *l = p->server->link;
    struct err why = ERR_INIT;
    struct str object;
    int status = p->head.status;
    bool stays = false, rpc;

    if (status >= 300 && status < 400) {
        stays = follow_redirect(p, &why);
    } else if (status == 404 && p->session.len > 0 && p->last_id.len == 0) {
        if (str_eq(buf_str(&p->session), buf_str(&l->session)))
            buf_clear(&l->session);
        mcp_lose_session(p->server, p->id);
    } else {
        rpc = json_check(str_trim(buf_str(&p->body)), &object, NULL) &&
              json_type(json_get(object, "error")) == JSON_OBJECT && json_get(object, "jsonrpc").p;
        mask_secrets(l, &p->body); /* while it is JSON */
        if (rpc) {
            mcp_receive_error(p->server, p->id, json_get(buf_str(&p->body), "error"));
        } else {
            provider_error_set_http(&why, status, buf_str(&p->body));
            add_advice(p, &why);
        }
    }
    if (why.kind != ERR_NONE)
        lose(p, &why);
    err_release(&why);
    return stays;
}

/* Waits to resume a stream that ended before the answer, if the server gave an id
 * (2025-11-25/basic/transports, "Resumability and Redelivery"). Returns whether it does. */
static bool resume(struct post *p)
{
    int64_t wait = p->sse.retry_ms >= 0 ? p->sse.retry_ms : RESUME_MS;

    wait = wait < RESUME_MIN_MS ? RESUME_MIN_MS : wait > RESUME_MAX_MS ? RESUME_MAX_MS : wait;
    if (p->sse.last_id.len > 0)
        buf_set(&p->last_id, buf_str(&p->sse.last_id));
    if (p->last_id.len == 0 || p->server->stateless || p->resumes++ == RESUMES_MAX)
        return false;
    p->begin_at = time_ticks() + wait;
    http_end(p->transfer);
    p->transfer = NULL;
    err_release(&p->e);
    return true;
}

/* Reads the end of an exchange that carried a request. Returns whether the post stays. */
static bool read_end(struct post *p, int result)
{
    const struct buf *type = &p->head.field[HTTP_MEDIA_TYPE];
    struct err why = ERR_INIT;

    if (!mcp_awaits(p->server, p->id))
        return false;
    if (p->head.status != 0 && !http_head_is_success(&p->head) && result == 0)
        return read_refusal(p);
    if ((is_stream(p) || (result < 0 && p->last_id.len > 0)) && resume(p))
        return true;
    if (result == 0 && is_stream(p)) {
        err_set(&why, ERR_INCOMPLETE, "the stream ended without an answer");
    } else if (result == 0) {
        if (str_eq_c(buf_str(type), "application/json") && p->body.len > 0)
            pass_message(p->server, buf_str(&p->body));
        err_set(&why, ERR_REQUEST, "HTTP %d without an answer%s%s", p->head.status,
                type->len > 0 ? ", of type " : "", buf_c(type));
    }
    if (mcp_awaits(p->server, p->id))
        lose(p, result == 0 ? &why : &p->e);
    err_release(&why);
    return false;
}

/* Looks at an exchange. Returns whether the post stays. */
static bool post_stays(struct post *p)
{
    int state = p->transfer ? http_state(p->transfer) : p->e.kind != ERR_NONE ? -1 : 1;
    struct link *l = p->server->link;
    struct str id = buf_str(&p->head.field[HTTP_SESSION_ID]);
    struct err why = ERR_INIT;

    /* The response to initialize may give the session a name. */
    if (p->initializes && id.n > 0) {
        buf_clear(&l->session);
        if (http_check_header("Mcp-Session-Id", id, &why) < 0)
            mcp_give_up(p->server, ERR_LIMIT, "cannot be used: it sent a %s", err_text(&why));
        else
            buf_add_str(&l->session, id);
        err_release(&why);
    }
    if (state > 0 && p->kind == POST_REQUEST && p->transfer && !mcp_awaits(p->server, p->id)) {
        if (p->linger == 0)
            p->linger = time_ticks() + LINGER_MS;
        return p->linger > time_ticks();
    }
    if (state > 0)
        return true;
    if (p->kind != POST_REQUEST || !read_end(p, state))
        return false;
    if (p->transfer)
        http_end(p->transfer);
    p->transfer = NULL;
    return true;
}

static void drop_posts(struct link *l)
{
    while (l->first)
        drop_post(l, l->first);
}

static void remote_step(struct mcp_server *s)
{
    struct link *l = s->link;
    bool more = !mcp_is_broken(s);

    while (more) {
        http_pool_step(l->pool);
        for (struct post *p = l->first, *next; p; p = next) {
            bool stays = post_stays(p);

            next = p->next;
            if (!stays)
                drop_post(l, p);
        }
        more = !mcp_is_broken(s) && begin_posts(l);
    }
    if (mcp_is_broken(s))
        drop_posts(l);
}

static size_t remote_fds(const struct mcp_server *s, struct pollfd fds[TOOL_FDS])
{
    const struct link *l = s->link;

    return mcp_is_broken(s) ? 0 : http_pool_fds(l->pool, fds, TOOL_FDS);
}

static void remote_forget(struct mcp_server *s, int64_t id)
{
    struct link *l = s->link;

    for (struct post *p = l->first; p; p = p->next)
        if (p->kind == POST_REQUEST && p->id == id) {
            drop_post(l, p);
            return;
        }
}

/* ---- start and end ---- */

void mcp_open(struct mcp_server *s, const char *name, const struct mcp_remote *r,
              const struct mcp_watch *watch)
{
    struct link *l = mem_zalloc(sizeof *l);

    buf_init(&l->url, BUF_SMALL);
    buf_init(&l->session, BUF_SMALL);
    buf_add_c(&l->url, r->url);
    l->headers = r->headers;
    l->headers_count = r->headers_count;
    l->limits = r->limits;
    l->notice_limits = l->limits;
    l->notice_limits.idle_ms = NOTICE_MS;
    mcp_init(s, name, &mcp_http_transport, l, watch);
    l->pool = http_pool_open();
    mcp_greet(s);
}

/* Steps the servers whose last messages are under way. Returns false if no message is under way. */
static bool step_last(struct mcp_server *const *servers, size_t count, int64_t wait, int hurry_fd)
{
    struct pollfd fds[TOOL_FDS + 1];
    size_t n = 0;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        struct link *l = servers[i]->link;

        if (l->pool && l->first)
            remote_step(servers[i]);
        if (!l->first)
            continue;
        any = true;
        n = http_pool_fds(l->pool, fds, TOOL_FDS);
    }
    fds[n] = (struct pollfd){.fd = hurry_fd, .events = POLLIN};
    /* Only the last server wakes this up, so it looks at the others often. */
    if (any)
        poll(fds, (nfds_t)n + 1, (int)(wait < 5 ? wait : 5));
    return any;
}

/* Sends DELETE for each session, which says that it is not needed any more, and drops the requests,
 * whose answers are not used any more. */
static void remote_end(struct mcp_server *const *servers, size_t count, int64_t grace_ms,
                       int hurry_fd)
{
    int64_t until = time_ticks() + grace_ms, left;

    for (size_t i = 0; i < count; i++) {
        struct link *l = servers[i]->link;

        for (struct post *p = l->first, *next; p; p = next) {
            next = p->next;
            if (p->kind != POST_NOTICE || mcp_is_broken(servers[i]))
                drop_post(l, p);
        }
        if (!mcp_is_broken(servers[i]) && l->session.len > 0)
            add_post(servers[i], POST_DELETE);
    }
    while ((left = until - time_ticks()) > 0 && step_last(servers, count, left, hurry_fd))
        if (hurry_fd >= 0 && file_wait(hurry_fd, 0) > 0 && left > CHILD_HURRY_MS)
            until = time_ticks() + CHILD_HURRY_MS;
    for (size_t i = 0; i < count; i++) {
        struct link *l = servers[i]->link;

        drop_posts(l);
        http_pool_close(l->pool);
        buf_release(&l->url);
        buf_release(&l->session);
        free(l);
    }
}

const struct mcp_transport mcp_http_transport = {.discover_first = true,
                                                 .send = remote_send,
                                                 .fds = remote_fds,
                                                 .step = remote_step,
                                                 .forget = remote_forget,
                                                 .end = remote_end};
