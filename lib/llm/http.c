#include "chathist/llm/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chathist/base/memory.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

/* The head of a response, including interim heads and trailers, is at most this long. */
#define HEAD_MAX ((size_t)256 << 10)

/* ---- the head, line by line ---- */

static const char *const head_names[HTTP_FIELDS] = {
    [HTTP_MEDIA_TYPE] = "content-type",     [HTTP_LOCATION] = "location",
    [HTTP_RETRY_AFTER] = "retry-after",     [HTTP_RETRY_AFTER_MS] = "retry-after-ms",
    [HTTP_SHOULD_RETRY] = "x-should-retry", [HTTP_SESSION_ID] = "mcp-session-id",
    [HTTP_CHALLENGE] = "www-authenticate",  [HTTP_COST] = "x-litellm-response-cost",
};

#ifndef CHATHIST_VERSION
#define USER_AGENT "chathist"
#else
#define USER_AGENT "chathist/" CHATHIST_VERSION
#endif

/* How long curl_multi_poll waits if no time limit of this module applies. libcurl shortens the wait
 * to its own timers. */
#define POLL_MS 60000
/* If libcurl wants to be called within this time, it is called soon, and not only when a descriptor
 * is ready. */
#define POOL_SOON_MS 20

struct http_pool {
    CURLM *multi;                /* NULL until the first exchange */
    struct http_transfer *first; /* the transfers that http_end has not ended */
};

enum phase {
    PHASE_CONNECTING,
    PHASE_SENDING,
    PHASE_WAITING,
    PHASE_OPENING, /* bytes have come, but not yet the first that first_byte_ms waits for */
    PHASE_COMING
};

struct http_transfer {
    struct http_pool *pool;
    struct http_transfer *next;
    int state; /* 1: under way; otherwise the result */
    CURL *easy;
    struct curl_slist *headers;
    const struct http_request *request;
    const struct http_limits *limits;
    const struct http_sink *sink;
    struct err *e;
    struct buf where;  /* host:port, and the proxy if there is one */
    size_t origin;     /* the length of host:port in it */
    size_t head_bytes; /* the length of all header lines so far */
    enum phase phase;
    int64_t since;         /* the current time limit began then (time_ticks) */
    size_t sent;           /* bytes of the request's body sent so far */
    size_t content;        /* what http_sink.content has returned last */
    int64_t content_since; /* when it changed, or the request was sent */
    long ending_ms;        /* the most time for the rest of the response; 0: no such limit */
    bool stopped;          /* the sink ended it, or the head is too long; *e is set */
    bool prepared;         /* before_send was called */
    bool sending;          /* set between before_send and after_send */
    int no_socket;         /* the errno of a socket() that failed, else 0 */
    char reason[CURL_ERROR_SIZE];
};

/* ---- time limits: how long the server may still be silent ----
 *
 * libcurl's own timers do not fit: LOW_SPEED_TIME averages over seconds, and the first byte has
 * none. Every byte counts as activity, so a server that sends comments or blanks stays connected,
 * but such bytes do not end the wait for the first one (http_sink.begun). */

static void enter_phase(struct http_transfer *x, enum phase phase)
{
    x->phase = phase;
    x->since = time_ticks();
    if (phase <= PHASE_WAITING)
        x->content_since = x->since;
}

/* Connected, including TLS. */
static bool is_connected(const struct http_transfer *x)
{
    return x->phase != PHASE_CONNECTING;
}

/* Finds out how much of the request was sent, for which libcurl has no callback. */
static void update_phase(struct http_transfer *x)
{
    size_t whole = x->request->body.len;
    curl_off_t sent = 0;

    if (x->phase != PHASE_SENDING ||
        curl_easy_getinfo(x->easy, CURLINFO_SIZE_UPLOAD_T, &sent) != CURLE_OK ||
        (size_t)sent == x->sent)
        return;
    x->sent = (size_t)sent;
    enter_phase(x, x->sent < whole ? PHASE_SENDING : PHASE_WAITING);
}

static bool waits_for_first(const struct http_transfer *x)
{
    return (x->phase == PHASE_WAITING || x->phase == PHASE_OPENING) &&
           x->limits->first_byte_ms != HTTP_AS_IDLE;
}

/* Returns the current limit in milliseconds; 0 or less means none. */
static long current_limit(const struct http_transfer *x)
{
    long idle_ms = x->limits->idle_ms;

    if (x->ending_ms > 0 && (idle_ms <= 0 || idle_ms > x->ending_ms))
        idle_ms = x->ending_ms;
    if (!is_connected(x))
        return x->limits->connect_ms;
    return waits_for_first(x) ? x->limits->first_byte_ms : idle_ms;
}

/* Returns the milliseconds for which bytes may still bring no content, 0 or less if that limit is
 * reached, or POLL_MS without one. */
static int64_t content_left(const struct http_transfer *x)
{
    if (!x->sink->content || x->limits->idle_ms <= 0 || x->phase != PHASE_COMING)
        return POLL_MS;
    return x->content_since + (int64_t)x->limits->idle_ms * HTTP_EMPTY_FACTOR - time_ticks();
}

/* Returns the milliseconds until the current limit is reached, 0 or less if it is, or POLL_MS
 * without a limit. */
static int64_t time_left(const struct http_transfer *x)
{
    long limit = current_limit(x);
    int64_t left = limit > 0 ? x->since + limit - time_ticks() : POLL_MS;
    int64_t empty = content_left(x);

    return left < empty ? left : empty;
}

/* ---- the request ---- */

static struct curl_slist *header_list(const struct http_request *r)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:"); /* don't wait for status 100 */

    /* Compression delays the deltas of a stream, so this asks for none. The response of a server
     * or gateway that compresses anyway is decompressed (CURLOPT_ACCEPT_ENCODING). */
    list = curl_slist_append(list, "Accept-Encoding: identity");

    struct str rest = buf_str(&r->headers);

    while (rest.n > 0) {
        struct str line = str_cut(&rest, '\n');
        struct buf one = BUF_INIT(BUF_SMALL);

        buf_add_str(&one, str_trim(line));
        /* libcurl leaves out a header without a value, unless it is written so. */
        if (str_ends(buf_str(&one), STR(":")))
            one.data[one.len - 1] = ';';
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

/* Returns a part of an http or https URL, which the caller frees with curl_free, or NULL. */
static char *url_part(const char *url, CURLUPart part)
{
    CURLU *u = parse_url(url);
    char *text = NULL;

    if (u && curl_url_get(u, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK)
        text = NULL;
    curl_url_cleanup(u);
    return text;
}

const char *http_library(void)
{
    return curl_version();
}

bool http_origin(const char *url, struct buf *out)
{
    char *host = url_part(url, CURLUPART_HOST), *port = url_part(url, CURLUPART_PORT);
    bool ok = host && port;

    if (ok) {
        vis_add_line(out, str_of(host), true);
        buf_add_byte(out, ':');
        buf_add_c(out, port);
    }
    curl_free(host);
    curl_free(port);
    return ok;
}

int http_refuse_redirect(const struct http_head *head, struct err *e)
{
    struct buf origin = BUF_INIT(BUF_SMALL);
    bool named = http_origin(buf_c(&head->field[HTTP_LOCATION]), &origin);

    err_set(e, ERR_REQUEST, "HTTP %d: redirect%s%s%s is not followed", head->status,
            named ? " to '" : "", buf_c(&origin), named ? "'" : "");
    buf_release(&origin);
    return -1;
}

bool http_resolve(const char *base, const char *reference, struct buf *out)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLU *u = parse_url(base);
    char *url = NULL;
    bool ok = u && curl_url_set(u, CURLUPART_URL, reference, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_URL, &url, 0) == CURLUE_OK;

    for (size_t i = 0; ok && i < sizeof parts / sizeof *parts; i++) {
        char *a = url_part(base, parts[i]), *b = url_part(url, parts[i]);

        ok = a && b && curl_strequal(a, b);
        curl_free(a);
        curl_free(b);
    }
    if (ok)
        buf_add_c(out, url);
    curl_free(url);
    curl_url_cleanup(u);
    return ok;
}

bool http_is_loopback(const char *url)
{
    static const unsigned char loopback6[16] = {[15] = 1};
    char *name = url_part(url, CURLUPART_HOST);
    struct buf host = BUF_INIT(BUF_SMALL);
    unsigned char v4[4], v6[16];
    bool is;

    /* A name that ends in a dot is not a loopback name here, because libcurl resolves it with a
     * name server. */
    buf_add_str(&host, str_of(name));
    if (host.len > 2 && host.data[0] == '[') {
        buf_truncate(&host, host.len - 1);
        buf_consume(&host, 1);
    }
    if (inet_pton(AF_INET, buf_c(&host), v4) == 1)
        is = v4[0] == 127;
    else if (inet_pton(AF_INET6, buf_c(&host), v6) == 1)
        is = memcmp(v6, loopback6, sizeof v6) == 0;
    else /* RFC 6761 section 6.3: this name and its subdomains */
        is = curl_strequal(buf_c(&host), "localhost") ||
             (host.len > 10 && curl_strequal(buf_c(&host) + host.len - 10, ".localhost"));
    buf_release(&host);
    curl_free(name);
    return is;
}

/* ---- the callbacks of libcurl ---- */

/* Calls after_send, once for each request that libcurl has sent or begun to send. */
static void call_after_send(struct http_transfer *x)
{
    if (x->sending && x->limits->after_send)
        x->limits->after_send(x->limits->send_arg);
    x->sending = false;
}

/* Receives one line of a head, or of the trailer after a chunked body. */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_transfer *x = arg;
    struct http_head *head = x->sink->head;
    struct str line = str_trim((struct str){p, size * n}), value = line, name;
    struct buf *type = &head->field[HTTP_MEDIA_TYPE];
    long status = 0;
    bool interim;

    call_after_send(x);
    x->head_bytes += size * n;
    if (x->head_bytes > HEAD_MAX) {
        x->stopped = true;
        err_set(x->e, ERR_NETWORK, "no answer from '%s': its headers are longer than %zu KiB",
                buf_c(&x->where), HEAD_MAX >> 10);
        return 0;
    }
    if (head->status != 0)
        return n;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    /* An interim response (1xx, RFC 9110 section 15.2) is followed by another head. */
    interim = line.n == 0 && status >= 100 && status < 200;
    name = str_cut(&value, ':');
    for (int i = 0; i < HTTP_FIELDS; i++)
        if (str_eq_lower(name, head_names[i]))
            buf_set(&head->field[i], str_trim(value));
        else if (interim || str_starts(line, STR("HTTP/")))
            buf_clear(&head->field[i]);
    if (interim || line.n > 0)
        return n;
    /* `Text/Event-Stream; charset=x` becomes `text/event-stream`. */
    value = buf_str(type);
    buf_truncate(type, str_trim(str_cut(&value, ';')).n);
    for (size_t i = 0; i < type->len; i++)
        type->data[i] = ascii_lower(type->data[i]);
    head->status = (int)status;
    if (x->phase == PHASE_WAITING && x->limits->first_byte_ms == HTTP_AS_IDLE)
        x->since = time_ticks();
    return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct http_transfer *x = arg;

    if (size * n == 0)
        return n;
    x->stopped = x->sink->body(x->sink->arg, (struct str){p, size * n}, x->e) != 0;
    /* This comes after the sink, so that a slow reader of our output does not look like a silent
     * server. Bytes after the end of the response do not extend the time. */
    update_phase(x);
    if (waits_for_first(x) && x->sink->begun && !x->sink->begun(x->sink->arg))
        x->phase = PHASE_OPENING;
    else if (x->ending_ms != HTTP_ENDED_MS)
        enter_phase(x, PHASE_COMING);
    if (x->sink->content) {
        size_t content = x->sink->content(x->sink->arg);

        if (content != x->content)
            x->content_since = time_ticks();
        x->content = content;
    }
    x->ending_ms = x->sink->ending ? x->sink->ending(x->sink->arg) : 0;
    return x->stopped ? 0 : n;
}

/* Opens a socket and names a proxy in x->where. libcurl cannot say which proxy it uses, and before version 8.7
 * not even whether it uses one. So a connection to another port than the server's counts as one to
 * a proxy. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct http_transfer *x = arg;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    bool v6 = a->family == AF_INET6;
    curl_socket_t fd;

    (void)purpose;
    buf_truncate(&x->where, x->origin);
    if (getnameinfo(&a->addr, (socklen_t)a->addrlen, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
        strcmp(strrchr(buf_c(&x->where), ':') + 1, port) != 0)
        buf_addf(&x->where, "' through proxy '%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    fd = socket(a->family, a->socktype, a->protocol);
    x->no_socket = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* Calls before_send, unless that was done. */
static void call_before_send(struct http_transfer *x)
{
    if (!x->prepared && x->limits->before_send)
        x->limits->before_send(x->limits->send_arg);
    x->prepared = true;
}

/* The same while the connection is being made. */
static void prepare_early(struct http_transfer *x)
{
    long limit = x->limits->connect_ms;
    int64_t began = time_ticks();

    if (x->prepared)
        return;
    call_before_send(x);
    /* If that took much of the time to connect, libcurl begins again. It has no other way to extend
     * the limit of a transfer that is under way. */
    if (limit > 0 && time_ticks() - began > limit / 8 &&
        (curl_multi_remove_handle(x->pool->multi, x->easy) ||
         curl_multi_add_handle(x->pool->multi, x->easy)))
        x->state = err_set(x->e, ERR_FAILURE, "cannot start libcurl");
}

/* libcurl calls this after it has connected, including TLS and a proxy, and before it sends the
 * request, also before it sends the request again. */
static int on_connected(void *arg, char *address, char *own_address, int port, int own_port)
{
    struct http_transfer *x = arg;

    (void)address;
    (void)own_address;
    (void)port;
    (void)own_port;
    if (is_connected(x) && x->request->once)
        return CURL_PREREQFUNC_ABORT;
    call_before_send(x);
    x->sending = true;
    if (!is_connected(x))
        enter_phase(x, x->request->body.len > 0 ? PHASE_SENDING : PHASE_WAITING);
    return CURL_PREREQFUNC_OK;
}

/* ---- the exchange ---- */

/* Returns the file of trusted certificates if libcurl was built without one, as in the static
 * programs, which run on many systems; NULL if no such file exists. */
static const char *usual_ca_file(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
        "/etc/ssl/ca-bundle.pem",             /* openSUSE */
        "/etc/ssl/cert.pem",                  /* Alpine and the BSDs */
    };
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);

    if (v->age < CURLVERSION_SEVENTH || v->cainfo || v->capath)
        return NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}

static void configure(struct http_transfer *x)
{
    const struct http_request *r = x->request;
    const struct http_limits *limits = x->limits;
    const char *usual = limits->ca_file || limits->ca_dir ? NULL : usual_ca_file();
    CURL *h = x->easy;
    long connect_ms = limits->connect_ms;

    curl_easy_setopt(h, CURLOPT_URL, buf_c(&r->url));
    /* A request to this machine never goes to a proxy, even if the environment names one. */
    if (http_is_loopback(buf_c(&r->url)))
        curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, x->headers);
    curl_easy_setopt(h, CURLOPT_PRIVATE, x);
    if (r->body.len > 0) {
        curl_easy_setopt(h, CURLOPT_POST, 1L);
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, buf_c(&r->body));
    }
    if (r->method)
        curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, r->method);
    /* libcurl decompresses in pieces of at most 16 KiB and each sink limits what it keeps, so a
     * small response that decompresses to a huge one does not fill the memory. */
    curl_easy_setopt(h, CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(h, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A silent name server does not delay the end of a cancelled exchange. */
    curl_easy_setopt(h, CURLOPT_QUICK_EXIT, 1L);
#endif
    if (usual)
        curl_easy_setopt(h, CURLOPT_CAINFO, usual);
    if (limits->ca_file)
        curl_easy_setopt(h, CURLOPT_CAINFO, limits->ca_file);
    if (limits->ca_dir)
        curl_easy_setopt(h, CURLOPT_CAPATH, limits->ca_dir);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, USER_AGENT);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, x->reason);
    /* 0 would mean libcurl's default of five minutes. */
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, connect_ms > 0 ? connect_ms : (long)INT32_MAX);
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, limits->whole_ms);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, x);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(h, CURLOPT_PREREQDATA, x);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, x);
}

/* Returns true if another attempt would fail for the same reason. */
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

/* Sets the error of an exchange that failed for `reason`, by how far it got. `answered`: there is a
 * response that can be incomplete. */
static int break_off(struct http_transfer *x, bool answered, const char *reason)
{
    const struct http_head *head = x->sink->head;

    if (!is_connected(x))
        return err_set(x->e, ERR_NETWORK, "cannot connect to '%s': %s", buf_c(&x->where), reason);
    if (!answered)
        return err_set(x->e, ERR_NETWORK, "no answer from '%s': %s", buf_c(&x->where), reason);
    if (http_head_is_success(head))
        return err_set(x->e, ERR_INCOMPLETE, "answer is incomplete: %s", reason);
    return err_set(x->e, ERR_NETWORK, "HTTP %d from '%s' broke off: %s", head->status,
                   buf_c(&x->where), reason);
}

/* Sets the error of an exchange that reached its current time limit: `nothing came within 1 s (idle
 * time-out)`. */
static int time_out(struct http_transfer *x)
{
    const struct http_head *head = x->sink->head;
    struct buf reason = BUF_INIT(BUF_SMALL);
    /* A head without a body counts as no response. */
    bool answered = head->status != 0 && (x->phase == PHASE_COMING || !http_head_is_success(head));
    long ms = current_limit(x);

    buf_add_c(&reason, !is_connected(x)            ? "no connection"
                       : content_left(x) <= 0      ? "no part of the answer came"
                       : x->phase == PHASE_OPENING ? "no text came"
                                                   : "nothing came");
    if (content_left(x) <= 0)
        ms *= HTTP_EMPTY_FACTOR;
    if (ms % 1000 == 0)
        buf_addf(&reason, " within %ld s", ms / 1000);
    else
        buf_addf(&reason, " within %ld ms", ms);
    buf_addf(&reason, " (%s time-out)",
             !is_connected(x)     ? "connect"
             : waits_for_first(x) ? "first-byte"
                                  : "idle");
    break_off(x, answered, buf_c(&reason));
    if (is_connected(x) && (!answered || http_head_is_success(head)) && x->e)
        x->e->kind = ERR_TIMEOUT;
    buf_release(&reason);
    return -1;
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

/* Returns the result of a transfer that libcurl has finished. */
static int transfer_result(struct http_transfer *x, CURLcode code)
{
    struct buf reason = BUF_INIT(BUF_SMALL);
    bool answered = x->sink->head->status != 0;
    long os_errno = 0;

    update_phase(x);
    curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (code == CURLE_OK && answered)
        return 0;
    if (code == CURLE_OPERATION_TIMEDOUT && !is_connected(x) && time_left(x) <= 1)
        return time_out(x);
    if (code == CURLE_OK)
        buf_add_c(&reason, "the connection was closed");
    else if (is_too_large(code) && is_connected(x) && !answered)
        buf_add_c(&reason, "a line of its headers is too long");
    else if (code == CURLE_COULDNT_CONNECT && os_errno != 0)
        buf_add_c(&reason, strerror((int)os_errno));
    else if (code == CURLE_COULDNT_CONNECT && x->no_socket != 0)
        buf_add_c(&reason, strerror(x->no_socket));
    else if (code == CURLE_COULDNT_RESOLVE_HOST)
        buf_add_c(&reason, "unknown host");
    else if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING ||
             code == CURLE_ABORTED_BY_CALLBACK) /* on_connected */
        buf_add_c(&reason, "the connection was closed");
    else if (code == CURLE_BAD_CONTENT_ENCODING)
        buf_add_c(&reason, "it cannot be decompressed");
    else if (code == CURLE_SSL_CONNECT_ERROR && strstr(x->reason, "wrong version number"))
        buf_add_c(&reason, "the server does not speak TLS there (http:// instead of https://?)");
    else
        vis_add_line(&reason, str_of(x->reason[0] ? x->reason : curl_easy_strerror(code)), true);
    break_off(x, answered, buf_c(&reason));
    if (!is_connected(x) && is_lasting(code) && x->e)
        x->e->kind = ERR_UNTRUSTED;
    buf_release(&reason);
    return -1;
}

void http_pool_step(struct http_pool *p)
{
    int running = 0, left = 0;
    const CURLMsg *msg;
    CURLMcode failed;

    if (!p->multi)
        return;
    failed = curl_multi_perform(p->multi, &running);
    for (struct http_transfer *x = p->first; x && failed; x = x->next)
        if (x->state > 0)
            x->state = break_off(x, x->sink->head->status != 0, curl_multi_strerror(failed));
    for (struct http_transfer *x = p->first; x; x = x->next)
        call_after_send(x);
    while ((msg = curl_multi_info_read(p->multi, &left)) != NULL) {
        char *owner = NULL;
        struct http_transfer *x;

        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &owner);
        x = (struct http_transfer *)(void *)owner;
        if (x->state > 0)
            x->state = x->stopped ? -1 : transfer_result(x, msg->data.result);
    }
    for (struct http_transfer *x = p->first; x; x = x->next) {
        if (x->state <= 0)
            continue;
        prepare_early(x);
        update_phase(x);
        /* libcurl itself limits how long it connects. */
        if (is_connected(x) && time_left(x) <= 0)
            x->state = time_out(x);
    }
}

size_t http_pool_fds(struct http_pool *p, struct pollfd *fds, size_t most)
{
    fd_set readers, writers, others;
    int last = -1;
    long soon = -1;
    size_t n = 0;

    FD_ZERO(&readers);
    FD_ZERO(&writers);
    FD_ZERO(&others);
    if (!p->multi || curl_multi_timeout(p->multi, &soon) || (soon >= 0 && soon < POOL_SOON_MS) ||
        curl_multi_fdset(p->multi, &readers, &writers, &others, &last))
        return 0;
    for (int fd = 0; fd <= last && n < most; fd++) {
        int events = (FD_ISSET(fd, &readers) ? POLLIN : 0) | (FD_ISSET(fd, &writers) ? POLLOUT : 0);

        if (events)
            fds[n++] = (struct pollfd){.fd = fd, .events = (short)events};
    }
    return n;
}

struct http_pool *http_pool_open(void)
{
    return mem_zalloc(sizeof(struct http_pool));
}

void http_pool_close(struct http_pool *p)
{
    if (!p)
        return;
    for (struct http_transfer *x = p->first, *next; x; x = next) {
        next = x->next;
        http_end(x);
    }
    if (p->multi) {
        curl_multi_cleanup(p->multi);
        curl_global_cleanup();
    }
    free(p);
}

struct http_transfer *http_begin(struct http_pool *p, const struct http_request *r,
                                 const struct http_limits *limits, const struct http_sink *sink,
                                 struct err *e)
{
    struct http_transfer *x = mem_zalloc(sizeof *x);

    *x = (struct http_transfer){.pool = p,
                                .next = p->first,
                                .state = 1,
                                .limits = limits,
                                .sink = sink,
                                .e = e,
                                .request = r};
    p->first = x;
    buf_init(&x->where, BUF_SMALL);
    enter_phase(x, PHASE_CONNECTING);
    if (!http_origin(buf_c(&r->url), &x->where)) {
        x->state =
            err_set(e, ERR_USAGE, "bad base URL: not of the form http[s]://HOST[:PORT]/PATH");
        return x;
    }
    x->origin = x->where.len;
    /* Starting libcurl takes a millisecond. */
    if (!p->multi && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        p->multi = curl_multi_init();
        if (!p->multi)
            curl_global_cleanup();
    }
    if (p->multi) {
        x->headers = header_list(r);
        x->easy = curl_easy_init();
    }
    if (!x->easy || !x->headers ||
        (configure(x), curl_multi_add_handle(p->multi, x->easy)) != CURLM_OK)
        x->state = err_set(e, ERR_FAILURE, "cannot start libcurl");
    return x;
}

int http_state(const struct http_transfer *x)
{
    return x->state;
}

void http_end(struct http_transfer *x)
{
    struct http_transfer **at = &x->pool->first;

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    if (x->easy) {
        /* An error means that the handle was not added. */
        (void)curl_multi_remove_handle(x->pool->multi, x->easy);
        curl_easy_cleanup(x->easy);
    }
    curl_slist_free_all(x->headers);
    buf_release(&x->where);
    free(x);
}

int http_exchange(const struct http_request *r, const struct http_limits *limits,
                  const struct http_sink *sink, struct err *e)
{
    struct http_pool *p = limits->pool ? limits->pool : http_pool_open();
    struct http_transfer *x = http_begin(p, r, limits, sink, e);
    struct curl_waitfd cancel = {limits->cancel_fd, CURL_WAIT_POLLIN, 0};
    unsigned cancels = limits->cancel_fd >= 0 ? 1 : 0;
    int result = x->state;

    while (result > 0) {
        int64_t wait;
        CURLMcode failed;

        http_pool_step(p);
        result = x->state;
        if (result <= 0)
            break;
        wait = is_connected(x) ? time_left(x) : POLL_MS;
        wait = http_tick(limits, wait < POLL_MS ? wait : POLL_MS);
        failed = curl_multi_poll(p->multi, &cancel, cancels, wait > 0 ? (int)wait : 0, NULL);
        if (failed)
            result = break_off(x, sink->head->status != 0, curl_multi_strerror(failed));
        else if (cancels && (cancel.revents & CURL_WAIT_POLLIN))
            result = err_set(e, ERR_SIGNAL, "interrupted");
    }
    call_before_send(x); /* no connection was begun */
    http_end(x);
    if (p != limits->pool)
        http_pool_close(p);
    return result;
}
