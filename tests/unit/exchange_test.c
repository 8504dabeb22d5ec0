/*
 * An exchange from request to response over a transport in this file: OpenAI's wire in pieces of
 * any size. Every streamed case is played whole, byte by byte, and in two pieces cut at each
 * offset.
 */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "chathist/base/time.h"
#include "chathist/llm/exchange.h"
#include "chathist/llm/provider_openai.h"

/* The response that the transport plays. It is global, because a provider has no context pointer.
 */
static struct {
    int status;
    const char *type;
    struct str body;
    size_t cut;        /* after the end: byte by byte */
    enum err_kind end; /* how the transfer ends; ERR_NONE: normally */
    bool stopped;      /* the sink ended the transfer */
    const char *retry_after, *should_retry;
    unsigned fails;  /* the response is a good one after this many failures */
    unsigned played; /* the number of requests */
    bool no_head;
} wire;

static void set_wire(int status, const char *type, struct str body, enum err_kind end);

static int play(const struct ask *ask, const struct http_request *r, const struct http_sink *sink,
                struct err *e)
{
    size_t n = wire.body.n;

    (void)ask;
    CHECK(r->body.len > 0);
    if (wire.played++ == wire.fails && wire.fails > 0) {
        set_wire(200, "", STR("{\"choices\":[{\"message\":{\"content\":\"good\"}}]}"), ERR_NONE);
        return play(ask, r, sink, e);
    }
    if (wire.no_head)
        return err_set(e, wire.end, "transport");
    sink->head->status = wire.status;
    buf_add_c(&sink->head->field[HTTP_MEDIA_TYPE], wire.type);
    buf_add_str(&sink->head->field[HTTP_RETRY_AFTER], str_of(wire.retry_after));
    buf_add_str(&sink->head->field[HTTP_SHOULD_RETRY], str_of(wire.should_retry));
    for (size_t at = 0; at < n;) {
        size_t size = wire.cut > n ? 1 : at < wire.cut ? wire.cut : n - at;
        char *copy =
            malloc(size); /* an own copy, so that the sanitizer sees a read beyond a piece */
        int rc;

        memcpy(copy, wire.body.p + at, size);
        rc = sink->body(sink->arg, (struct str){copy, size}, e);
        free(copy);
        if (rc != 0) {
            wire.stopped = true;
            return -1;
        }
        at += size;
    }
    return wire.end ? err_set(e, wire.end, "transport") : 0;
}

/* The repetitions that were reported to the ask's watch. */
static struct {
    unsigned retries;
    int cancel_fd;
    unsigned told, repeated;
    int64_t ms;
    char why[80];
} repeat = {.cancel_fd = -1};

static void on_again(void *arg, const struct err *why, int64_t ms, unsigned repeated)
{
    (void)arg;
    repeat.told++;
    repeat.ms = ms;
    repeat.repeated = repeated;
    snprintf(repeat.why, sizeof repeat.why, "%s", err_text(why));
}

struct asked {
    struct context context;
    struct response answer;
    struct response_sink sink;
    size_t seen; /* bytes passed to the sink */
    size_t most; /* the sink fails above this */
    struct err e;
    int rc;
};

static int take_text(void *arg, struct str delta)
{
    struct asked *a = arg;

    CHECK(delta.n > 0);
    a->seen += delta.n;
    return a->seen > a->most ? -1 : 0;
}

static void ask(struct asked *a, size_t most)
{
    static struct provider p;
    struct ask ask;

    memset(a, 0, sizeof *a);
    a->most = most;
    a->sink = (struct response_sink){.text = take_text, .again = on_again, .arg = a};
    p = provider_openai;
    p.exchange = play;
    context_init(&a->context);
    context_add_text(&a->context, ROLE_USER, STR("q"));
    response_init(&a->answer, &a->sink);
    wire.stopped = false;
    wire.played = 0;
    ask = (struct ask){.context = &a->context,
                       .model = "m",
                       .key = "sk-key-1",
                       .stream = true,
                       .retries = repeat.retries,
                       .limits.cancel_fd = repeat.cancel_fd};
    repeat.told = 0;
    a->rc = exchange_run(&p, &ask, &a->answer, 0, &(unsigned){0}, &a->e);
}

static void asked_release(struct asked *a)
{
    context_release(&a->context);
    response_release(&a->answer);
    err_release(&a->e);
}

/* Plays the wire in every way and expects the same text, finish reason, kind and message. */
static void check(const char *text, const char *finish, enum err_kind kind, const char *message,
                  int line)
{
    size_t step = wire.body.n > 5000 ? wire.body.n / 7 : 1;

    for (wire.cut = 0; wire.cut <= wire.body.n + step; wire.cut += step) {
        struct asked a;
        bool same;

        ask(&a, SIZE_MAX);
        same = a.rc == (kind ? -1 : 0) && a.e.kind == kind &&
               strcmp(err_text(&a.e), message) == 0 && strcmp(buf_c(&a.answer.text), text) == 0 &&
               a.seen == a.answer.text.len && strcmp(a.answer.finish_reason, finish) == 0;
        if (!test_check(same, text, __FILE__, line)) {
            fprintf(stderr, "    cut at %zu of %zu\n", wire.cut, wire.body.n);
            test_check_str(buf_c(&a.answer.text), text, "text", __FILE__, line);
            test_check_str(a.answer.finish_reason, finish, "finish", __FILE__, line);
            test_check_int((long long)a.e.kind, (long long)kind, "kind", __FILE__, line);
            test_check_str(err_text(&a.e), message, "message", __FILE__, line);
            step = wire.body.n + 1;
        }
        asked_release(&a);
    }
}

static void set_wire(int status, const char *type, struct str body, enum err_kind end)
{
    wire.retry_after = wire.should_retry = NULL;
    wire.fails = 0;
    wire.no_head = false;
    wire.status = status;
    wire.type = type;
    wire.body = body;
    wire.end = end;
    wire.cut = 0;
}

#define EVENTS "text/event-stream"
#define JSON "application/json"
#define WIRE(status, type, body, end) set_wire(status, type, STR(body), end)
#define COMPLETE(text, finish) check(text, finish, ERR_NONE, "", __LINE__)
#define FAILS(text, finish, kind, message) check(text, finish, kind, message, __LINE__)

#define DELTA(text) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define FINISH(reason) "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" reason "\"}]}\n\n"
#define END "data: [DONE]\n\n"

TEST(the_end_of_a_stream)
{
    WIRE(200, EVENTS, DELTA("a") FINISH("stop"), ERR_NONE);
    COMPLETE("a", "stop");
    WIRE(200, EVENTS, DELTA("a") END, ERR_NONE);
    COMPLETE("a", "stop");
    WIRE(200, EVENTS, DELTA("a") "data: [DONE]", ERR_NONE);
    COMPLETE("a", "stop");
    WIRE(200, EVENTS, DELTA("a") FINISH("stop") "data: {\"usage\":{}}", ERR_NONE);
    COMPLETE("a", "stop");
    WIRE(200, EVENTS, DELTA("a"), ERR_NONE);
    FAILS("a", "error", ERR_INCOMPLETE, "answer is incomplete: the stream ended early");
    WIRE(200, EVENTS, DELTA("a") "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}", ERR_NONE);
    FAILS("a", "error", ERR_INCOMPLETE, "answer is incomplete: the stream ended early");
    WIRE(200, EVENTS, "", ERR_NONE);
    FAILS("", "error", ERR_INCOMPLETE, "answer is incomplete: the stream ended early");
}

/* The reason came, but so did an error: the response must not be stored as a finished one. */
TEST(an_error_after_the_reason)
{
#define BROKE "data: {\"error\":{\"message\":\"lost\"}}\n\n"
    WIRE(200, EVENTS, DELTA("a") FINISH("stop") BROKE, ERR_NONE);
    FAILS("a", "error", ERR_INCOMPLETE, "answer is incomplete: server error: lost");
    WIRE(200, EVENTS, DELTA("a") FINISH("tool_calls") BROKE, ERR_NONE);
    FAILS("a", "error", ERR_INCOMPLETE, "answer is incomplete: server error: lost");
    /* A reason that says why the response is not complete says more. */
    WIRE(200, EVENTS, DELTA("a") FINISH("length") BROKE, ERR_NONE);
    FAILS("a", "length", ERR_INCOMPLETE, "answer is incomplete: server error: lost");
#undef BROKE
}

/* A server that does not close the connection does not delay the result. */
TEST(behind_the_end_mark_nothing_is_read)
{
    struct asked a;

    WIRE(200, EVENTS, DELTA("a") END DELTA("b") "data: no JSON\n\n", ERR_NONE);
    COMPLETE("a", "stop");
    wire.cut = wire.body.n + 1;
    ask(&a, SIZE_MAX);
    CHECK(wire.stopped);
    asked_release(&a);
}

TEST(a_transfer_that_breaks_off)
{
    WIRE(200, EVENTS, DELTA("a"), ERR_INCOMPLETE);
    FAILS("a", "error", ERR_INCOMPLETE, "transport");
    WIRE(200, EVENTS, DELTA("a") FINISH("stop"), ERR_INCOMPLETE);
    COMPLETE("a", "stop");
    WIRE(200, EVENTS, "", ERR_INCOMPLETE);
    FAILS("", "error", ERR_INCOMPLETE, "transport");
    WIRE(200, JSON, "{\"choices\":[{\"message\":{\"content\":\"a\"}}]}", ERR_INCOMPLETE);
    FAILS("", "error", ERR_INCOMPLETE, "transport");
}

TEST(a_signal)
{
    WIRE(200, EVENTS, DELTA("a"), ERR_SIGNAL);
    FAILS("a", "interrupted", ERR_SIGNAL, "transport");
    WIRE(200, EVENTS, DELTA("a") FINISH("stop"), ERR_SIGNAL);
    FAILS("a", "stop", ERR_SIGNAL, "transport");
    WIRE(500, JSON, "{\"error\":\"a\"}", ERR_SIGNAL);
    FAILS("", "interrupted", ERR_SIGNAL, "transport");
}

TEST(the_sink_fails)
{
    struct asked a;

    WIRE(200, EVENTS, DELTA("abc") DELTA("def") DELTA("ghi") FINISH("stop") END, ERR_NONE);
    wire.cut = wire.body.n + 1;
    ask(&a, 5);
    CHECK_INT(a.rc, -1);
    CHECK_INT(a.e.kind, ERR_SIGNAL);
    CHECK_STR(err_text(&a.e), "");
    CHECK(a.answer.sink_failed);
    CHECK_STR(buf_c(&a.answer.text), "abcdef");
    CHECK_STR(a.answer.finish_reason, "interrupted");
    CHECK(wire.stopped);
    asked_release(&a);

    WIRE(200, JSON, "{\"choices\":[{\"message\":{\"content\":\"abcdef\"}}]}", ERR_NONE);
    ask(&a, 5);
    CHECK_INT(a.rc, -1);
    CHECK_INT(a.e.kind, ERR_SIGNAL);
    CHECK_STR(err_text(&a.e), "");
    asked_release(&a);
}

TEST(an_event_stream_of_another_type)
{
    WIRE(200, "text/plain", DELTA("a") FINISH("stop") END, ERR_NONE);
    COMPLETE("a", "stop");
    WIRE(200, "", "\n: comment\n\n" DELTA("a") END, ERR_NONE);
    COMPLETE("a", "stop");
    WIRE(200, JSON, "event: x\n" DELTA("a") END, ERR_NONE);
    COMPLETE("a", "stop");
}

TEST(what_is_neither)
{
    WIRE(200, "text/html", "<html>\n<title>Sign in</title>", ERR_NONE);
    FAILS("", "error", ERR_BUSY,
          "the server's answer is neither an event stream nor JSON: Sign in (an HTML page)");
    WIRE(200, "text/plain", "dat", ERR_NONE);
    FAILS("", "error", ERR_BUSY, "the server's answer is neither an event stream nor JSON: 'dat'");
    WIRE(200, "text/plain", "database down", ERR_NONE);
    FAILS("", "error", ERR_BUSY,
          "the server's answer is neither an event stream nor JSON: 'database down'");
    WIRE(200, JSON, "", ERR_NONE);
    FAILS("", "error", ERR_BUSY, "the server's answer is empty");
    WIRE(200, JSON, " \n", ERR_NONE);
    FAILS("", "error", ERR_BUSY, "the server's answer is empty");
}

/* Makes this many mebibytes of text. */
static struct str long_text(size_t mebibytes, const char *head)
{
    size_t n = mebibytes << 20;
    char *text = malloc(n);

    memset(text, 'x', n);
    memcpy(text, head, strlen(head));
    return (struct str){text, n};
}

TEST(blank_bytes_are_not_kept_for_ever)
{
    struct asked a;
    struct str text = long_text(1, "\n");

    memset((void *)(uintptr_t)text.p, '\n', text.n);
    set_wire(200, EVENTS, text, ERR_NONE);
    wire.cut = text.n / 2;
    ask(&a, SIZE_MAX);
    CHECK_INT(a.e.kind, ERR_INCOMPLETE);
    asked_release(&a);
    free((void *)(uintptr_t)text.p);
}

/* ---- again ---- */

/* Sends a request to a server that fails `fails` times first. Returns the number of requests. */
static unsigned asked_again(unsigned retries, unsigned fails, struct asked *a)
{
    wire.fails = fails;
    repeat.retries = retries;
    ask(a, SIZE_MAX);
    repeat.retries = 0;
    return wire.played - (a->rc == 0);
}

#define BUSY "data: {\"error\":{\"message\":\"a\",\"code\":429}}\n\n"

TEST(what_is_not_asked_again)
{
    struct asked a;

    WIRE(200, "", "", ERR_TIMEOUT);
    wire.no_head = true;
    CHECK_INT(asked_again(2, 1, &a), 1);
    asked_release(&a);

    WIRE(429, JSON, "{\"error\":\"no credit\"}", ERR_NONE);
    wire.should_retry = "false";
    CHECK_INT(asked_again(2, 1, &a), 1);
    asked_release(&a);

    WIRE(400, JSON, "{\"error\":\"bad\"}", ERR_NONE);
    CHECK_INT(asked_again(2, 1, &a), 1);
    asked_release(&a);

    /* Text or a call has arrived. */
    WIRE(200, EVENTS, DELTA("x"), ERR_INCOMPLETE);
    CHECK_INT(asked_again(2, 1, &a), 1);
    CHECK_STR(buf_c(&a.answer.text), "x");
    asked_release(&a);
    WIRE(200, EVENTS, DELTA("x") BUSY, ERR_NONE);
    CHECK_INT(asked_again(2, 1, &a), 1);
    CHECK_INT(a.e.kind, ERR_INCOMPLETE);
    asked_release(&a);
    WIRE(200, EVENTS,
         "data: "
         "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\"}}"
         "]}}]}\n\n" BUSY,
         ERR_NONE);
    CHECK_INT(asked_again(2, 1, &a), 1);
    asked_release(&a);

    /* Errors that another attempt would not solve, inside a stream or not, and a response in an
     * unknown form. */
    WIRE(200, EVENTS, "data: {\"error\":{\"message\":\"a\",\"code\":401}}\n\n", ERR_NONE);
    CHECK_INT(asked_again(2, 1, &a), 1);
    CHECK_INT(a.e.kind, ERR_AUTH);
    asked_release(&a);
    WIRE(200, JSON, "{\"error\":{\"message\":\"a\",\"code\":429}}", ERR_NONE);
    CHECK_INT(asked_again(2, 1, &a), 1);
    asked_release(&a);
    WIRE(200, "text/plain", "nothing of the kind", ERR_NONE);
    CHECK_INT(asked_again(2, 1, &a), 1);
    asked_release(&a);
    WIRE(200, EVENTS, ": still there\n\n", ERR_TIMEOUT);
    CHECK_INT(asked_again(2, 1, &a), 1);
    CHECK_INT(a.e.kind, ERR_INCOMPLETE);
    asked_release(&a);
}

TEST(an_error_that_a_stream_begins_with_is_worth_another_try)
{
    struct asked a;

    WIRE(200, EVENTS, BUSY END, ERR_NONE);
    wire.retry_after = "0.01";
    CHECK_INT(asked_again(2, 2, &a), 3);
    CHECK_INT(a.rc, 0);
    CHECK_STR(buf_c(&a.answer.text), "good");
    CHECK_INT(repeat.ms, 10);
    asked_release(&a);

    /* The model, the usage and the end from before the failure are forgotten. */
    WIRE(200, EVENTS, "data: {\"model\":\"old\",\"usage\":{\"prompt_tokens\":7}}\n\n" BUSY,
         ERR_NONE);
    wire.retry_after = "0.01";
    CHECK_INT(asked_again(2, 1, &a), 2);
    CHECK_INT(a.rc, 0);
    CHECK(a.answer.model == NULL);
    CHECK_INT(a.answer.usage.at[USAGE_INPUT], -1);
    asked_release(&a);

    WIRE(200, EVENTS, BUSY, ERR_NONE);
    wire.retry_after = "0.01";
    wire.should_retry = "false";
    CHECK_INT(asked_again(2, 1, &a), 1);
    CHECK_INT(a.e.kind, ERR_BUSY);
    asked_release(&a);
}

/* ---- retry ---- */

/* Sun, 06 Nov 1994 08:49:37 GMT */
#define NOW (INT64_C(784111777) * 1000000)

static const struct retry_moment calm = {.now = NOW, .body = "", .most = RETRY_AFTER_MAX};

/* The wait after the first failure with this status and these fields, without jitter. */
struct failure {
    int status;
    enum err_kind kind;
    const char *after, *after_ms, *should, *body;
    int64_t most;
};

static int64_t wait_after(const struct failure *f)
{
    struct retry_moment at = {
        .now = NOW, .body = f->body ? f->body : "", .most = f->most ? f->most : RETRY_AFTER_MAX};
    struct http_head h;
    int64_t ms;

    http_head_init(&h);
    h.status = f->status;
    buf_add_str(&h.field[HTTP_RETRY_AFTER], str_of(f->after));
    buf_add_str(&h.field[HTTP_RETRY_AFTER_MS], str_of(f->after_ms));
    buf_add_str(&h.field[HTTP_SHOULD_RETRY], str_of(f->should));
    ms = retry_wait(0, f->kind ? f->kind : ERR_BUSY, &h, &at);
    http_head_release(&h);
    return ms;
}
#define WAIT(...) wait_after(&(struct failure){__VA_ARGS__})

static int64_t after_wish(const char *retry_after, const char *retry_after_ms)
{
    return WAIT(.status = 429, .after = retry_after, .after_ms = retry_after_ms);
}

TEST(by_status)
{
    static const int again[] = {408, 409, 429, 500, 502, 503, 504, 529, 599};
    static const int never[] = {200, 201, 302, 307, 400, 401, 402, 403, 404, 410, 413, 422, 428};

    for (size_t i = 0; i < sizeof again / sizeof *again; i++)
        if (!CHECK_INT(WAIT(.status = again[i]), 500))
            fprintf(stderr, "    of   %d\n", again[i]);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!CHECK_INT(WAIT(.status = never[i]), -1))
            fprintf(stderr, "    of   %d\n", never[i]);
    /* The server says that it does not support what was asked. */
    CHECK_INT(WAIT(.status = 500, .kind = ERR_REQUEST), -1);
    CHECK_INT(WAIT(.status = 409, .kind = ERR_REQUEST), 500);
}

TEST(a_wish_above_what_the_provider_allows)
{
    CHECK_INT(WAIT(.status = 529, .after = "60", .most = 60000), 60000);
    CHECK_INT(WAIT(.status = 529, .after = "61", .most = 60000), -1);
    CHECK_INT(WAIT(.status = 529, .after = "61"), 61000);
}

TEST(without_an_answer)
{
    CHECK_INT(retry_wait(0, ERR_NETWORK, NULL, &calm), 500);
    CHECK_INT(retry_wait(0, ERR_TIMEOUT, NULL, &calm), -1);
    CHECK_INT(retry_wait(0, ERR_INCOMPLETE, NULL, &calm), -1);
    CHECK_INT(retry_wait(0, ERR_SIGNAL, NULL, &calm), -1);
    CHECK_INT(retry_wait(0, ERR_USAGE, NULL, &calm), -1);
}

TEST(x_should_retry_overrules)
{
    CHECK_INT(WAIT(.status = 429, .should = "false"), -1);
    CHECK_INT(WAIT(.status = 429, .should = "perhaps"), 500);
    CHECK_INT(WAIT(.status = 401, .kind = ERR_AUTH, .should = "true"), 500);
    /* A complete response needs no repetition. */
    CHECK_INT(WAIT(.status = 200, .kind = ERR_INCOMPLETE, .should = "true"), -1);
}

TEST(a_conversation_that_is_too_long_stays_so)
{
    CHECK_INT(WAIT(.status = 500, .kind = ERR_REFUSED), -1);
    CHECK_INT(WAIT(.status = 500, .kind = ERR_TOO_LONG), -1);
}

TEST(the_wait_doubles_up_to_its_most)
{
    static const int64_t want[] = {500, 1000, 2000, 4000, 8000, 8000, 8000};

    for (unsigned i = 0; i < sizeof want / sizeof *want; i++)
        CHECK_INT(retry_wait(i, ERR_NETWORK, NULL, &calm), want[i]);
    CHECK_INT(retry_wait(4000000000U, ERR_NETWORK, NULL, &calm), 8000);
}

TEST(less_up_to_a_quarter)
{
    int64_t least = 500, most = 0;

    for (unsigned i = 0; i < 3000; i++) {
        struct retry_moment at = {
            .now = NOW, .body = "", .random = i * 7919U, .most = RETRY_AFTER_MAX};
        int64_t ms = retry_wait(0, ERR_NETWORK, NULL, &at);

        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    CHECK_INT(least, 375);
    CHECK_INT(most, 500);
    struct retry_moment late = {.now = NOW, .body = "", .random = 1000, .most = RETRY_AFTER_MAX};

    CHECK_INT(retry_wait(4, ERR_NETWORK, NULL, &late), 6000);
}

TEST(seconds)
{
    CHECK_INT(after_wish("0", ""), 0);
    CHECK_INT(after_wish("7", ""), 7000);
    CHECK_INT(after_wish("1.5", ""), 1500);
    CHECK_INT(after_wish("0.0625", ""), 62);
    CHECK_INT(after_wish(".25", ""), 250);
    CHECK_INT(after_wish("2.", ""), 2000);
    CHECK_INT(after_wish("120", ""), 120000);
}

TEST(milliseconds_go_first)
{
    CHECK_INT(after_wish("", "50"), 50);
    CHECK_INT(after_wish("100", "50"), 50);
    CHECK_INT(after_wish("100", "50.9"), 50);
    CHECK_INT(after_wish("3", "soon"), 3000);
}

TEST(a_date)
{
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:49:40 GMT", ""), 3000);
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:49:37 GMT", ""), 0);
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:51:37 GMT", ""), 120000);
    /* In the past, and too far in the future. */
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:49:36 GMT", ""), 500);
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:51:38 GMT", ""), -1);
}

TEST(a_duration_with_units)
{
    CHECK_INT(after_wish("2.1s", ""), 2100);
    CHECK_INT(after_wish("1m2.5s", ""), 62500);
    CHECK_INT(after_wish("30 seconds", ""), 30000);
    CHECK_INT(after_wish("", "250ms"), 250);
    CHECK_INT(after_wish("1994-11-06T08:49:40Z", ""), 3000);
}

TEST(a_wish_in_the_body)
{
    static const struct {
        const char *body;
        int64_t ms;
    } bodies[] = {
        {"{\"error\":{\"details\":[{\"retryDelay\":\"8.1s\"}]}}", 8100},
        {"[{\"error\":{\"message\":\"q. \\nPlease retry in 1m2.5s.\",\"x\":[{\"retryDelay\": "
         "\"62s\"}]}}]",
         62500},
        {"{\"retryDelay\":{\"seconds\":\"8\",\"nanos\":1}}", 8000},
        {"Limit 500, Used 480, Requested 50. Please try again in 2.1s. Visit https://x", 2100},
        {"Please try again in 827ms.", 827},
        {"Try again in 6m0s.", -1},
        {"try again in 1 minute 30 seconds, 5 times at most", 90000},
        {"Please retry after 26 seconds.", 26000},
        {"please retry your request after 5 s", 5000},
        {"Rate limited; wait 3 seconds before the next request", 3000},
        {"Please wait for at least 2 min", 120000},
        {"{\"retry_after\":7}", 7000},
        {"{\"retry_after_ms\": 50}", 50},
        {"{\"retryAfterMs\":\"50\"}", 50},
        {"{\"Retry-After\":\"12\"}", 12000},
        {"{\"retry_after_seconds\":1.5}", 1500},
        {"{\"retry-after\":\"Sun, 06 Nov 1994 08:49:40 GMT\"}", 3000},
        {"{\"error\":\"Model is loading\",\"estimated_time\":20.0}", 20000},
        {"Your quota will reset after 12s.", 12000},
        {"quota resets at \"1994-11-06T08:49:40Z\"", 3000},
        {"retry after 13h. Or not", -1},
        /* No wait. */
        {"{\"retry_after\":null,\"retries\":3}", 500},
        {"{\"max_retry\":5}", 500},
        {"{\"retry\":5}", 500},
        {"{\"X-RateLimit-Reset\":\"1741305600000\"}", 500},
        {"retry in 3 attempts", 500},
        {"try again later", 500},
        {"an entry in 5 s, awaiting 4 s", 500},
        {"wait", 500},
        {"retry-after: ", 500},
    };

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (!CHECK_INT(WAIT(.status = 429, .body = bodies[i].body), bodies[i].ms))
            fprintf(stderr, "    of   %s\n", bodies[i].body);
    CHECK_INT(WAIT(.status = 429, .after = "3", .body = "retry in 8s"), 3000);
    CHECK_INT(WAIT(.status = 400, .body = "retry in 8s"), -1);
}

TEST(a_wish_that_is_none_or_too_long)
{
    static const char *const texts[] = {"",     "-1", "+1",  "1e1", "1 x", "0x10",
                                        "soon", ".",  "NaN", "inf", "1.x"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!CHECK_INT(after_wish(texts[i], ""), 500))
            fprintf(stderr, "    of   %s\n", texts[i]);
    CHECK_INT(after_wish("120.1", ""), -1);
    CHECK_INT(after_wish("121", ""), -1);
    CHECK_INT(after_wish("99999999999999999999", ""), -1);
    CHECK_INT(after_wish("", "120001"), -1);
    CHECK_INT(after_wish("", "99999999999999999999"), -1);
}
