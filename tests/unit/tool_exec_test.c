#include "chathist/chat/tool_exec.h"

#include <signal.h>
#include <stdlib.h>

#include "test.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"
#include "scratch.h"

/* The longest output of which nothing is left out. */
#define LONGEST (TOOL_HEAD_MAX + TOOL_TAIL_MAX)

static char **env;
static bool only_reads; /* what the next tool says of itself */

static void enter(void)
{
    const char *const none[] = {NULL};

    signal(SIGPIPE, SIG_IGN);
    scratch_enter();
    env = child_env_without(none, STR_NONE);
}

static void leave(void)
{
    free(env);
    scratch_leave();
}

/* An executable ./tool that declares itself and answers a call with the script. */
static void put_tool(const char *script)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_addf(&text,
             "#!/bin/sh\n[ \"$1\" != --schema ] || "
             "{ echo '{\"name\":\"t\",\"read_only\":%s}'; exit; }\n%s\n",
             only_reads ? "true" : "false", script);
    scratch_put("tool", buf_c(&text));
    CHECK_INT(chmod("tool", 0700), 0);
    buf_release(&text);
}

/* A call of ./tool; the caller releases the result. */
static struct tool_job call(const char *script, struct str args, int64_t timeout_ms)
{
    struct tool_exec t;
    struct tool_job job = {.tool = &t.tool, .args = args, .timeout_ms = timeout_ms};
    struct err e = ERR_INIT;

    put_tool(script);
    if (!CHECK_INT(tool_exec_load(&t, "./tool", env, -1, &e), 0))
        fprintf(stderr, "    %s\n", err_text(&e));
    CHECK_STR(t.tool.name, "t");
    CHECK_INT(t.tool.read_only, only_reads);
    CHECK_INT(tool_run(&job, 1, -1, NULL, NULL), 0);
    CHECK(job.done && !job.state);
    tool_exec_release(&t);
    err_release(&e);
    return job;
}

static void check_call(const char *script, const char *args, bool failed, const char *want)
{
    struct tool_job job = call(script, str_of(args), 60000);

    CHECK_INT(job.failed, failed);
    CHECK_STR(buf_c(&job.result), want);
    buf_release(&job.result);
}

/* ---- calls ---- */

TEST(a_failure_is_told_with_status_and_both_streams)
{
    enter();
    check_call(
        "echo half; echo why >&2; exit 3", "{}", true,
        "the tool failed with exit status 3\nstandard error:\nwhy\nstandard output:\nhalf\n");
    check_call("printf why >&2; printf half; exit 1", "{}", true,
               "the tool failed with exit status 1\nstandard error:\nwhy\nstandard output:\nhalf");
    check_call("exit 2", "{}", true, "the tool failed with exit status 2\n");
    check_call("kill -KILL $$", "{}", true, "the tool failed: signal 9 ended it\n");
    leave();
}

TEST(output_is_cut_between_code_points_and_says_so)
{
    struct tool_job job;

    enter();
    job = call("printf x; yes \xc3\xa9 | tr -d '\\n' | head -c 300000", STR("{}"), 60000);
    CHECK(!job.failed);
    CHECK(job.result.len > LONGEST - 10 && job.result.len < LONGEST + 100);
    CHECK_INT(utf8_valid(buf_str(&job.result)), job.result.len);
    CHECK(!str_find(buf_str(&job.result), STR(UTF8_REPLACEMENT)));
    CHECK(str_find(buf_str(&job.result),
                   STR("\xc3\xa9\n[output cut: 197602 bytes are left out here]\n\xc3\xa9")));
    buf_release(&job.result);
    job = call("seq 100000 >&2; exit 1", STR("{}"), 60000);
    CHECK(job.failed);
    CHECK(job.result.len < TOOL_STDERR_MAX + 200);
    CHECK(str_find(buf_str(&job.result), STR("[output cut: 584802 bytes are left out here]\n")));
    CHECK(str_ends(buf_str(&job.result), STR("\n99999\n100000\n")));
    buf_release(&job.result);
    leave();
}

TEST(long_arguments_and_answers_do_not_block_each_other)
{
    struct buf args = BUF_INIT(BUF_LINE);
    struct tool_job job;

    enter();
    buf_add_c(&args, "{\"text\":\"");
    for (size_t i = 0; i < 60000; i++)
        buf_add_c(&args, "0123456789abcdef");
    buf_add_c(&args, "\"}");
    job = call("cat >copy; wc -c <copy | tr -d ' '", buf_str(&args), 60000);
    CHECK_STR(buf_c(&job.result), "960011\n");
    buf_release(&job.result);
    job = call("cat", buf_str(&args), 60000);
    CHECK(!job.failed);
    CHECK(str_find(buf_str(&job.result), STR("[output cut: 857611 bytes are left out here]\n")));
    CHECK(str_ends(buf_str(&job.result), STR("abcdef\"}")));
    buf_release(&job.result);
    buf_release(&args);
    leave();
}

/* Endless output: neither memory nor the other calls suffer. */
TEST(one_that_talks_for_ever_is_stopped)
{
    struct tool_job job;

    enter();
    job = call("exec yes", STR("{}"), 200);
    CHECK(job.failed);
    CHECK(
        str_starts(buf_str(&job.result), STR("the tool was stopped: it took longer than 0.2 s\n")));
    CHECK(job.result.len < LONGEST + 200);
    buf_release(&job.result);
    leave();
}

/* It has ended; what it started may hold its pipes open and is not waited for. */
TEST(what_it_leaves_behind_is_not_waited_for)
{
    int64_t began = time_ticks();
    struct tool_job job;

    enter();
    check_call("sleep 50 & echo done", "{}", false, "done\n");
    job = call("yes & sleep 0.1; exit 4", STR("{}"), 60000);
    CHECK(str_starts(buf_str(&job.result), STR("the tool failed with exit status 4\n")));
    buf_release(&job.result);
    CHECK(time_ticks() - began < 30000);
    leave();
}

/* Its last lines have the error. */
TEST(the_end_of_a_long_output_is_kept)
{
    struct tool_job job;

    enter();
    job = call("seq 1000000; echo 'the error'", STR("{}"), 60000);
    CHECK(!job.failed && job.result.len < LONGEST + 100);
    CHECK(str_starts(buf_str(&job.result), STR("1\n2\n3\n")));
    CHECK(str_find(buf_str(&job.result), STR(" bytes are left out here]\n98")));
    CHECK(str_ends(buf_str(&job.result), STR("\n999999\n1000000\nthe error\n")));
    buf_release(&job.result);
    leave();
}

/* ---- what a tool has edited ---- */

static void check_edits(const char *script, bool read_only, const char *edits, const char *result)
{
    struct tool_job job;

    only_reads = read_only;
    job = call(script, STR("{}"), 60000);
    only_reads = false;
    CHECK_STR(buf_c(&job.edits), edits);
    CHECK_STR(buf_c(&job.result), result);
    buf_release(&job.edits);
    buf_release(&job.result);
}

TEST(the_last_line_may_name_what_was_edited)
{
#define EDITED "{\"files_modified\":[\"a b\"],\"edit_results\":[{\"n\":1}]}"
    enter();
    check_edits("echo ok; echo '" EDITED "'", false, EDITED, "ok\n");
    check_edits("printf 'ok\n\n%s\r\n\n' '" EDITED "'", false, EDITED, "ok\n\n");
    check_edits("printf '%s' '" EDITED "'", false, EDITED, EDITED);
    check_edits("seq 20 | wc -l | tr -d ' '; echo '{ \"files_modified\" : [] }'", false,
                "{\"files_modified\":[]}", "20\n");
    /* Other objects are part of the output, and so is what a tool prints that only reads. */
    check_edits("echo ok; echo '" EDITED "'", true, "", "ok\n" EDITED "\n");
    check_edits("echo '{\"files_modified\":[\"a\"],\"id\":1}'", false, "",
                "{\"files_modified\":[\"a\"],\"id\":1}\n");
    check_edits("echo '" EDITED "'; echo ok", false, "", EDITED "\nok\n");
    check_edits("echo '" EDITED "'; exit 1", false, "",
                "the tool failed with exit status 1\nstandard output:\n" EDITED "\n");
    leave();
#undef EDITED
}

/* ---- declarations ---- */

static void check_declared(const char *text, const char *name, const char *description,
                           const char *parameters)
{
    struct tool_exec t = {0};
    struct err e = ERR_INIT;

    if (!CHECK_INT(tool_exec_declare(&t.tool, str_of(text), &e), 0))
        fprintf(stderr, "    %s: %s\n", text, err_text(&e));
    CHECK_STR(t.tool.name, name);
    CHECK_STR(t.tool.description, description);
    CHECK_STR(t.tool.parameters, parameters);
    tool_exec_release(&t);
    err_release(&e);
}

TEST(declarations)
{
    check_declared("{\"name\":\"f\",\"description\":\"does \\u0022f\\u0022\",\n \"parameters\": "
                   "{\"type\": \"object\", \"properties\":{\"a\":{\"type\":\"string\"}}}}\n",
                   "f", "does \"f\"",
                   "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}");
    check_declared("{\"name\":\"f\"}", "f", "", "{\"type\":\"object\",\"properties\":{}}");
    check_declared("{\"name\":\"f\",\"description\":null,\"parameters\":null}", "f", "",
                   "{\"type\":\"object\",\"properties\":{}}");
    check_declared("{\"name\":\"f\",\"parameters\":{}}", "f", "",
                   "{\"type\":\"object\",\"properties\":{}}");
    check_declared("{\"name\":\"f\",\"parameters\":{\"properties\":{}}}", "f", "",
                   "{\"type\":\"object\",\"properties\":{}}");
    check_declared("{\"type\":\"function\",\"function\":{\"name\":\"g\",\"description\":\"d\","
                   "\"parameters\":{\"type\":\"object\"}}}",
                   "g", "d", "{\"type\":\"object\",\"properties\":{}}");
    check_declared("{\"name\":\"h\",\"input_schema\":{\"type\":\"object\",\"required\":[]}}", "h",
                   "", "{\"type\":\"object\",\"required\":[],\"properties\":{}}");
    check_declared("{\"name\":\"h\",\"inputSchema\":{\"type\":\"object\"}}", "h", "",
                   "{\"type\":\"object\",\"properties\":{}}");
}

static void check_refused(const char *text, const char *want)
{
    struct tool_exec t = {0};
    struct err e = ERR_INIT;

    CHECK_INT(tool_exec_declare(&t.tool, str_of(text), &e), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    CHECK_STR(err_text(&e), want);
    tool_exec_release(&t);
    err_release(&e);
}

TEST(what_is_no_declaration)
{
    static const char name[] = " is not 1 to 64 letters, digits, '_' and '-'";
    struct buf want = BUF_INIT(BUF_SMALL);

    check_refused("", "its declaration is not a JSON object");
    check_refused("usage: tool", "its declaration is not a JSON object");
    check_refused("[]", "its declaration is not a JSON object");
    check_refused("{} {}", "its declaration is not a JSON object");
    check_refused("{}", "its declaration has no name");
    check_refused("{\"name\":1}", "its declaration has no name");
    check_refused("{\"name\":\"f\",\"description\":[]}", "its description is not a text");
    check_refused("{\"name\":\"f\",\"parameters\":[]}", "its parameters are not an object");
    check_refused("{\"name\":\"f\",\"parameters\":{\"type\":\"array\"}}",
                  "its parameters are not of type 'object'");
    check_refused("{\"name\":\"f\",\"parameters\":{\"type\":[\"object\"]}}",
                  "its parameters are not of type 'object'");
    buf_addf(&want, "its name 'a b'%s", name);
    check_refused("{\"name\":\"a b\"}", buf_c(&want));
    buf_clear(&want);
    buf_addf(&want, "its name 'a'%s", name);
    check_refused("{\"name\":\"a\\u0000b\"}", buf_c(&want));
    buf_clear(&want);
    buf_addf(&want, "its name ''%s", name);
    check_refused("{\"name\":\"\"}", buf_c(&want));
    buf_release(&want);
}
