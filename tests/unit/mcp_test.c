/* tests/tools/fake-mcp is the server. Its tools and faults are told there. */
#include "chathist/mcp/client.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "scratch.h"

#include "chathist/base/process.h"

/* Far more than anything here takes, even on a slow machine under a sanitizer. */
#define PATIENCE_MS 60000

static struct mcp_server server;
static struct mcp_server *servers[] = {&server};
static struct err fault;

/* Starts fake-mcp with these options, and waits until it is ready. */
static int start_for(const char *options, int64_t ms)
{
    struct buf command = BUF_INIT(BUF_SMALL);
    struct words argv;
    int result;

    signal(SIGPIPE, SIG_IGN);
    err_release(&fault);
    buf_addf(&command, "tests/tools/fake-mcp %s", options);
    CHECK_INT(words_split(&argv, buf_str(&command), NULL), 0);
    result = mcp_start(&server, "fake", argv.at, NULL, NULL, NULL, &fault);
    if (result == 0)
        result = mcp_await(servers, 1, ms, -1, &fault);
    if (result == 0)
        mcp_name_tools(servers, 1, NULL, 0);
    words_release(&argv);
    buf_release(&command);
    return result;
}

static void start(const char *options)
{
    if (!CHECK_INT(start_for(options, PATIENCE_MS), 0))
        fprintf(stderr, "    %s\n", err_text(&fault));
}

static void end(void)
{
    mcp_end(servers, 1, MCP_GRACE_MS, -1);
    err_release(&fault);
}

/* The server does not start, for this reason. */
static void check_start_fails(const char *options, const char *want)
{
    CHECK_INT(start_for(options, PATIENCE_MS), -1);
    CHECK_INT(fault.kind, ERR_LIMIT);
    CHECK_STR(err_text(&fault), want);
    end();
}

/* A call that may run beside others. */
static struct tool_job job_of(const char *tool, const char *args)
{
    struct tool_job job = {.args = str_of(args), .timeout_ms = PATIENCE_MS};

    for (size_t i = 0; i < server.list.count; i++)
        if (strcmp(server.list.tools[i]->name, tool) == 0) {
            server.list.tools[i]->tool.read_only = true;
            job.tool = &server.list.tools[i]->tool;
        }
    if (!job.tool)
        abort();
    return job;
}

static void check_done(struct tool_job *job, const char *want, bool want_failed)
{
    CHECK(job->done);
    CHECK_STR(buf_c(&job->result), want);
    CHECK_INT(job->failed, want_failed);
    CHECK(job->state == NULL);
    buf_release(&job->result);
}

static void check_call(const char *tool, const char *args, const char *want, bool want_failed)
{
    struct tool_job job = job_of(tool, args);

    CHECK_INT(tool_run(&job, 1, -1, NULL, NULL), 0);
    check_done(&job, want, want_failed);
}

/* ---- getting ready ---- */

TEST(what_is_sent)
{
    char dir[] = "/tmp/chathist_test.XXXXXX";
    struct buf command = BUF_INIT(BUF_SMALL), log = BUF_INIT(BUF_SMALL);

    CHECK(mkdtemp(dir) != NULL);
    buf_addf(&command, "--log %s/log", dir);
    start(buf_c(&command));
    check_call("echo", "{ \"text\" :\n \"a\\nb\" }", "a\nb", false);
    end();
    buf_clear(&command);
    buf_addf(&command, "%s/log", dir);
    CHECK_INT(file_read(buf_c(&command), &log, NULL), 0);
    CHECK(str_starts(buf_str(&log),
                     STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
                         "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                         "\"clientInfo\":{\"name\":\"chathist\",\"version\":\"")));
    CHECK(str_ends(buf_str(&log),
                   STR("}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
                       "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{}}\n"
                       "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"echo\",\"arguments\":{\"text\":\"a\\nb\"},\"_meta\":{"
                       "\"progressToken\":3}}}\n")));
    unlink(buf_c(&command));
    CHECK_INT(rmdir(dir), 0);
    buf_release(&command);
    buf_release(&log);
}

TEST(older_revisions_are_spoken)
{
    static const char *const options[] = {"--version 2025-06-18", "--version 2025-03-26",
                                          "--version 2024-11-05"};

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        start(options[i]);
        check_call("echo", "{\"text\":\"x\"}", "x", false);
        end();
    }
    check_start_fails("--version 1999-12-31", "MCP server 'fake' speaks protocol version "
                                              "'1999-12-31', which is not known");
}

TEST(a_server_without_initialize)
{
    start("--stateless");
    CHECK_INT(server.list.count, 26);
    check_call("echo", "{\"text\":\"x\"}", "x", false);
    check_call("input", "{}", "the tool failed:\nit asks for more input, which it cannot be given",
               true);
    end();
}

TEST(a_list_of_several_pages)
{
    start("--pages");
    CHECK_INT(server.list.count, 26);
    check_call("input", "{}", "the tool failed:\nit asks for more input, which it cannot be given",
               true);
    end();
    check_start_fails("--endless", "MCP server 'fake' cannot be used: its list of tools has more "
                                   "than 100 pages");
}

TEST(a_list_has_a_greatest_length)
{
    start("--many 1000");
    CHECK_INT(server.list.count, 1000);
    end();
    check_start_fails("--many 1001", "MCP server 'fake' cannot be used: it has more than 1000 "
                                     "tools, or 8 MiB of them");
}

TEST(odd_names_and_members)
{
    static const struct {
        const char *name, *description, *parameters;
    } want[] = {
        {"fake__dots_and_slashes__", "", "{\"type\":\"object\",\"properties\":{}}"},
        {"fake__dots_and_slashes___2", "", "{\"type\":\"object\",\"properties\":{}}"},
        {"fake__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "a",
         "{\"type\":\"object\",\"properties\":{}}"},
        {"fake__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_2", "only a title",
         "{\"type\":\"object\",\"properties\":{}}"},
        {"fake__twice", "the first", "{\"type\":\"object\",\"properties\":{}}"},
        {"fake__last", "", "{\"type\":\"object\",\"properties\":{}}"},
    };

    start("--odd");
    if (CHECK_INT(server.list.count, sizeof want / sizeof *want)) {
        for (size_t i = 0; i < server.list.count; i++) {
            CHECK_STR(server.list.tools[i]->tool.name, want[i].name);
            CHECK(tool_name_valid(str_of(server.list.tools[i]->tool.name)));
            CHECK_STR(server.list.tools[i]->tool.description, want[i].description);
            CHECK_STR(server.list.tools[i]->tool.parameters, want[i].parameters);
        }
    }
    end();
}

TEST(a_name_that_another_tool_has)
{
    char taken[] = "fake__echo", also[] = "fake__echo_2";
    const struct tool first = {.name = taken}, second = {.name = also};
    const struct tool *const others[] = {&first, &second};

    start("");
    for (size_t i = 0; i < server.list.count; i++) {
        free(server.list.tools[i]->tool.name);
        server.list.tools[i]->tool.name = NULL;
    }
    mcp_name_tools(servers, 1, others, 2);
    CHECK_STR(server.list.tools[0]->tool.name, "fake__echo_3");
    CHECK_STR(server.list.tools[1]->tool.name, "fake__slow");
    end();
}

TEST(names_of_servers)
{
    CHECK(mcp_server_name_valid(STR("a")));
    CHECK(mcp_server_name_valid(STR("File-system_2")));
    CHECK(mcp_server_name_valid(STR("123456789012345678901234567890")));
    CHECK(!mcp_server_name_valid(STR("1234567890123456789012345678901")));
    CHECK(!mcp_server_name_valid(STR("")));
    CHECK(!mcp_server_name_valid(STR("a.b")));
}

/* ---- a list that changes ---- */

TEST(an_interrupt_leaves_the_list_for_later)
{
    int ends[2];

    start("");
    check_call("grow", "{}", "more", false);
    CHECK_INT(pipe(ends), 0);
    CHECK_INT(write(ends[1], "x", 1), 1);
    CHECK(!mcp_renew(servers, 1, PATIENCE_MS, ends[0]));
    CHECK_INT(server.list.count, 26);
    CHECK(mcp_renew(servers, 1, PATIENCE_MS, -1));
    CHECK_INT(server.list.count, 27);
    close(ends[0]);
    close(ends[1]);
    end();
}

/* ---- servers that do not get ready ---- */

TEST(a_server_that_is_silent)
{
    CHECK_INT(start_for("--silent --banner", 4000), -1);
    CHECK_STR(err_text(&fault), "MCP server 'fake' was not ready in 4 s: it writes what is no "
                                "message: 'fake-mcp 1.0'");
    end();
    CHECK_INT(start_for("--silent", 1000), -1);
    CHECK_INT(fault.kind, ERR_LIMIT);
    CHECK_STR(err_text(&fault), "MCP server 'fake' was not ready in 1 s");
    end();
}

/* ---- calls ---- */

TEST(results_and_errors)
{
    start("");
    check_call("fail", "{}", "the tool failed:\nno such place", true);
    check_call("refuse", "{}", "the tool cannot be called: bad arguments (-32602)", true);
    check_call("blocks", "{}",
               "words\n[image, image/png, 5 bytes]\n[audio, audio/wav, 3 bytes]\n"
               "[resource_link, file:///x, x]\ninside",
               false);
    check_call("structured", "{}", "{\"degrees\":21.5}", false);
    check_call("bytes", "{}",
               "a\xef\xbf\xbd\xef\xbf\xbd"
               "b",
               false);
    check_call("echo", "[]", "the arguments are not a JSON object", true);
    check_call("echo", "{\"text\":", "the arguments are not a JSON object", true);
    end();
}

TEST(a_long_result_is_cut)
{
    struct tool_job job;

    start("");
    job = job_of("long", "{\"n\":3000000}");
    CHECK_INT(tool_run(&job, 1, -1, NULL, NULL), 0);
    CHECK(job.done && !job.failed);
    CHECK(
        str_find(buf_str(&job.result), STR("x\n[output cut: 2897600 bytes are left out here]\nx")));
    buf_release(&job.result);
    end();
}

TEST(long_arguments_arrive)
{
    struct buf args = BUF_INIT(BUF_LINE);
    struct tool_job jobs[3];

    start("");
    buf_add_c(&args, "{\"text\":\"");
    for (size_t j = 0; j < 80000; j++)
        buf_add_c(&args, "0123456789");
    buf_add_c(&args, "\"}");
    for (size_t i = 0; i < 3; i++)
        jobs[i] = job_of("echo", buf_c(&args));
    CHECK_INT(tool_run(jobs, 3, -1, NULL, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        /* 800,000 bytes came back. */
        CHECK(str_find(buf_str(&jobs[i].result),
                       STR("[output cut: 697600 bytes are left out here]")));
        CHECK(!jobs[i].failed);
        buf_release(&jobs[i].result);
    }
    buf_release(&args);
    end();
}

TEST(answers_in_another_order)
{
    struct tool_job jobs[3];

    start("");
    jobs[0] = job_of("slow", "{\"ms\":300,\"text\":\"late\"}");
    jobs[1] = job_of("echo", "{\"text\":\"early\"}");
    jobs[2] = job_of("slow", "{\"ms\":100,\"text\":\"between\"}");
    CHECK_INT(tool_run(jobs, 3, -1, NULL, NULL), 0);
    check_done(&jobs[0], "late", false);
    check_done(&jobs[1], "early", false);
    check_done(&jobs[2], "between", false);
    end();
}

TEST(ids_that_are_not_ours)
{
    start("");
    check_call("other-id", "{\"text\":\"right\"}", "right", false);
    check_call("string-id", "{}", "right", false);
    check_call("echo", "{\"text\":\"x\"}", "x", false);
    end();
}

TEST(a_server_asks_us)
{
    start("");
    check_call("ask", "{}",
               "{\"ask 0\": {}, \"ask 1\": {\"code\": -32601, \"message\": \"Method not found\"}, "
               "\"ask 2\": {\"code\": -32601, \"message\": \"Method not found\"}}",
               false);
    end();
}

TEST(a_call_that_takes_too_long_is_cancelled)
{
    struct tool_job jobs[2];

    start("");
    jobs[0] = job_of("hang", "{}");
    jobs[0].timeout_ms = 300;
    jobs[1] = job_of("echo", "{\"text\":\"x\"}");
    CHECK_INT(tool_run(jobs, 2, -1, NULL, NULL), 0);
    check_done(&jobs[0], "the tool was stopped: it took longer than 0.3 s", true);
    check_done(&jobs[1], "x", false);
    check_call("cancelled", "{}", "1", false);
    end();
}

TEST(a_late_answer_is_not_taken_for_another)
{
    struct tool_job job;

    start("");
    job = job_of("slow", "{\"ms\":500,\"text\":\"late\"}");
    job.timeout_ms = 100;
    CHECK_INT(tool_run(&job, 1, -1, NULL, NULL), 0);
    CHECK(job.failed);
    buf_release(&job.result);
    check_call("slow", "{\"ms\":800,\"text\":\"right\"}", "right", false);
    CHECK_INT(server.noise, 0);
    end();
}

TEST(an_interrupt_cancels)
{
    struct tool_job jobs[2];
    int ends[2];
    pid_t pid;

    CHECK_INT(pipe(ends), 0);
    start("");
    pid = fork();
    if (pid == 0) {
        usleep(300000);
        _exit(write(ends[1], "", 1) != 1);
    }
    jobs[0] = job_of("hang", "{}");
    jobs[1] = job_of("hang", "{}");
    CHECK_INT(tool_run(jobs, 2, ends[0], NULL, NULL), -1);
    check_done(&jobs[0], "the tool was interrupted", true);
    check_done(&jobs[1], "the tool was interrupted", true);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    check_call("cancelled", "{}", "2", false);
    end();
    close(ends[0]);
    close(ends[1]);
}

/* ---- servers that break ---- */

/* One call breaks the server; another that is under way, and the next, fail for the same reason. */
static void check_breaks(const char *tool, const char *args, const char *want)
{
    struct tool_job jobs[2];

    start("");
    jobs[0] = job_of("hang", "{}");
    jobs[1] = job_of(tool, args);
    CHECK_INT(tool_run(jobs, 2, -1, NULL, NULL), 0);
    check_done(&jobs[0], want, true);
    check_done(&jobs[1], want, true);
    check_call("echo", "{\"text\":\"x\"}", want, true);
    end();
}

TEST(servers_that_break)
{
    check_breaks("die", "{}", "MCP server 'fake' ended with status 3: first line it cannot go on");
    check_breaks("die", "{\"status\":0}",
                 "MCP server 'fake' ended with status 0: first line it cannot go on");
    check_breaks("kill", "{}", "MCP server 'fake' was ended by signal 9");
    check_breaks("orphan", "{}", "MCP server 'fake' ended with status 4");
    check_breaks("mute", "{}", "MCP server 'fake' closed its output");
    check_breaks("noise", "{\"n\":300}",
                 "MCP server 'fake' cannot be used: it writes what is no "
                 "message: 'this is no message'");
    check_breaks("endless", "{}",
                 "MCP server 'fake' cannot be used: it sent a message of more "
                 "than 16 MiB");
    check_breaks("progress", "{\"times\":50000}",
                 "MCP server 'fake' cannot be used: it sent 10000 messages and no answer");
}

TEST(some_noise_is_passed_over)
{
    start("");
    check_call("noise", "{\"n\":150}", "after the noise", false);
    check_call("progress", "{\"times\":9000}", "worked", false);
    end();
}

TEST(a_server_that_closes_its_input)
{
    struct tool_job jobs[2];

    start("");
    jobs[0] = job_of("deaf", "{}");
    jobs[0].timeout_ms = 1000;
    CHECK_INT(tool_run(jobs, 1, -1, NULL, NULL), 0);
    buf_release(&jobs[0].result);
    check_call("echo", "{\"text\":\"x\"}", "MCP server 'fake' closed its input", true);
    end();
}
