/*
 * One exchange over HTTP with a server in this file: a child process that plays a script to one
 * client and returns the request that it read.
 */
#include "test.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chathist/base/time.h"
#include "chathist/llm/http.h"

/* ---- the server ---- */

/* One step: bytes to send (may be NULL), then a pause. A negative pause waits until the client
 * closes the connection, NEXT_REQUEST for another request on it. */
#define NEXT_REQUEST INT_MIN
struct step {
    const char *bytes;
    int pause_ms;
};

struct server {
    struct buf url;
    struct buf request; /* the client's request; valid after server_stop */
    int listener, pipe[2];
    int port;
    pid_t pid;
};

/* Reads a request and its body. */
static void read_request(int fd, struct buf *b)
{
    for (;;) {
        const char *end = strstr(buf_c(b), "\r\n\r\n");
        const char *length = strstr(buf_c(b), "Content-Length: ");
        size_t want = length ? (size_t)strtoul(length + 16, NULL, 10) : 0;
        char *to;
        ssize_t n;

        if (end && b->len >= (size_t)(end + 4 - buf_c(b)) + want)
            return;
        to = buf_room(b, 65536);
        n = read(fd, to, 65536);
        if (n <= 0)
            return;
        buf_grew(b, (size_t)n);
    }
}

static void pause_for(int fd, int ms)
{
    char byte;

    if (ms < 0)
        while (read(fd, &byte, 1) > 0)
            continue;
    else if (ms > 0)
        poll(NULL, 0, ms);
}

static void serve(struct server *s, const struct step *steps, size_t count)
{
    struct buf request = BUF_INIT(BUF_LINE);
    int fd = accept(s->listener, NULL, NULL);

    alarm(20);
    read_request(fd, &request);
    for (size_t i = 0; i < count; i++) {
        const char *bytes = steps[i].bytes;

        if (bytes && write(fd, bytes, strlen(bytes)) < 0)
            break;
        if (steps[i].pause_ms == NEXT_REQUEST) {
            size_t before = request.len;
            struct buf next = BUF_INIT(BUF_LINE);

            read_request(fd, &next);
            buf_add_str(&request, buf_str(&next));
            buf_release(&next);
            if (request.len == before)
                break;
        } else {
            pause_for(fd, steps[i].pause_ms);
        }
    }
    shutdown(fd, SHUT_WR);
    pause_for(fd, -1);
    for (size_t done = 0; done < request.len;) {
        ssize_t n = write(s->pipe[1], request.data + done, request.len - done);

        if (n <= 0)
            break;
        done += (size_t)n;
    }
    _exit(0);
}

static int listen_on_loopback(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&at, n) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        exit(2);
    *port = ntohs(at.sin_port);
    return fd;
}

static void server_start(struct server *s, const struct step *steps, size_t count)
{
    buf_init(&s->url, BUF_SMALL);
    buf_init(&s->request, BUF_LINE);
    s->listener = listen_on_loopback(&s->port);
    buf_addf(&s->url, "http://127.0.0.1:%d/v1", s->port);
    if (pipe(s->pipe) != 0)
        exit(2);
    fflush(NULL);
    s->pid = fork();
    if (s->pid == 0) {
        close(s->pipe[0]);
        serve(s, steps, count);
    }
    close(s->pipe[1]);
    close(s->listener);
}

static void server_stop(struct server *s)
{
    ssize_t n;

    while ((n = read(s->pipe[0], buf_room(&s->request, 65536), 65536)) > 0)
        buf_grew(&s->request, (size_t)n);
    close(s->pipe[0]);
    waitpid(s->pid, NULL, 0);
}

static void server_release(struct server *s)
{
    buf_release(&s->url);
    buf_release(&s->request);
}

/* ---- the client ---- */

struct got {
    struct http_head head;
    struct buf fields, body; /* fields: all of them, with | between */
    bool stop;               /* the body ends the exchange */
    struct err e;
    int rc;
    int64_t ms;
};

static int on_body(void *arg, struct str piece, struct err *e)
{
    struct got *got = arg;

    (void)e;
    CHECK(got->head.status != 0);
    buf_add_str(&got->body, piece);
    return got->stop ? -1 : 0;
}

static const struct http_limits usual = {.connect_ms = 5000, .idle_ms = 5000, .cancel_fd = -1};

static void ask(struct got *got, const char *url, struct str body, const struct http_limits *limits)
{
    struct http_request r;
    struct http_sink sink = {.head = &got->head, .body = on_body, .arg = got};
    int64_t start = time_ticks();

    setenv("no_proxy", "*", 1);
    http_request_init(&r);
    buf_add_c(&r.url, url);
    buf_add_str(&r.body, body);
    CHECK_INT(http_add_header(&r, "Authorization", STR("Bearer secret-key"), NULL), 0);
    CHECK_INT(http_add_header(&r, "X-Empty", STR(""), NULL), 0);
    CHECK_INT(http_add_header(&r, "Content-Type", STR("application/json"), NULL), 0);
    got->rc = http_exchange(&r, limits, &sink, &got->e);
    got->ms = time_ticks() - start;
    for (int i = 0; i < HTTP_FIELDS; i++)
        buf_addf(&got->fields, "%s%s", i ? "|" : "", buf_c(&got->head.field[i]));
    CHECK(strstr(err_text(&got->e), "secret") == NULL);
    http_request_release(&r);
}

static void got_init(struct got *got)
{
    memset(got, 0, sizeof *got);
    http_head_init(&got->head);
    buf_init(&got->fields, BUF_SMALL);
    buf_init(&got->body, BUF_LINE);
}

static void got_release(struct got *got)
{
    http_head_release(&got->head);
    buf_release(&got->fields);
    buf_release(&got->body);
    err_release(&got->e);
}

/* Sends a request to a server that plays the steps. The caller releases both. */
static void play(struct server *s, struct got *got, const struct step *steps, size_t count,
                 const struct http_limits *limits)
{
    server_start(s, steps, count);
    ask(got, buf_c(&s->url), STR("{\"a\":1}"), limits);
    server_stop(s);
}

#define PLAY(limits, ...)                                                                          \
    struct server s;                                                                               \
    struct got got;                                                                                \
    const struct step steps[] = {__VA_ARGS__};                                                     \
    got_init(&got);                                                                                \
    play(&s, &got, steps, sizeof steps / sizeof *steps, limits)
#define DONE()                                                                                     \
    server_release(&s);                                                                            \
    got_release(&got)

/* ---- what is sent and what comes back ---- */

TEST(a_post_goes_out_as_it_was_built)
{
    PLAY(&usual, {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0});
    CHECK_INT(got.rc, 0);
    CHECK(strncmp(buf_c(&s.request), "POST /v1 HTTP/1.1\r\n", 19) == 0);
    CHECK(strstr(buf_c(&s.request), "\r\nAuthorization: Bearer secret-key\r\n") != NULL);
    CHECK(strstr(buf_c(&s.request), "\r\nContent-Type: application/json\r\n") != NULL);
    CHECK(strstr(buf_c(&s.request), "\r\nX-Empty:\r\n") != NULL);
    CHECK(strstr(buf_c(&s.request), "\r\nUser-Agent: chathist") != NULL);
    CHECK(strstr(buf_c(&s.request), "\r\nContent-Length: 7\r\n") != NULL);
    CHECK(strstr(buf_c(&s.request), "\r\n\r\n{\"a\":1}") != NULL);
    CHECK(strstr(buf_c(&s.request), "Expect") == NULL);
    CHECK(strstr(buf_c(&s.request), "Accept-Encoding: identity\r\n") != NULL);
    DONE();
}

TEST(head_and_body_are_handed_on)
{
    PLAY(&usual,
         {"HTTP/1.1 429 Too Many\r\nContent-TYPE:  Text/Event-Stream ; charset=x\r\n"
          "Retry-After: 1.5\r\nretry-after-ms: 20\r\nX-Should-Retry: false\r\n\r\n",
          0},
         {"a", 20}, {"bc", 0});
    CHECK_INT(got.rc, 0);
    CHECK_INT(got.head.status, 429);
    CHECK_STR(buf_c(&got.fields), "text/event-stream||1.5|20|false|||");
    CHECK_STR(buf_c(&got.body), "abc");
    CHECK_STR(err_text(&got.e), "");
    DONE();
}

TEST(interim_answers_are_passed_over)
{
    PLAY(&usual, {"HTTP/1.1 100 Continue\r\nRetry-After: 9\r\n\r\n", 10},
         {"HTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Type: a/b\r\n\r\n", 10},
         {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0});
    CHECK_INT(got.rc, 0);
    CHECK_INT(got.head.status, 200);
    CHECK_STR(buf_c(&got.fields), "|||||||");
    CHECK_STR(buf_c(&got.body), "ok");
    DONE();
}

TEST(a_trailer_is_no_head)
{
    PLAY(&usual, {"HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                  "chunked\r\n\r\n2\r\nok\r\n0\r\nRetry-After: 1\r\n\r\n",
                  0});
    CHECK_INT(got.rc, 0);
    CHECK_STR(buf_c(&got.fields), "|||||||");
    CHECK_STR(buf_c(&got.body), "ok");
    DONE();
}

TEST(a_large_request_goes_out_whole)
{
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0}};
    struct server s;
    struct got got;
    struct buf body = BUF_INIT(BUF_LINE);

    while (body.len < ((size_t)3 << 20))
        buf_add_c(&body, "0123456789abcde\n");
    got_init(&got);
    server_start(&s, steps, 1);
    ask(&got, buf_c(&s.url), buf_str(&body), &usual);
    server_stop(&s);
    CHECK_INT(got.rc, 0);
    CHECK(strstr(buf_c(&s.request), "Expect") == NULL);
    CHECK(s.request.len > body.len &&
          memcmp(s.request.data + s.request.len - body.len, body.data, body.len) == 0);
    buf_release(&body);
    DONE();
}

/* ---- how it fails ---- */

TEST(an_url_of_another_kind)
{
    static const char *const urls[] = {
        "",        "file:///etc/passwd", "ftp://127.0.0.1/",        "127.0.0.1:80",
        "http://", "http://a b/",        "http://secret:secret@:x/"};

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct got got;

        got_init(&got);
        ask(&got, urls[i], STR("x"), &usual);
        CHECK_INT(got.rc, -1);
        CHECK_INT(got.e.kind, ERR_USAGE);
        CHECK_STR(err_text(&got.e), "bad base URL: not of the form http[s]://HOST[:PORT]/PATH");
        got_release(&got);
    }
}

TEST(an_error_body_that_breaks_off)
{
    PLAY(&usual, {"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nok", 0});
    CHECK_INT(got.rc, -1);
    CHECK_INT(got.e.kind, ERR_NETWORK);
    CHECK_INT(got.head.status, 500);
    CHECK_STR(buf_c(&got.body), "ok");
    DONE();
}

/* ---- the sink ends it ---- */

TEST(a_body_that_is_enough)
{
    struct server s;
    struct got got;
    const struct step steps[] = {{"HTTP/1.1 200 OK\r\n\r\nok", -1}};

    got_init(&got);
    got.stop = true;
    play(&s, &got, steps, 1, &usual);
    CHECK_INT(got.rc, -1);
    CHECK_INT(got.e.kind, ERR_NONE);
    CHECK_STR(buf_c(&got.body), "ok");
    CHECK(got.ms < 2000);
    DONE();
}

/* ---- time ---- */

TEST(cancelled_before_it_began)
{
    struct http_limits limits = usual;
    const struct step steps[] = {{NULL, -1}};
    struct server s;
    struct got got;
    int fds[2];

    got_init(&got);
    if (pipe(fds) != 0 || write(fds[1], "x", 1) != 1)
        exit(2);
    limits.cancel_fd = fds[0];
    server_start(&s, steps, 1);
    ask(&got, buf_c(&s.url), STR("x"), &limits);
    CHECK_INT(got.rc, -1);
    CHECK_INT(got.e.kind, ERR_SIGNAL);
    CHECK(got.ms < 1000);
    kill(s.pid, SIGKILL);
    server_stop(&s);
    close(fds[0]);
    close(fds[1]);
    DONE();
}

/* ---- without a server ---- */

/* Runs an exchange of a pool to its end, with poll(2). Returns its result. */
static int run(struct http_pool *pool, const struct http_request *r, struct got *got)
{
    struct http_sink sink = {.head = &got->head, .body = on_body, .arg = got};
    struct http_transfer *x = http_begin(pool, r, &usual, &sink, &got->e);
    struct pollfd fds[4];
    int result;

    while ((result = http_state(x)) > 0) {
        size_t n = http_pool_fds(pool, fds, 4);

        poll(fds, (nfds_t)n, n > 0 ? 1000 : 1);
        http_pool_step(pool);
    }
    http_end(x);
    return result;
}

TEST(a_pool_keeps_its_connections)
{
    static const char ok[] =
        "HTTP/1.1 200 OK\r\nMcp-Session-Id: s 1\r\nContent-Length: 2\r\n\r\nok";
    const struct step steps[] = {{ok, NEXT_REQUEST}, {ok, 0}};
    struct http_pool *pool = http_pool_open();
    struct http_request r;
    struct server s;
    struct got got;

    got_init(&got);
    server_start(&s, steps, 2);
    http_request_init(&r);
    buf_add_str(&r.url, buf_str(&s.url));
    CHECK_INT(run(pool, &r, &got), 0);
    CHECK_STR(buf_c(&got.head.field[HTTP_SESSION_ID]), "s 1");
    r.method = "DELETE";
    got.head.status = 0;
    CHECK_INT(run(pool, &r, &got), 0);
    CHECK_STR(buf_c(&got.body), "okok");
    http_pool_close(pool);
    server_stop(&s);
    CHECK(strncmp(buf_c(&s.request), "GET /v1 HTTP/1.1\r\n", 18) == 0);
    CHECK(strstr(buf_c(&s.request), "\r\n\r\nDELETE /v1 HTTP/1.1\r\n") != NULL);
    http_request_release(&r);
    DONE();
}

TEST(a_pool_ends_what_is_under_way)
{
    const struct step steps[] = {{NULL, -1}};
    struct http_pool *pool = http_pool_open();
    struct http_request r;
    struct server s;
    struct got got;
    struct http_sink sink = {.head = &got.head, .body = on_body, .arg = &got};
    struct http_transfer *x;

    got_init(&got);
    server_start(&s, steps, 1);
    http_request_init(&r);
    buf_add_str(&r.url, buf_str(&s.url));
    x = http_begin(pool, &r, &usual, &sink, &got.e);
    http_pool_step(pool);
    CHECK_INT(http_state(x), 1);
    http_pool_close(pool);
    server_stop(&s);
    CHECK_INT(got.head.status, 0);
    http_request_release(&r);
    DONE();
}

TEST(header_values_hold_no_line_breaks)
{
    struct http_request r;
    struct err e = ERR_INIT;

    http_request_init(&r);
    CHECK_INT(http_add_header(&r, "X-A", STR("1"), &e), 0);
    CHECK_INT(http_add_header(&r, "X-B", STR("secret\r\nX-C: 2"), &e), -1);
    CHECK_INT(http_add_header(&r, "X-B", STR("secret\n"), &e), -1);
    CHECK_INT(http_add_header(&r, "X-B", STR("sec\0ret"), &e), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    CHECK_STR(err_text(&e), "bad header 'X-B': a control character in its value");
    CHECK_STR(buf_c(&r.headers), "X-A: 1\n");
    http_request_release(&r);
    err_release(&e);
}

TEST(loopback_names_and_addresses)
{
    CHECK(http_is_loopback("http://localhost/v1"));
    CHECK(http_is_loopback("http://LOCALHOST:8080"));
    CHECK(http_is_loopback("https://a.localhost/"));
    CHECK(!http_is_loopback("http://localhost./"));
    CHECK(http_is_loopback("http://127.0.0.1:11434/v1"));
    CHECK(http_is_loopback("http://127.9.8.7/"));
    CHECK(http_is_loopback("http://[::1]:80/"));
    CHECK(http_is_loopback("http://user@127.0.0.1/"));
    CHECK(!http_is_loopback("http://localhost.example.com/"));
    CHECK(!http_is_loopback("http://notlocalhost/"));
    CHECK(!http_is_loopback("http://127.0.0.1.example.com/"));
    CHECK(!http_is_loopback("http://127.0.0.1@example.com/"));
    CHECK(!http_is_loopback("http://[::2]/"));
    CHECK(!http_is_loopback("http://128.0.0.1/"));
    CHECK(!http_is_loopback("file:///localhost"));
    CHECK(!http_is_loopback("http://a/"));
    CHECK(!http_is_loopback("localhost"));
    CHECK(!http_is_loopback(""));
}

TEST(the_origin_of_an_url)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    CHECK(http_origin("https://user:secret@example.com/v1?key=secret", &out));
    CHECK_STR(buf_c(&out), "example.com:443");
    buf_clear(&out);
    CHECK(http_origin("http://[::1]:8080/", &out));
    CHECK_STR(buf_c(&out), "[::1]:8080");
    buf_clear(&out);
    CHECK(!http_origin("/relative", &out));
    CHECK(!http_origin("", &out));
    CHECK_INT(out.len, 0);
    buf_release(&out);
}
