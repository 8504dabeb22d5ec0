#include "chathist/mcp/jsonrpc.h"

#include "test.h"

#include "chathist/base/utf8.h"

static int note(void *arg, const struct jsonrpc_message *m, struct err *e)
{
    struct buf *log = arg;
    static const char *const kinds[] = {"request", "notification", "result", "error"};

    buf_addf(log, "%s id=%.*s %lld method=%.*s body=%.*s\n", kinds[m->kind], (int)m->id.n, m->id.p,
             (long long)m->number, (int)m->method.n, m->method.p,
             (int)(m->body.n < 1000 ? m->body.n : 1000), m->body.p);
    return str_eq_c(m->method, "stop") ? err_set(e, ERR_FAILURE, "stopped") : 0;
}

/* What comes of the text in pieces of `step` bytes, an error last as `! message`. */
static struct buf feed(struct str text, size_t step)
{
    struct buf log = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct jsonrpc r;
    int result = 0;

    jsonrpc_init(&r, note, &log);
    for (size_t at = 0; result == 0 && at < text.n; at += step)
        result = jsonrpc_feed(
            &r, (struct str){text.p + at, text.n - at < step ? text.n - at : step}, &e);
    CHECK_INT(result < 0, e.kind != ERR_NONE);
    if (result < 0)
        buf_addf(&log, "! %s\n", err_text(&e));
    buf_addf(&log, "%zu noise", r.noise);
    jsonrpc_release(&r);
    err_release(&e);
    return log;
}

static void check_bytes(struct str text, const char *want)
{
    static const size_t steps[] = {1, 2, 7, 1000};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct buf got = feed(text, steps[i]);

        CHECK_STR(buf_c(&got), want);
        buf_release(&got);
    }
}

static void check(const char *text, const char *want)
{
    check_bytes(str_of(text), want);
}

TEST(the_four_kinds_of_message)
{
    check("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
          "{\"jsonrpc\":\"2.0\",\"method\":\"a/\\u0062\",\"params\":{\"x\":1}}\n"
          "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n"
          "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":-1,\"message\":\"m\"}}\n",
          "request id=1 1 method=ping body=\n"
          "notification id= -1 method=a/b body={\"x\":1}\n"
          "result id=7 7 method= body={}\n"
          "error id=\"x\" -1 method= body={\"code\":-1,\"message\":\"m\"}\n"
          "0 noise");
}

TEST(lines_may_end_with_crlf_and_be_empty)
{
    check("\r\n\n{\"id\":1,\"result\":0}\r\n", "result id=1 1 method= body=0\n0 noise");
}

TEST(a_line_without_an_end_is_not_taken)
{
    check("{\"id\":1,\"result\":0}", "0 noise");
}

TEST(a_batch_is_its_messages)
{
    check("[{\"id\":1,\"result\":0},{\"method\":\"m\"}]\n",
          "result id=1 1 method= body=0\nnotification id= -1 method=m body=\n0 noise");
}

TEST(what_is_no_message_is_passed_over)
{
    check("Server starts\n{\"level\":30}\n[1]\n\"x\"\n{\"id\":{},\"result\":1}\n{\"id\":1}\n"
          "{\"id\":null,\"result\":1}\n{\"id\":2,\"result\":null}\n",
          "result id=2 2 method= body=null\n7 noise");
}

TEST(an_error_may_be_about_no_request)
{
    check("{\"id\":null,\"error\":{}}\n", "error id=null -1 method= body={}\n0 noise");
}

TEST(an_answer_without_result_and_error_is_an_error)
{
    check("{\"jsonrpc\":\"2.0\",\"id\":1}\n"
          "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":\"bad\"}\n"
          "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":null,\"result\":0}\n"
          "{\"jsonrpc\":\"2.0\",\"id\":null}\n",
          "error id=1 1 method= body=\nerror id=2 2 method= body=\"bad\"\n"
          "result id=3 3 method= body=0\n1 noise");
}

TEST(a_broken_message_ends_it)
{
    check("a banner\n{level: 30}\ngot {\"jsonrpc\":\"2.0\"\n {\"jsonrpc\":\"2.0\",\"id\":1\nx\n",
          "! it writes what is no message: '{\"jsonrpc\":\"2.0\",\"id\":1'\n201 noise");
}

TEST(bytes_that_are_not_utf8_are_replaced)
{
    check_bytes(STR("{\"id\":1,\"result\":\"a\xff\xc3\"}\n"),
                "result id=1 1 method= body=\"a" UTF8_REPLACEMENT UTF8_REPLACEMENT "\"\n0 noise");
}

TEST(odd_ids_are_no_number_of_ours)
{
    check("{\"id\":-4,\"result\":0}\n{\"id\":1.5,\"result\":0}\n{\"id\":5.0,\"result\":0}\n",
          "result id=-4 -1 method= body=0\nresult id=1.5 -1 method= body=0\n"
          "result id=5.0 5 method= body=0\n0 noise");
}

TEST(a_failure_ends_it)
{
    check("{\"method\":\"stop\"}\n{\"method\":\"m\"}\n",
          "notification id= -1 method=stop body=\n! stopped\n0 noise");
}

TEST(too_much_noise_ends_it)
{
    struct buf text = BUF_INIT(BUF_SMALL), got;

    buf_add_c(&text, "the \x1b first\n");
    for (size_t i = 1; i < JSONRPC_NOISE_MAX; i++)
        buf_add_c(&text, "blah\n");
    got = feed(buf_str(&text), 1000);
    CHECK_STR(buf_c(&got), "200 noise");
    buf_release(&got);
    buf_add_c(&text, "the last\n");
    got = feed(buf_str(&text), 1000);
    CHECK_STR(buf_c(&got), "! it writes what is no message: 'the ^[ first'\n201 noise");
    buf_release(&got);
    buf_release(&text);
}

TEST(a_message_has_a_greatest_length)
{
    struct buf text = BUF_INIT(2 * JSONRPC_MESSAGE_MAX), got;
    const size_t around = strlen("{\"id\":1,\"result\":\"\"}");

    for (size_t over = 0; over < 2; over++) {
        buf_clear(&text);
        buf_add_c(&text, "{\"id\":1,\"result\":\"");
        while (text.len < JSONRPC_MESSAGE_MAX - around + strlen("{\"id\":1,\"result\":\"") + over)
            buf_add_byte(&text, 'x');
        buf_add_c(&text, "\"}\n");
        got = feed(buf_str(&text), 65536);
        CHECK(str_starts(buf_str(&got), over ? STR("! it sent a message of more than 16 MiB")
                                             : STR("result id=1 ")));
        buf_release(&got);
    }
    buf_release(&text);
}

TEST(messages_are_written_on_one_line)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    jsonrpc_add_call(&out, 3, "m", STR("{ \"a\" :\n [1,\t2] }"));
    jsonrpc_add_call(&out, 4, "m", STR_NONE);
    jsonrpc_add_call(&out, 0, "n", STR("{}"));
    jsonrpc_add_call(&out, 0, "n", STR_NONE);
    jsonrpc_add_answer(&out, STR("\"x\""), "result", STR("{}"));
    jsonrpc_add_answer(&out, STR("9"), "error", STR("{\"code\": -32601}"));
    CHECK_STR(buf_c(&out),
              "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"m\",\"params\":{\"a\":[1,2]}}\n"
              "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"m\"}\n"
              "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}\n"
              "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n"
              "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n"
              "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-32601}}\n");
    buf_release(&out);
}

TEST(errors_are_described)
{
    struct buf out = BUF_INIT(BUF_SMALL), text = BUF_INIT(BUF_SMALL);

    jsonrpc_describe_error(&out, STR("{\"code\":-32602,\"message\":\"bad \\u0061rgs\"}"));
    buf_add_byte(&out, '\n');
    jsonrpc_describe_error(&out, STR("{\"code\":\"x\",\"message\":7}"));
    CHECK_STR(buf_c(&out), "bad args (-32602)\nan error without a message");
    buf_clear(&out);
    buf_add_c(&text, "{\"code\":1,\"message\":\"x");
    for (size_t i = 0; i < 3000; i++)
        buf_add_c(&text, "\xc3\xa9");
    buf_add_c(&text, "\"}");
    jsonrpc_describe_error(&out, buf_str(&text));
    CHECK_INT(out.len, 3999 + strlen("… (1)"));
    CHECK(str_ends(buf_str(&out), STR("\xc3\xa9… (1)")));
    buf_release(&out);
    buf_release(&text);
}
