/* What messages of an MCP server do, over a transport that only keeps what is sent. */
#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "mcp_transport.h"
#include "test.h"

static struct mcp_server server;
static struct tool_job job;
static struct buf sent = BUF_INIT(BUF_SMALL);

static void keep(struct mcp_server *s, const struct mcp_message *m)
{
    (void)s;
    buf_add_str(&sent, m->json);
}

static const struct mcp_transport transport = {.send = keep, .fds = no_fds, .step = no_step};

/* A server that has the tool `t`, whose call is under way as request 3. */
static void begin(void)
{
    mcp_init(&server, "s", &transport, NULL, NULL);
    mcp_greet(&server);
    mcp_receive(&server, STR("{\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\","
                             "\"capabilities\":{\"tools\":{}}}}"));
    mcp_receive(&server, STR("{\"id\":2,\"result\":{\"tools\":[{\"name\":\"t\"}]}}"));
    if (CHECK_INT(server.list.count, 1)) {
        job = (struct tool_job){.tool = &server.list.tools[0]->tool, .args = STR("{ \"a\":\n1}")};
        buf_init(&job.result, TOOL_RESULT_MAX);
        buf_clear(&sent);
        job.tool->kind->begin(&job);
        CHECK_STR(buf_c(&sent),
                  "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":"
                  "{\"name\":\"t\",\"arguments\":{\"a\":1},\"_meta\":{\"progressToken\":3}}}\n");
    }
    buf_clear(&sent);
}

static void end(void)
{
    struct mcp_server *servers[] = {&server};

    mcp_end(servers, 1, 0, -1);
    buf_release(&job.result);
    attachment_list_release(&job.images);
    buf_release(&sent);
}

/* Takes the lines. What comes of it: what is sent, the result of the call, how much was noise, and
 * why the server is given up. */
static void check_bytes(struct str lines, const char *want)
{
    struct buf got = BUF_INIT(BUF_SMALL);

    begin();
    while (lines.p)
        mcp_receive(&server, str_cut(&lines, '\n'));
    buf_add_str(&got, buf_str(&sent));
    if (job.done)
        buf_addf(&got, "%s: %.100s\n", job.failed ? "failed" : "result", buf_c(&job.result));
    if (server.noise > 0)
        buf_addf(&got, "%zu noise\n", server.noise);
    if (mcp_is_broken(&server))
        buf_addf(&got, "! %s\n", err_text(&server.fault));
    CHECK_STR(buf_c(&got), want);
    buf_release(&got);
    end();
}

static void check(const char *lines, const char *want)
{
    check_bytes(str_of(lines), want);
}

#define BROKEN "! MCP server 's' cannot be used: "

TEST(requests_are_answered_on_one_line)
{
    check("{\"jsonrpc\":\"2.0\",\"id\":1 ,\"method\":\"pin\\u0067\"}\r\n\n"
          "{\"id\":\"x\",\"method\":\"roots/list\",\"params\":{\"x\":1}}",
          "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
          "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":-32601,"
          "\"message\":\"Method not found\"}}\n");
}

/* JSON-RPC batches of 2025-03-26, which later revisions do not have. */
TEST(a_batch_is_refused)
{
    check("[{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":\"a\"}}]",
          BROKEN "it sent several messages as a JSON array\n");
    check("[1,{\"method\":\"m\"}]\n{\"id\":3,\"result\":{\"content\":\"a\"}}",
          "result: a\n1 noise\n");
}

TEST(errors_are_described)
{
    struct buf line = BUF_INIT(BUF_SMALL);

    check("{\"id\":3,\"error\":{\"code\":-32602,\"message\":\"bad \\u0061rgs\"}}",
          "failed: the tool cannot be called: bad args (-32602)\n");
    check("{\"id\":3,\"error\":{\"code\":\"x\",\"message\":7}}",
          "failed: the tool cannot be called: an error without a message\n");
    check("{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":\"bad\"}",
          "failed: the tool cannot be called: bad\n");
    check("{\"jsonrpc\":\"2.0\",\"id\":3}",
          "failed: the tool cannot be called: an error without a message\n");
    check("{\"id\":3,\"error\":{\"code\":1,\"message\":\"x\",\"data\":{ \"missing\" : [1] }}}",
          "failed: the tool cannot be called: x (1): {\"missing\":[1]}\n");
    buf_add_c(&line, "{\"id\":3,\"error\":{\"code\":1,\"message\":\"x");
    for (size_t i = 0; i < 3000; i++)
        buf_add_c(&line, "\xc3\xa9");
    buf_add_c(&line, "\"}}");
    begin();
    mcp_receive(&server, buf_str(&line));
    CHECK_INT(job.result.len, strlen("the tool cannot be called: ") + 3999 + strlen("… (1)"));
    CHECK(str_ends(buf_str(&job.result), STR("\xc3\xa9… (1)")));
    end();
    buf_release(&line);
}

/* ---- the list of tools ---- */

static void add_warning(void *arg, const char *name, enum mcp_news news, struct str text)
{
    CHECK_INT(news, MCP_WARNING);
    CHECK_STR(name, "s");
    buf_addf(arg, "%.*s\n", (int)text.n, text.p);
}

/* A server of the first or the last revision, which answers each request for a page with a tool and
 * the next of these cursors, and without one when they are used up. Checks which cursors are asked
 * for, the warning, and how many tools there are then. */
static void check_cursors(bool stateless, const char *cursors, const char *asked,
                          const char *warning, size_t count)
{
    struct buf warnings = BUF_INIT(BUF_SMALL), got = BUF_INIT(BUF_SMALL);
    struct mcp_watch watch = {add_warning, &warnings};
    struct mcp_server *servers[] = {&server};
    struct json_iter it;
    struct str list, message;

    mcp_init(&server, "s", &transport, NULL, &watch);
    mcp_greet(&server);
    if (stateless) {
        mcp_receive(&server, STR("{\"id\":1,\"error\":{}}"));
        mcp_receive(&server, STR("{\"id\":2,\"result\":{\"supportedVersions\":[\"2026-07-28\"],"
                                 "\"capabilities\":{\"tools\":{}}}}"));
    } else {
        mcp_receive(&server, STR("{\"id\":1,\"result\":{\"protocolVersion\":\"2024-11-05\","
                                 "\"capabilities\":{\"tools\":{}}}}"));
    }
    CHECK(json_check(str_of(cursors), &list, NULL));
    it = json_iter(list);
    for (int i = 0; server.state == MCP_LISTING && CHECK(i < 20); i++) {
        struct buf page = BUF_INIT(BUF_SMALL);

        buf_addf(&page, "{\"id\":%d,\"result\":{\"tools\":[{\"name\":\"t%d\"}]",
                 (int)server.last_id, i);
        if (json_next(&it))
            buf_addf(&page, ",\"nextCursor\":%.*s", (int)it.value.n, it.value.p);
        buf_add_c(&page, "}}");
        buf_clear(&sent);
        mcp_receive(&server, buf_str(&page));
        if (json_check(str_trim(buf_str(&sent)), &message, NULL)) {
            buf_add_c(&got, got.len > 0 ? " " : "");
            json_add_compact(&got, json_get(json_get(message, "params"), "cursor"));
        }
        buf_release(&page);
    }
    CHECK(!mcp_is_broken(&server));
    CHECK_STR(buf_c(&got), asked);
    CHECK_STR(buf_c(&warnings), warning);
    CHECK_INT(server.list.count, count);
    mcp_end(servers, 1, 0, -1);
    buf_release(&sent);
    buf_release(&warnings);
    buf_release(&got);
}

#define REPEATS "MCP server 's' repeats a cursor: the list of its tools ends there\n"

TEST(a_cursor_is_sent_back_as_it_is)
{
    for (int stateless = 0; stateless <= 1; stateless++) {
        check_cursors(stateless, "[]", "", "", 1);
        check_cursors(stateless, "[\"a\", \"b\"]", "\"a\" \"b\"", "", 3);
        check_cursors(stateless, "[0, 7, [ ], {\"a\": 1}, true]", "0 7 [] {\"a\":1} true", "", 6);
        check_cursors(stateless, "[\"a\", null]", "\"a\"", "", 2);
        check_cursors(stateless, "[false]", "", "", 1);
        check_cursors(stateless, "[\"\\u00e9 \\\"\"]", "\"\\u00e9 \\\"\"", "", 2);
    }
}

TEST(an_empty_cursor_is_one_since_2026_07_28)
{
    check_cursors(true, "[\"\", \"a\"]", "\"\" \"a\"", "", 3);
    check_cursors(true, "[\"\", \"\"]", "\"\"", REPEATS, 2);
    check_cursors(false, "[\"a\", \"\"]", "\"a\"", "", 2);
}

TEST(a_cursor_that_repeats_ends_the_list)
{
    for (int stateless = 0; stateless <= 1; stateless++) {
        check_cursors(stateless, "[\"a\", \"a\"]", "\"a\"", REPEATS, 2);
        check_cursors(stateless, "[\"a\", 1, \"a\", 2]", "\"a\" 1", REPEATS, 3);
        check_cursors(stateless, "[1, 1]", "1", REPEATS, 2);
    }
}

TEST(what_is_no_message_is_passed_over)
{
    check("Server starts\n{\"level\":30}\n[1]\n\"x\"\n{\"id\":{},\"result\":1}\n{\"id\":1}\n"
          "{\"id\":null,\"result\":1}\n{\"jsonrpc\":\"2.0\",\"id\":null}\n"
          "{\"id\":3,\"error\":null,\"result\":null}",
          "result: \n8 noise\n");
}

TEST(an_id_is_a_number_in_any_notation)
{
    check("{\"id\":-4,\"result\":0}\n{\"id\":1.5,\"result\":0}\n{\"id\":9,\"result\":0}\n"
          "{\"id\":3.0,\"result\":{\"content\":\"a\"}}\n{\"id\":3,\"result\":{}}",
          "result: a\n3 noise\n");
    check("{\"id\":\"x\",\"result\":0}\n{\"id\":\"3x\",\"result\":0}\n"
          "{\"id\":\"3\",\"result\":{\"content\":\"a\"}}\n{\"id\":3,\"result\":{}}",
          "result: a\n2 noise\n");
}

/* A server that answers with a wrong id would be waited for in vain. */
TEST(an_answer_with_a_wrong_id_shortens_the_wait)
{
    static const char *const odd[] = {"null", "1.5", "-3", "9", "\"x\"", "1e999"};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct buf line = BUF_INIT(BUF_SMALL);

        begin();
        job.deadline = INT64_MAX;
        buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", odd[i]);
        mcp_receive(&server, buf_str(&line));
        CHECK(!job.done);
        CHECK(job.deadline < time_ticks() + 10000);
        CHECK_STR(job.overdue, "the server answered with the id of no request");
        buf_release(&line);
        end();
    }
    check("{\"id\":null,\"error\":{\"message\":\"no\"}}",
          "failed: the tool cannot be called: no\n");
}

TEST(a_list_with_a_wrong_id)
{
    static const char *const odd[] = {"null", "1.5", "9", "\"x\""};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct buf line = BUF_INIT(BUF_SMALL);

        mcp_init(&server, "s", &transport, NULL, NULL);
        mcp_greet(&server);
        mcp_receive(&server, STR("{\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\","
                                 "\"capabilities\":{\"tools\":{}}}}"));
        buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[]}}", odd[i]);
        mcp_receive(&server, buf_str(&line));
        CHECK_STR(err_text(&server.fault),
                  "MCP server 's' cannot list its tools: its answer does not have the id of the "
                  "request");
        buf_release(&line);
        end();
    }
}

TEST(a_broken_message_is_an_error)
{
    check("a banner\n{level: 30}\ngot {\"jsonrpc\":\"2.0\"\n {\"jsonrpc\":\"2.0\",\"id\":3\nx",
          "201 noise\n" BROKEN "it writes what is no message: '{\"jsonrpc\":\"2.0\",\"id\":3'\n");
    check("Content-Length: 5",
          "201 noise\n" BROKEN "it writes what is no message: 'Content-Length: 5'\n");
}

TEST(bytes_that_are_not_utf8_are_replaced)
{
    check_bytes(STR("{\"id\":3,\"result\":{\"content\":\"a\xff\xc3\"}}"),
                "result: a" UTF8_REPLACEMENT UTF8_REPLACEMENT "\n");
}

TEST(too_much_noise_is_an_error)
{
    struct buf lines = BUF_INIT(BUF_SMALL);

    buf_add_c(&lines, "the \x1b first");
    for (size_t i = 1; i < 200; i++)
        buf_add_c(&lines, "\nblah");
    check(buf_c(&lines), "200 noise\n");
    buf_add_c(&lines, "\nthe last\n{\"id\":4,\"method\":\"ping\"}");
    check(buf_c(&lines), "201 noise\n" BROKEN "it writes what is no message: 'the ^[ first'\n");
    buf_release(&lines);
}

TEST(a_message_has_a_greatest_length)
{
    struct buf line = BUF_INIT(2 * MCP_MESSAGE_MAX);

    buf_add_c(&line, "{\"id\":3,\"result\":{\"content\":\"");
    while (line.len < MCP_MESSAGE_MAX - 3)
        buf_add_byte(&line, 'x');
    buf_add_c(&line, "\"}}");
    begin();
    mcp_receive(&server, buf_str(&line));
    CHECK(job.done && !job.failed);
    end();
    buf_add_byte(&line, ' ');
    check_bytes(buf_str(&line), BROKEN "it sent a message of more than 16 MiB\n");
    buf_release(&line);
}

TEST(an_error_without_an_id_is_the_answer_to_the_first_request)
{
    mcp_init(&server, "s", &transport, NULL, NULL);
    mcp_greet(&server);
    buf_clear(&sent);
    mcp_receive(&server, STR("{\"id\":null,\"error\":{}}"));
    CHECK(str_find(buf_str(&sent), STR("\"method\":\"server/discover\"")));
    end();
}
