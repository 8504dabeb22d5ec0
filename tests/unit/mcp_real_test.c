/*
 * mcp/client with servers that others wrote, fetched by npx and uvx: only with
 * CHATHIST_NET_TESTS in the environment, else each test passes without doing anything. They are
 * what the protocol means in practice; tests/tools/fake-mcp is what can go wrong.
 */
#include "chathist/mcp/client.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "scratch.h"

#include "chathist/base/process.h"

#define PATIENCE_MS ((int64_t)5 * 60 * 1000)

static struct mcp_server server;
static struct mcp_server *servers[] = {&server};

/* false: not asked for, or it did not start. */
static bool start(const char *command)
{
    struct err e = ERR_INIT;
    struct words argv;
    bool ready;

    if (!getenv("CHATHIST_NET_TESTS")) {
        fprintf(stderr, "# not run without CHATHIST_NET_TESTS: %s\n", command);
        return false;
    }
    signal(SIGPIPE, SIG_IGN);
    CHECK_INT(words_split(&argv, str_of(command), &e), 0);
    ready = mcp_start(&server, "real", argv.at, NULL, NULL, NULL, &e) == 0 &&
            mcp_await(servers, 1, PATIENCE_MS, -1, &e) == 0;
    CHECK_STR(err_text(&e), "");
    words_release(&argv);
    err_release(&e);
    if (ready)
        mcp_name_tools(servers, 1, NULL, 0);
    else
        mcp_end(servers, 1, MCP_GRACE_MS, -1);
    return ready;
}

/* Calls it; the result holds `part`. */
static void check_call(const char *tool, const char *args, const char *part, bool want_failed)
{
    struct tool_job job = {.args = str_of(args), .timeout_ms = PATIENCE_MS};

    for (size_t i = 0; i < server.list.count; i++)
        if (strcmp(server.list.tools[i]->name, tool) == 0)
            job.tool = &server.list.tools[i]->tool;
    if (!CHECK(job.tool != NULL))
        return;
    CHECK(str_starts(str_of(job.tool->name), STR("real__")));
    CHECK_INT(tool_run(&job, 1, -1, NULL, NULL), 0);
    CHECK(job.done);
    CHECK_INT(job.failed, want_failed);
    if (!CHECK(str_find(buf_str(&job.result), str_of(part))))
        fprintf(stderr, "    %s %s: %s\n", tool, args, buf_c(&job.result));
    buf_release(&job.result);
    attachment_list_release(&job.images);
}

TEST(server_everything)
{
    if (!start("npx -y @modelcontextprotocol/server-everything"))
        return;
    check_call("echo", "{\"message\":\"hello\"}", "Echo: hello", false);
    check_call("get-sum", "{\"a\":2,\"b\":3}", "5", false);
    check_call("get-sum", "{\"a\":\"x\"}", "Invalid", true);
    check_call("get-tiny-image", "{}", "[image, image/png, ", false);
    check_call("get-resource-links", "{\"count\":2}", "\n[resource_link, demo://", false);
    check_call("get-structured-content", "{\"location\":\"Chicago\"}", "\"temperature\"", false);
    check_call("trigger-long-running-operation", "{\"duration\":1,\"steps\":2}", "completed",
               false);
    mcp_end(servers, 1, MCP_GRACE_MS, -1);
}

TEST(server_filesystem)
{
    struct buf args = BUF_INIT(BUF_SMALL), got;

    scratch_enter();
    if (start("npx -y @modelcontextprotocol/server-filesystem .")) {
        buf_addf(&args, "{\"path\":\"%s/a\",\"content\":\"two\\nlines\\n\"}", scratch_dir);
        check_call("write_file", buf_c(&args), "Successfully wrote", false);
        got = scratch_get("a");
        CHECK_STR(buf_c(&got), "two\nlines\n");
        buf_release(&got);
        check_call("read_text_file", buf_c(&args), "two\nlines\n", false);
        check_call("read_text_file", "{\"path\":\"/etc/hostname\"}", "Access denied", true);
        mcp_end(servers, 1, MCP_GRACE_MS, -1);
    }
    buf_release(&args);
    scratch_leave();
}

TEST(server_memory)
{
    struct buf file = BUF_INIT(BUF_SMALL);

    scratch_enter();
    buf_addf(&file, "%s/memory.jsonl", scratch_dir);
    setenv("MEMORY_FILE_PATH", buf_c(&file), 1);
    buf_release(&file);
    if (start("npx -y @modelcontextprotocol/server-memory")) {
        check_call("create_entities",
                   "{\"entities\":[{\"name\":\"Ada\",\"entityType\":\"person\","
                   "\"observations\":[\"likes C\"]}]}",
                   "Ada", false);
        check_call("search_nodes", "{\"query\":\"ada\"}", "likes C", false);
        mcp_end(servers, 1, MCP_GRACE_MS, -1);
    }
    scratch_leave();
}

TEST(server_time)
{
    const char *command = getenv("CHATHIST_MCP_TIME"); /* where it is installed, if not by uvx */

    if (!start(command ? command : "uvx mcp-server-time"))
        return;
    check_call("get_current_time", "{\"timezone\":\"UTC\"}", "UTC", false);
    check_call("get_current_time", "{\"timezone\":\"Mars/X\"}", "Mars/X", true);
    mcp_end(servers, 1, MCP_GRACE_MS, -1);
}
