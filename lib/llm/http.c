#include "llm/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/vis.h"

#ifndef CHATHIST_VERSION
#define USER_AGENT "chathist"
#else
#define USER_AGENT "chathist/" CHATHIST_VERSION
#endif

/* The most that the lines of an answer's head may hold together, 1xx answers included. */
#define HEAD_MAX ((size_t)256 << 10)
/* How long curl_multi_poll waits when no timer of ours runs; libcurl shortens it to its own. */
#define POLL_MS 60000

/* The headers that are looked for, lower case, in the order of struct http_head. */
enum { TYPE, LOCATION, RETRY_AFTER, RETRY_AFTER_MS, SHOULD_RETRY, FIELDS };
static const char *const field_names[FIELDS] = {
    "content-type", "location", "retry-after", "retry-after-ms", "x-should-retry",
};

struct transfer {
    CURL *easy;
    const struct http_limits *limits;
    const struct http_sink *sink;
    struct err *e;
    struct buf where; /* host:port */
    struct buf fields[FIELDS];
    size_t head_bytes;
    int status;      /* once the head was handed on */
    bool stopped;    /* by the sink, or by a bound; *e says why */
    bool connected;  /* the connection stands */
    bool any_body;   /* a piece of the answer came */
    int64_t started; /* clock_ticks */
    int64_t active;  /* when a piece last went or came */
    curl_off_t uploaded;
    char reason[CURL_ERROR_SIZE];
};

/* ---- the request ---- */

void http_request_init(struct http_request *r)
{
    buf_init(&r->url, BUF_SMALL);
    buf_init(&r->headers, BUF_SMALL);
    buf_init(&r->body, SIZE_MAX);
}

void http_request_release(struct http_request *r)
{
    buf_release(&r->url);
    buf_release(&r->headers);
    buf_release(&r->body);
}

int http_add_header(struct http_request *r, const char *name, struct str value, struct err *e)
{
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
            return err_set(e, ERR_USAGE, "bad header '%s': a control character in its value", name);
    buf_add_c(&r->headers, name);
    buf_add_c(&r->headers, ": ");
    buf_add_str(&r->headers, value);
    buf_add_byte(&r->headers, '\n');
    if (r->headers.overflow)
        return err_set(e, ERR_USAGE, "bad header '%s': too long", name);
    return 0;
}

static struct curl_slist *header_list(const struct http_request *r)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:"); /* no waiting for 100 */
    struct str rest = buf_str(&r->headers);

    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        struct buf one = BUF_INIT(BUF_SMALL);

        buf_add_str(&one, line);
        list = curl_slist_append(list, buf_c(&one));
        buf_release(&one);
    }
    return list;
}

/* ---- URLs ---- */

static CURLU *parse_url(const char *url)
{
    CURLU *u = curl_url();
    char *scheme = NULL;
    bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);

    curl_free(scheme);
    if (ok)
        return u;
    curl_url_cleanup(u);
    return NULL;
}

bool http_origin(const char *url, struct buf *out)
{
    CURLU *u = parse_url(url);
    char *host = NULL, *port = NULL;
    bool ok = u && curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK;

    if (ok) {
        vis_add_line(out, str_of(host), true);
        buf_add_byte(out, ':');
        buf_add_c(out, port);
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
    return ok;
}

static bool loopback_host(const char *name)
{
    struct buf host = BUF_INIT(BUF_SMALL);
    unsigned char v4[4], v6[16];
    static const unsigned char loopback6[16] = {[15] = 1};
    bool is;

    buf_add_c(&host, name);
    if (str_ends(buf_str(&host), STR(".")))
        buf_truncate(&host, host.len - 1);
    if (host.len > 2 && host.data[0] == '[') {
        buf_truncate(&host, host.len - 1);
        buf_consume(&host, 1);
    }
    if (inet_pton(AF_INET, buf_c(&host), v4) == 1)
        is = v4[0] == 127;
    else if (inet_pton(AF_INET6, buf_c(&host), v6) == 1)
        is = memcmp(v6, loopback6, sizeof v6) == 0;
    else /* RFC 6761 section 6.3: this name and what ends with it */
        is = curl_strequal(buf_c(&host), "localhost") ||
             (host.len > 10 && curl_strequal(buf_c(&host) + host.len - 10, ".localhost"));
    buf_release(&host);
    return is;
}

bool http_is_loopback(const char *url)
{
    CURLU *u = parse_url(url);
    char *host = NULL;
    bool is = u && curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && loopback_host(host);

    curl_free(host);
    curl_url_cleanup(u);
    return is;
}

/* ---- what libcurl calls ---- */

static void note_activity(struct transfer *x)
{
    x->active = clock_ticks();
}

/* `Text/Event-Stream; charset=x` becomes `text/event-stream`. */
static void reduce_media_type(struct buf *type)
{
    struct str rest = buf_str(type);
    struct str media = str_trim(str_cut(&rest, ';'));
    size_t skipped = type->len > 0 ? (size_t)(media.p - type->data) : 0;

    buf_truncate(type, skipped + media.n);
    buf_consume(type, skipped);
    for (size_t i = 0; i < type->len; i++)
        if (type->data[i] >= 'A' && type->data[i] <= 'Z')
            type->data[i] = (char)(type->data[i] - 'A' + 'a');
}

static void clear_fields(struct transfer *x)
{
    for (int i = 0; i < FIELDS; i++)
        buf_clear(&x->fields[i]);
}

static int end_of_head(struct transfer *x)
{
    long status = 0;

    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 100 && status < 200) {
        clear_fields(x);
        return 0;
    }
    x->status = (int)status;
    reduce_media_type(&x->fields[TYPE]);

    struct http_head head = {
        .status = x->status,
        .media_type = buf_c(&x->fields[TYPE]),
        .location = buf_c(&x->fields[LOCATION]),
        .retry_after = buf_c(&x->fields[RETRY_AFTER]),
        .retry_after_ms = buf_c(&x->fields[RETRY_AFTER_MS]),
        .should_retry = buf_c(&x->fields[SHOULD_RETRY]),
    };

    return x->sink->head(x->sink->arg, &head, x->e);
}

static void keep_field(struct transfer *x, struct str line)
{
    struct str value = line;
    struct str name = str_cut(&value, ':');

    for (int i = 0; i < FIELDS; i++)
        if (name.n == strlen(field_names[i]) && curl_strnequal(name.p, field_names[i], name.n)) {
            buf_clear(&x->fields[i]);
            buf_add_str(&x->fields[i], str_trim(value));
        }
}

/* One line of a head, or of the trailer behind a chunked body. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *x = arg;
    struct str line = str_trim((struct str){p, size * n});

    note_activity(x);
    x->head_bytes += size * n;
    if (x->head_bytes > HEAD_MAX) {
        x->stopped = true;
        err_set(x->e, ERR_NETWORK, "no answer from '%s': its headers are longer than %zu KiB",
                buf_c(&x->where), HEAD_MAX >> 10);
        return 0;
    }
    if (x->status != 0)
        return n;
    if (str_starts(line, STR("HTTP/")))
        clear_fields(x);
    else if (line.n > 0)
        keep_field(x, line);
    else
        x->stopped = end_of_head(x) != 0;
    return x->stopped ? 0 : n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *x = arg;

    x->any_body = x->any_body || size * n > 0;
    if (size * n > 0)
        x->stopped = x->sink->body(x->sink->arg, (struct str){p, size * n}, x->e) != 0;
    /* After the sink: what a slow reader of our output takes is not the server's silence. */
    note_activity(x);
    return x->stopped ? 0 : n;
}

static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                       curl_off_t up)
{
    struct transfer *x = arg;

    (void)down_all;
    (void)down;
    (void)up_all;
    if (up != x->uploaded)
        note_activity(x);
    x->uploaded = up;
    return 0;
}

/* ---- the exchange ---- */

static void set_protocols(CURL *h)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(h, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A name server that is silent must not hold up the end of an exchange that was given up. */
    curl_easy_setopt(h, CURLOPT_QUICK_EXIT, 1L);
#endif
}

static void configure(struct transfer *x, const struct http_request *r, struct curl_slist *headers)
{
    CURL *h = x->easy;
    long connect_ms = x->limits->connect_ms;

    curl_easy_setopt(h, CURLOPT_URL, buf_c(&r->url));
    /* What is on this machine stays on it, whatever proxy the environment names. */
    if (http_is_loopback(buf_c(&r->url)))
        curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    if (r->body.len > 0) {
        curl_easy_setopt(h, CURLOPT_POST, 1L);
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, buf_c(&r->body));
    }
    set_protocols(h);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, USER_AGENT);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, x->reason);
    /* libcurl's own timer, because it shares the time among the addresses of a name; 0 would be
     * its default of five minutes. */
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, connect_ms > 0 ? connect_ms : (long)INT32_MAX);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, x);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
}

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

/* `10 s`, `250 ms` */
static void add_span(struct buf *out, long ms)
{
    if (ms % 1000 == 0)
        buf_addf(out, "%ld s", ms / 1000);
    else
        buf_addf(out, "%ld ms", ms);
}

/* What became of the exchange, with the reason behind it. */
static int broke_off(struct transfer *x, const char *reason)
{
    if (!x->connected)
        return err_set(x->e, ERR_NETWORK, "cannot connect to '%s': %s", buf_c(&x->where), reason);
    if (x->status == 0)
        return err_set(x->e, ERR_NETWORK, "no answer from '%s': %s", buf_c(&x->where), reason);
    if (is_success(x->status))
        return err_set(x->e, ERR_INCOMPLETE, "answer is incomplete: %s", reason);
    return err_set(x->e, ERR_NETWORK, "HTTP %d from '%s' broke off: %s", x->status,
                   buf_c(&x->where), reason);
}

static int timed_out(struct transfer *x, const char *which, long ms)
{
    struct buf reason = BUF_INIT(BUF_SMALL);

    buf_add_c(&reason, x->connected ? "nothing came within " : "no connection within ");
    add_span(&reason, ms);
    buf_addf(&reason, " (%s time-out)", which);
    /* A head alone is no answer that could be kept. */
    if (!x->any_body && is_success(x->status))
        x->status = 0;
    broke_off(x, buf_c(&reason));
    if (x->connected && x->status == 0 && x->e)
        x->e->kind = ERR_TIMEOUT;
    buf_release(&reason);
    return -1;
}

static void note_connection(struct transfer *x)
{
    curl_off_t us = 0;

    if (!x->connected && curl_easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &us) == CURLE_OK &&
        us > 0) {
        x->connected = true;
        note_activity(x);
    }
}

/* libcurl is done. */
static int conclude(struct transfer *x, CURLcode code)
{
    long connect_ms = x->limits->connect_ms, os_errno = 0;
    struct buf reason = BUF_INIT(BUF_SMALL);

    note_connection(x);
    curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (code == CURLE_OK && x->status != 0)
        return 0;
    if (code == CURLE_OPERATION_TIMEDOUT && !x->connected && connect_ms > 0 &&
        clock_ticks() - x->started >= connect_ms - 1)
        return timed_out(x, "connect", connect_ms);
    if (code == CURLE_OK)
        buf_add_c(&reason, "the connection was closed");
    else if (code == CURLE_COULDNT_CONNECT && os_errno != 0)
        buf_add_c(&reason, strerror((int)os_errno));
    else if (code == CURLE_COULDNT_RESOLVE_HOST)
        buf_add_c(&reason, "unknown host");
    else
        vis_add_line(&reason, str_of(x->reason[0] ? x->reason : curl_easy_strerror(code)), true);
    broke_off(x, buf_c(&reason));
    buf_release(&reason);
    return -1;
}

/* How long the server may still be silent, in milliseconds. */
static int64_t idle_left(const struct transfer *x)
{
    if (!x->connected || x->limits->idle_ms <= 0)
        return POLL_MS;
    return x->active + x->limits->idle_ms - clock_ticks();
}

static int run(struct transfer *x, CURLM *multi)
{
    struct curl_waitfd cancel = {x->limits->cancel_fd, CURL_WAIT_POLLIN, 0};
    unsigned cancels = x->limits->cancel_fd >= 0 ? 1 : 0;

    for (;;) {
        int running = 0, left = 0;
        CURLMcode failed = curl_multi_perform(multi, &running);

        if (x->stopped)
            return -1;
        if (failed)
            return broke_off(x, curl_multi_strerror(failed));
        if (!running) {
            const CURLMsg *msg = curl_multi_info_read(multi, &left);

            return conclude(x, msg ? msg->data.result : CURLE_OK);
        }
        note_connection(x);

        int64_t wait = idle_left(x);

        if (wait <= 0)
            return timed_out(x, "idle", x->limits->idle_ms);
        failed =
            curl_multi_poll(multi, &cancel, cancels, (int)(wait < POLL_MS ? wait : POLL_MS), NULL);
        if (failed)
            return broke_off(x, curl_multi_strerror(failed));
        if (cancels && (cancel.revents & CURL_WAIT_POLLIN))
            return err_set(x->e, ERR_SIGNAL, "interrupted");
    }
}

static int exchange(struct transfer *x, const struct http_request *r)
{
    struct curl_slist *headers = header_list(r);
    CURLM *multi = curl_multi_init();
    int rc;

    x->easy = curl_easy_init();
    if (!x->easy || !multi || !headers ||
        (configure(x, r, headers), curl_multi_add_handle(multi, x->easy)) != CURLM_OK) {
        rc = err_set(x->e, ERR_FAILURE, "cannot start libcurl");
    } else {
        rc = run(x, multi);
        curl_multi_remove_handle(multi, x->easy);
    }
    curl_easy_cleanup(x->easy);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
    return rc;
}

int http_exchange(const struct http_request *r, const struct http_limits *limits,
                  const struct http_sink *sink, struct err *e)
{
    struct transfer x = {.limits = limits, .sink = sink, .e = e, .started = clock_ticks()};
    int rc;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(e, ERR_FAILURE, "cannot start libcurl");
    buf_init(&x.where, BUF_SMALL);
    for (int i = 0; i < FIELDS; i++)
        buf_init(&x.fields[i], BUF_SMALL);
    if (http_origin(buf_c(&r->url), &x.where))
        rc = exchange(&x, r);
    else
        rc = err_set(e, ERR_USAGE, "bad base URL: not of the form http[s]://HOST[:PORT]/PATH");
    buf_release(&x.where);
    for (int i = 0; i < FIELDS; i++)
        buf_release(&x.fields[i]);
    curl_global_cleanup();
    return rc;
}
