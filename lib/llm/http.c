#include "chathist/llm/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "chathist/base/clock.h"
#include "chathist/base/vis.h"
#include "llm/http_wait.h"

#ifndef CHATHIST_VERSION
#define USER_AGENT "chathist"
#else
#define USER_AGENT "chathist/" CHATHIST_VERSION
#endif

/* How long curl_multi_poll waits when no timer of ours runs; libcurl shortens it to its own. */
#define POLL_MS 60000

struct transfer {
    CURL *easy;
    const struct http_limits *limits;
    const struct http_sink *sink;
    struct err *e;
    struct buf where; /* host:port, and the proxy before it */
    size_t origin;    /* how much of that is host:port */
    unsigned port;
    struct http_head_reader head;
    struct http_timer timer;
    int status;     /* once the head was handed on */
    bool stopped;   /* by the sink, or by a bound; *e says why */
    bool connected; /* the connection stands */
    int no_socket;  /* the errno for which there is none */
    bool any_body;  /* a piece of the answer came */
    bool lasting;   /* it would fail again */
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

    /* A compressor holds back the deltas of a stream, so none is asked for. Servers and gateways
     * that compress all the same are understood (CURLOPT_ACCEPT_ENCODING). */
    list = curl_slist_append(list, "Accept-Encoding: identity");

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

    /* A name with a dot at its end is not one of these: libcurl asks a name server for it. */
    buf_add_c(&host, name);
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

static int end_of_head(struct transfer *x)
{
    struct http_head head;
    long status = 0;

    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!http_head_get(&x->head, (int)status, &head))
        return 0;
    x->status = head.status;
    http_timer_head(&x->timer, clock_ticks());
    return x->sink->head(x->sink->arg, &head, x->e);
}

/* One line of a head, or of the trailer behind a chunked body. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *x = arg;
    enum http_head_state state = http_head_take(&x->head, (struct str){p, size * n});

    if (state == HTTP_HEAD_TOO_LONG) {
        x->stopped = true;
        err_set(x->e, ERR_NETWORK, "no answer from '%s': its headers are longer than %zu KiB",
                buf_c(&x->where), HTTP_HEAD_MAX >> 10);
    } else if (state == HTTP_HEAD_ENDS && x->status == 0) {
        x->stopped = end_of_head(x) != 0;
    }
    return x->stopped ? 0 : n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *x = arg;

    if (size * n == 0)
        return n;
    x->any_body = true;
    x->stopped = x->sink->body(x->sink->arg, (struct str){p, size * n}, x->e) != 0;
    /* After the sink: what a slow reader of our output takes is not the server's silence. */
    http_timer_body(&x->timer, clock_ticks());
    if (x->sink->ending)
        http_timer_ending(&x->timer, x->sink->ending(x->sink->arg));
    return x->stopped ? 0 : n;
}

/* Adds the numeric address, and its port in *port. */
static bool add_address(struct buf *out, const struct curl_sockaddr *a, unsigned *port)
{
    char host[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (a->family == AF_INET) {
        memcpy(&v4, &a->addr, sizeof v4);
        *port = ntohs(v4.sin_port);
        inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
        buf_addf(out, "%s:%u", host, *port);
    } else if (a->family == AF_INET6) {
        memcpy(&v6, &a->addr, sizeof v6);
        *port = ntohs(v6.sin6_port);
        inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
        buf_addf(out, "[%s]:%u", host, *port);
    }
    return host[0] != '\0';
}

/* Before libcurl 8.7 nothing tells whether a proxy is used, and never which one: it is what another
 * port than the server's is connected to. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct transfer *x = arg;
    struct buf address = BUF_INIT(BUF_SMALL);
    unsigned port = 0;

    (void)purpose;
    buf_truncate(&x->where, x->origin);
    if (add_address(&address, a, &port) && port != x->port)
        buf_addf(&x->where, "' through proxy '%s", buf_c(&address));
    buf_release(&address);

    curl_socket_t fd = socket(a->family, a->socktype, a->protocol);

    x->no_socket = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
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

static void set_trust(CURL *h, const struct http_limits *limits)
{
    if (limits->ca_file)
        curl_easy_setopt(h, CURLOPT_CAINFO, limits->ca_file);
    if (limits->ca_dir)
        curl_easy_setopt(h, CURLOPT_CAPATH, limits->ca_dir);
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
    /* libcurl hands on what it unpacks in pieces of at most 16 KiB, and the sinks have their bounds:
     * a small answer that unpacks to a large one fills no memory. */
    curl_easy_setopt(h, CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    set_protocols(h);
    set_trust(h, x->limits);
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
    curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, x);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, x);
}

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

/* Does a failure of that code come again, however often it is tried? */
static bool is_lasting(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CRL_BADFILE:
        return true;
    default:
        return false;
    }
}

/* What became of the exchange, with the reason behind it. */
static int broke_off(struct transfer *x, const char *reason)
{
    if (!x->connected)
        return err_set(x->e, x->lasting ? ERR_UNTRUSTED : ERR_NETWORK, "cannot connect to '%s': %s",
                       buf_c(&x->where), reason);
    if (x->status == 0)
        return err_set(x->e, ERR_NETWORK, "no answer from '%s': %s", buf_c(&x->where), reason);
    if (is_success(x->status))
        return err_set(x->e, ERR_INCOMPLETE, "answer is incomplete: %s", reason);
    return err_set(x->e, ERR_NETWORK, "HTTP %d from '%s' broke off: %s", x->status,
                   buf_c(&x->where), reason);
}

/* The limit that holds ran out. */
static int timed_out(struct transfer *x)
{
    struct buf reason = BUF_INIT(BUF_SMALL);

    http_timer_add_reason(&x->timer, &reason);
    /* A head alone is no answer that could be kept. */
    if (!x->any_body && is_success(x->status))
        x->status = 0;
    broke_off(x, buf_c(&reason));
    if (x->connected && (x->status == 0 || is_success(x->status)) && x->e)
        x->e->kind = ERR_TIMEOUT;
    buf_release(&reason);
    return -1;
}

/* What libcurl calls nobody for: the connection stands, and how much has been sent. */
static void note_progress(struct transfer *x)
{
    curl_off_t us = 0, sent = 0;

    if (!x->connected && curl_easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &us) == CURLE_OK &&
        us > 0) {
        x->connected = true;
        http_timer_connected(&x->timer, clock_ticks());
    }
    if (x->timer.phase == HTTP_SENDING &&
        curl_easy_getinfo(x->easy, CURLINFO_SIZE_UPLOAD_T, &sent) == CURLE_OK)
        http_timer_sent(&x->timer, (uint64_t)sent, clock_ticks());
}

/* Returns true if a header line was longer than libcurl's buffer for one. */
static bool is_too_large(CURLcode code)
{
#if LIBCURL_VERSION_NUM >= 0x080600
    if (code == CURLE_TOO_LARGE)
        return true;
#endif
    return code == CURLE_OUT_OF_MEMORY;
}

/* libcurl is done. */
static int conclude(struct transfer *x, CURLcode code)
{
    struct buf reason = BUF_INIT(BUF_SMALL);
    long os_errno = 0;

    note_progress(x);
    x->lasting = is_lasting(code);
    curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (code == CURLE_OK && x->status != 0)
        return 0;
    if (code == CURLE_OPERATION_TIMEDOUT && !x->connected &&
        http_timer_left(&x->timer, clock_ticks(), POLL_MS) <= 1)
        return timed_out(x);
    if (code == CURLE_OK)
        buf_add_c(&reason, "the connection was closed");
    else if (is_too_large(code) && x->connected && x->status == 0)
        buf_add_c(&reason, "a line of its headers is too long");
    else if (code == CURLE_COULDNT_CONNECT && os_errno != 0)
        buf_add_c(&reason, strerror((int)os_errno));
    else if (code == CURLE_COULDNT_CONNECT && x->no_socket != 0)
        buf_add_c(&reason, strerror(x->no_socket)); /* of which libcurl knows nothing */
    else if (code == CURLE_COULDNT_RESOLVE_HOST)
        buf_add_c(&reason, "unknown host");
    else if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING)
        buf_add_c(&reason, "the connection was closed");
    else if (code == CURLE_BAD_CONTENT_ENCODING)
        buf_add_c(&reason, "it cannot be decompressed");
    else if (code == CURLE_SSL_CONNECT_ERROR && strstr(x->reason, "wrong version number"))
        buf_add_c(&reason, "the server does not speak TLS there (http:// instead of https://?)");
    else
        vis_add_line(&reason, str_of(x->reason[0] ? x->reason : curl_easy_strerror(code)), true);
    broke_off(x, buf_c(&reason));
    buf_release(&reason);
    return -1;
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
        note_progress(x);

        int64_t wait = x->connected ? http_timer_left(&x->timer, clock_ticks(), POLL_MS) : POLL_MS;

        if (wait <= 0)
            return timed_out(x);
        wait = http_tick(x->limits, wait < POLL_MS ? wait : POLL_MS);
        failed = curl_multi_poll(multi, &cancel, cancels, (int)wait, NULL);
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
    struct transfer x = {.limits = limits, .sink = sink, .e = e};
    int rc;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(e, ERR_FAILURE, "cannot start libcurl");
    buf_init(&x.where, BUF_SMALL);
    http_head_init(&x.head);
    http_timer_start(&x.timer, limits, r->body.len, clock_ticks());
    if (http_origin(buf_c(&r->url), &x.where)) {
        x.origin = x.where.len;
        x.port = (unsigned)strtoul(strrchr(buf_c(&x.where), ':') + 1, NULL, 10);
        rc = exchange(&x, r);
    } else {
        rc = err_set(e, ERR_USAGE, "bad base URL: not of the form http[s]://HOST[:PORT]/PATH");
    }
    buf_release(&x.where);
    http_head_release(&x.head);
    curl_global_cleanup();
    return rc;
}
