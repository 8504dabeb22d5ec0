/*
 * The parser of event streams. Every case is fed whole, byte by byte, and in two pieces cut at each
 * offset, and must give the same events. The rules are those of WHATWG HTML, "event stream
 * interpretation"; the cases are those of web-platform-tests `eventsource/`.
 */
#include "test.h"

#include <stdlib.h>

#include "chathist/base/time.h"
#include "chathist/llm/sse.h"

/* Events as `type=data;`, byte for byte. */
struct log {
    struct buf text;
    int stop_after; /* the number of events after which the callback stops; 0: never */
    int count;
};

static int note(void *arg, struct str event, struct str data, struct err *e)
{
    struct log *log = arg;

    buf_add_str(&log->text, event);
    buf_add_byte(&log->text, '=');
    buf_add_str(&log->text, data);
    buf_add_byte(&log->text, ';');
    log->count++;
    if (log->stop_after < 0)
        return err_set(e, ERR_BUSY, "enough");
    return log->count == log->stop_after;
}

/* Feeds `in` as pieces [0,cut) and [cut,n), or byte by byte if cut is beyond the end. */
static int feed(struct log *log, struct str in, size_t cut, struct err *e)
{
    struct sse s;
    int rc = 0;

    sse_init(&s, note, log);
    if (cut > in.n) {
        for (size_t i = 0; rc == 0 && i < in.n; i++)
            rc = sse_feed(&s, (struct str){in.p + i, 1}, e);
    } else {
        rc = sse_feed(&s, (struct str){in.p, cut}, e);
        if (rc == 0)
            rc = sse_feed(&s, (struct str){in.p + cut, in.n - cut}, e);
    }
    if (rc == 0)
        rc = sse_end(&s, e);
    sse_release(&s);
    return rc;
}

static void check(struct str in, struct str want, int line)
{
    for (size_t cut = 0; cut <= in.n + 1; cut++) {
        /* The pieces are exact copies, so that the sanitizer sees a read beyond one. */
        char *copy = malloc(in.n + 1);
        struct log log = {BUF_INIT(BUF_LINE), 0, 0};
        struct err e = ERR_INIT;
        int rc;

        memcpy(copy, in.p, in.n);
        rc = feed(&log, (struct str){copy, in.n}, cut, &e);
        if (rc != 0 || log.text.len != want.n || memcmp(buf_c(&log.text), want.p, want.n) != 0) {
            test_check(false, "events", __FILE__, line);
            fprintf(stderr, "    cut at %zu of %zu: %s\n", cut, in.n, err_text(&e));
            test_print_bytes("got ", buf_c(&log.text), log.text.len);
            test_print_bytes("want", want.p, want.n);
        }
        buf_release(&log.text);
        err_release(&e);
        free(copy);
    }
}

#define EVENTS(in, want) check(STR(in), STR(want), __LINE__)

TEST(an_event_is_its_data)
{
    EVENTS("data: hello\n\n", "message=hello;");
    EVENTS("data: a\n\ndata: b\n\n", "message=a;message=b;");
    EVENTS("", "");
}

TEST(line_ends_may_be_mixed)
{
    EVENTS("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "message=a;message=b;message=c;");
    EVENTS("data: a\n\r\ndata: b\r\n\rdata: c\r\n\n", "message=a;message=b;message=c;");
    EVENTS("data: a\rdata: b\r\ndata: c\n\r\n", "message=a\nb\nc;");
    EVENTS("\n\r\r\n\ndata: a\n\n\n\n\r\r", "message=a;");
    EVENTS("data: a\n\n\r", "message=a;");
}

TEST(other_separators_are_text)
{
    EVENTS("data: a\xe2\x80\xa8"
           "b\xe2\x80\xa9"
           "c\xc2\x85"
           "d\x0b"
           "e\x0c"
           "f\n\n",
           "message=a\xe2\x80\xa8"
           "b\xe2\x80\xa9"
           "c\xc2\x85"
           "d\x0b"
           "e\x0c"
           "f;");
}

TEST(one_leading_space_of_a_value_goes)
{
    EVENTS("data:a\n\ndata: b\n\ndata:  c\n\ndata:\td\n\n",
           "message=a;message=b;message= c;message=\td;");
    EVENTS("data: a \n\n", "message=a ;");
}

TEST(data_lines_are_joined)
{
    EVENTS("data: a\ndata: b\n\n", "message=a\nb;");
    EVENTS("data:\ndata:\n\n", "message=\n;");
    EVENTS("data\n\n", "message=;");
    EVENTS("data\ndata\n\ndata:x\n\n", "message=\n;message=x;");
    EVENTS("data:a\n:between\nfoo:bar\ndata:b\n\n", "message=a\nb;");
}

TEST(fields_are_known_by_their_exact_names)
{
    EVENTS("Data: a\n\nDATA:b\n\n data: c\n\ndata : d\n\ndatax: e\n\ndat: f\n\n", "");
    EVENTS("error: a\n\nretry: 10\nid: 1\ndata: b\n\n", "message=b;");
    EVENTS("id: a\0b\ndata: c\n\n", "message=c;");
    EVENTS("data:a:b: c\n\n", "message=a:b: c;");
    EVENTS(":data: a\n\n: \n:\n\n", "");
}

TEST(an_event_has_a_type)
{
    EVENTS("event: test\ndata: a\n\ndata: b\n\n", "test=a;message=b;");
    EVENTS("event: a\nevent: b\ndata: c\n\n", "b=c;");
    EVENTS("event: a\nevent\ndata: c\n\n", "message=c;");
    EVENTS("data: c\nevent: late\n\n", "late=c;");
    EVENTS("event: lost\n\ndata: a\n\n", "message=a;");
    EVENTS("Event: a\ndata: b\n\n", "message=b;");
}

TEST(one_byte_order_mark_goes)
{
    EVENTS("\xef\xbb\xbf"
           "data: a\n\n\xef\xbb\xbf"
           "data: b\n\ndata: c\n\n",
           "message=a;message=c;");
    EVENTS("\xef\xbb\xbf\xef\xbb\xbf"
           "data: a\n\ndata: b\n\n",
           "message=b;");
    EVENTS("\n\xef\xbb\xbf"
           "data: a\n\n",
           "");
    EVENTS("\xef\xbb\xbf\n", "");
    EVENTS("\xef\xbb"
           "data: a\n\n",
           "");
    EVENTS("\xef\xbb\xbf", "");
}

TEST(what_no_blank_line_ended_is_dropped)
{
    EVENTS("data: a", "");
    EVENTS("data: a\n", "");
    EVENTS("data: a\n\ndata: b\n", "message=a;");
    EVENTS("data: a\n\ndata: b\nevent: c", "message=a;");
}

TEST(the_end_mark_needs_no_blank_line)
{
    EVENTS("data: a\n\ndata: [DONE]", "message=a;message=[DONE];");
    EVENTS("data: [DONE]\n", "message=[DONE];");
    EVENTS("data:[DONE]\r", "message=[DONE];");
    EVENTS("data: [DON", "");
    EVENTS("data: a\ndata: [DONE]", "");
    EVENTS("event: [DONE]", "");
}

TEST(text_is_utf8_and_repaired_line_by_line)
{
    EVENTS("data: \xf0\x9f\x98\x80 \xe4\xbd\xa0\n\n", "message=\xf0\x9f\x98\x80 \xe4\xbd\xa0;");
    EVENTS("data: a\xff"
           "b\xe4\xbd\ndata: \xa0"
           "c\n\n",
           "message=a\xef\xbf\xbd"
           "b\xef\xbf\xbd\n\xef\xbf\xbd"
           "c;");
    EVENTS("event: \xc3\ndata: a\n\n", "\xef\xbf\xbd=a;");
}

TEST(nul_is_a_byte_like_others)
{
    EVENTS("data: a\0b\n\ndata\0: c\n\n", "message=a\0b;");
}

TEST(the_receiver_can_say_that_this_was_the_last)
{
    struct str in = STR("data: a\n\ndata: b\n\ndata: c\n\n");

    for (size_t cut = 0; cut <= in.n + 1; cut++) {
        struct log log = {BUF_INIT(BUF_LINE), 2, 0};
        struct err e = ERR_INIT;

        CHECK_INT(feed(&log, in, cut, &e), 0);
        CHECK_STR(buf_c(&log.text), "message=a;message=b;");
        buf_release(&log.text);
    }
}

TEST(a_failure_of_the_receiver_is_handed_on)
{
    struct log log = {BUF_INIT(BUF_LINE), -1, 0};
    struct err e = ERR_INIT;

    CHECK_INT(feed(&log, STR("data: a\n\ndata: b\n\n"), 3, &e), -1);
    CHECK_STR(buf_c(&log.text), "message=a;");
    CHECK_STR(err_text(&e), "enough");
    CHECK_INT(e.kind, ERR_BUSY);
    buf_release(&log.text);
    err_release(&e);
}

/* Feeds this many mebibytes of one byte after `head`. */
static int feed_long(struct log *log, struct str head, char fill, size_t count, struct str tail,
                     struct err *e)
{
    size_t n = (size_t)1 << 20;
    char *block = malloc(n);
    struct sse s;
    int rc;

    memset(block, fill, n);
    sse_init(&s, note, log);
    rc = sse_feed(&s, head, e);
    while (rc == 0 && count-- > 0)
        rc = sse_feed(&s, (struct str){block, n}, e);
    if (rc == 0)
        rc = sse_feed(&s, tail, e);
    sse_release(&s);
    free(block);
    return rc;
}

TEST(events_are_bounded)
{
    struct log log = {BUF_INIT(2 * SSE_EVENT_MAX), 0, 0};
    struct err e = ERR_INIT;

    CHECK_INT(feed_long(&log, STR("data:"), 'x', 63, STR("\n\n"), &e), 0);
    CHECK_INT(log.count, 1);
    CHECK_INT(log.text.len, ((size_t)63 << 20) + strlen("message=;"));
    CHECK_INT(feed_long(&log, STR("data:"), 'x', 65, STR("\n\n"), &e), -1);
    CHECK_INT(e.kind, ERR_INCOMPLETE);
    CHECK_STR(err_text(&e), "answer is incomplete: an event of the stream is longer than 64 MiB");
    CHECK_INT(log.count, 1);
    buf_release(&log.text);
    err_release(&e);
}

TEST(an_event_of_many_lines_is_bounded_too)
{
    struct log log = {BUF_INIT(BUF_LINE), 0, 0};
    struct err e = ERR_INIT;
    struct sse s;
    int rc = 0;

    sse_init(&s, note, &log);
    for (size_t i = 0; rc == 0 && i < SSE_EVENT_MAX; i++)
        rc =
            sse_feed(&s,
                     STR("data:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
                         "data:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"),
                     &e);
    CHECK_INT(rc, -1);
    CHECK(s.data.len <= SSE_EVENT_MAX + 1);
    CHECK_INT(e.kind, ERR_INCOMPLETE);
    sse_release(&s);
    buf_release(&log.text);
    err_release(&e);
}

/* The search for a CR must not start again for each line. */
TEST(time_is_linear_in_the_size_of_a_piece)
{
    size_t lines = 1 << 20;
    struct buf in = BUF_INIT(BUF_LINE);
    struct log log = {BUF_INIT(BUF_LINE), 0, 0};
    struct err e = ERR_INIT;
    int64_t start = time_ticks();

    for (size_t i = 0; i < lines; i++)
        buf_add_c(&in, ":\n");
    CHECK_INT(feed(&log, buf_str(&in), 0, &e), 0);
    CHECK(time_ticks() - start < 5000);
    buf_release(&in);
    buf_release(&log.text);
}

static void check_resuming(struct str in, const char *want_id, int64_t want_retry)
{
    struct log log = {BUF_INIT(BUF_LINE), 0, 0};
    struct sse s;

    sse_init(&s, note, &log);
    CHECK_INT(sse_feed(&s, in, NULL), 0);
    CHECK_STR(buf_c(&s.last_id), want_id);
    CHECK_INT(s.retry_ms, want_retry);
    sse_release(&s);
    buf_release(&log.text);
}

TEST(what_resuming_a_stream_needs)
{
    check_resuming(STR("id: 7\ndata: x\n\n"), "7", -1);
    check_resuming(STR("id: 7\ndata:\n\nretry: 500\nid: 8\n"), "7", 500);
    check_resuming(STR("id: 7\n\ndata: x\n\n"), "7", -1);
    check_resuming(STR("id: 7\ndata: x\n\nid\ndata: y\n\n"), "", -1);
    check_resuming(STR("id: a\0b\ndata: x\n\nretry: 1.5\nretry: -3\nretry: x\n\n"), "", -1);
}
