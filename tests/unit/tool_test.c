#include "chathist/llm/tool.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "chathist/base/json.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

/* ---- a kind for tests: its source tells what a call does ---- */

struct plan {
    int steps;  /* so many until it is done; -1: never */
    int fails;  /* at once */
    int leaves; /* what it leaves in the result when it is stopped */
    int begun, asked, stopped;
    int64_t until; /* when it had to end */
    int wake;      /* written to when it begins; 0: nothing */
};

static int going, most;

static void plan_begin(struct tool_job *job)
{
    struct plan *p = job->tool->source;

    p->begun++;
    if (p->wake)
        CHECK_INT(write(p->wake, "", 1), 1);
    if (p->fails) {
        tool_fail(job, "cannot %s", "begin");
        return;
    }
    going++;
    if (going > most)
        most = going;
    job->state = malloc(sizeof(int));
    *(int *)job->state = p->steps;
}

static void plan_done(struct tool_job *job)
{
    going--;
    free(job->state);
    job->state = NULL;
}

static size_t plan_fds(const struct tool_job *job, struct pollfd fds[TOOL_FDS])
{
    (void)job;
    (void)fds;
    return 0;
}

static void plan_step(struct tool_job *job)
{
    int *left = job->state;

    if (*left < 0 || --*left > 0)
        return;
    buf_add_c(&job->result, "result of ");
    buf_add_str(&job->result, job->args);
    plan_done(job);
    job->done = true;
}

static void plan_ask(struct tool_job *job)
{
    struct plan *p = job->tool->source;

    CHECK_INT(p->stopped, 0);
    p->asked++;
}

static void plan_stop(struct tool_job *job, int64_t until)
{
    struct plan *p = job->tool->source;

    CHECK(p->stopped == 0 || until == p->until);
    p->until = until;
    p->stopped++;
    for (int i = 0; i < p->leaves; i++)
        buf_add_c(&job->result, "\xc3\xa9");
    plan_done(job);
}

static const struct tool_kind planned = {plan_begin, plan_fds,  plan_step,
                                         plan_ask,   plan_stop, false};

/* A tool that only reads. */
static struct tool tool_of(struct plan *p)
{
    return (struct tool){.kind = &planned, .source = p, .read_only = true};
}

static void check_result(struct tool_job *job, bool failed, const char *text)
{
    CHECK(job->done);
    CHECK_INT(job->failed, failed);
    CHECK_STR(buf_c(&job->result), text);
    CHECK(!job->state);
    buf_release(&job->result);
}

/* ---- tests ---- */

TEST(names)
{
    char longest[66];

    memset(longest, 'a', sizeof longest);
    CHECK(tool_name_valid(STR("read_file-2B")));
    CHECK(tool_name_valid((struct str){longest, 64}));
    CHECK(!tool_name_valid((struct str){longest, 65}));
    CHECK(!tool_name_valid(STR("")));
    CHECK(!tool_name_valid(STR("a b")));
    CHECK(!tool_name_valid(STR("a.b")));
    CHECK(!tool_name_valid(STR("na\xc3\xafve")));
    CHECK(!tool_name_valid((struct str){"a\0b", 3}));
}

TEST(a_text_is_cut_between_code_points)
{
    static const struct {
        const char *text;
        size_t most, want;
    } rows[] = {
        {"abc", 3, 3},
        {"abc", 2, 2},
        {"abc", 0, 0},
        {"a\xc3\xa9", 2, 1},
        {"a\xc3\xa9", 3, 3},
        {"\xe2\x82\xac", 2, 0},
        {"\xe2\x82\xac", 1, 0},
        {"\xe2\x82\xacx", 3, 3},
        {"\xf0\x9f\x98\x80", 3, 0},
        {"\xf0\x9f\x98\x80y", 4, 4},
        {"\xff\xff\xff", 2, 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_INT(tool_cut(str_of(rows[i].text), rows[i].most).n, rows[i].want);
}

TEST(no_calls_are_done_at_once)
{
    CHECK_INT(tool_run(NULL, 0, -1, NULL, NULL), 0);
}

TEST(calls_run_side_by_side_and_keep_their_places)
{
    struct plan slow = {.steps = 5}, fast = {.steps = 1}, bad = {.fails = 1};
    struct tool tools[] = {tool_of(&slow), tool_of(&bad), tool_of(&fast)};
    struct tool_job jobs[] = {
        {.tool = &tools[0], .args = STR("a")},
        {.tool = &tools[1], .args = STR("b")},
        {.tool = &tools[2], .args = STR("c")},
    };

    most = 0;
    CHECK_INT(tool_run(jobs, 3, -1, NULL, NULL), 0);
    CHECK_INT(most, 2);
    check_result(&jobs[0], false, "result of a");
    check_result(&jobs[1], true, "cannot begin");
    check_result(&jobs[2], false, "result of c");
}

/* The arguments of the calls that have ended, in the order of the reports. */
static void note_end(void *arg, struct tool_job *job)
{
    CHECK(job->done);
    buf_add_str(arg, job->args);
}

TEST(calls_run_in_order_unless_all_tools_only_read)
{
    for (int reads = 0; reads <= 1; reads++) {
        struct plan slow = {.steps = 5}, fast = {.steps = 1}, bad = {.fails = 1};
        struct tool tools[] = {tool_of(&slow), tool_of(&bad), tool_of(&fast)};
        struct tool_job jobs[] = {
            {.tool = &tools[0], .args = STR("a")}, {.tool = &tools[1], .args = STR("b")},
            {.args = STR("c"), .done = true},      {.tool = &tools[2], .args = STR("d")},
            {.tool = &tools[0], .args = STR("e")},
        };
        struct buf order = BUF_INIT(BUF_SMALL);
        struct tool_watch watch = {.ended = note_end, .arg = &order};

        tools[2].read_only = reads;
        most = 0;
        CHECK_INT(tool_run(jobs, 5, -1, &watch, NULL), 0);
        CHECK_INT(most, reads ? 3 : 1);
        CHECK_STR(buf_c(&order), reads ? "cbdae" : "abcde");
        check_result(&jobs[0], false, "result of a");
        check_result(&jobs[1], true, "cannot begin");
        check_result(&jobs[3], false, "result of d");
        check_result(&jobs[4], false, "result of e");
        buf_release(&order);
    }
}

TEST(an_interruption_ends_the_call_whose_turn_it_is)
{
    struct plan first = {.steps = 1}, endless = {.steps = -1};
    struct tool tools[] = {tool_of(&first), tool_of(&endless)};
    struct tool_job jobs[] = {{.tool = &tools[0], .args = STR("a")},
                              {.tool = &tools[1], .args = STR("b")},
                              {.tool = &tools[1], .args = STR("c")}};
    struct buf order = BUF_INIT(BUF_SMALL);
    struct tool_watch watch = {.ended = note_end, .arg = &order};
    int wake[2];

    CHECK_INT(pipe(wake), 0);
    tools[0].read_only = false;
    endless.wake = wake[1];
    CHECK_INT(tool_run(jobs, 3, wake[0], &watch, NULL), -1);
    CHECK_INT(endless.begun, 1);
    CHECK_STR(buf_c(&order), "abc");
    check_result(&jobs[0], false, "result of a");
    check_result(&jobs[1], true, "the tool was interrupted");
    check_result(&jobs[2], true, "the tool was not run: the turn was interrupted");
    buf_release(&order);
    close(wake[0]);
    close(wake[1]);
}

TEST(of_a_long_text_both_ends_remain)
{
    static const struct {
        const char *text;
        size_t head, tail;
        uint64_t gone;
        const char *want;
    } rows[] = {
        {"", 2, 3, 0, ""},
        {"abcde", 2, 3, 0, "abcde"},
        {"abcdef", 2, 3, 0, "ab\n[output cut: 1 bytes are left out here]\ndef"},
        {"abcde", 2, 3, 7, "ab\n[output cut: 7 bytes are left out here]\ncde"},
        {"a\nbcdefg\nh\ni", 4, 4, 0, "a\n[output cut: 7 bytes are left out here]\nh\ni"},
        {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3, 3, 0,
         "\xc3\xa9\n[output cut: 4 bytes are left out here]\n\xc3\xa9"},
        {"abcdef", 0, 3, 0, "[output cut: 3 bytes are left out here]\ndef"},
        {"a\xff"
         "cdef",
         2, 3, 0, "a" UTF8_REPLACEMENT "\n[output cut: 1 bytes are left out here]\ndef"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf got = BUF_INIT(BUF_SMALL);

        tool_add_ends(&got, str_of(rows[i].text), rows[i].head, rows[i].tail, rows[i].gone);
        CHECK_STR(buf_c(&got), rows[i].want);
        buf_release(&got);
    }
}

TEST(edits_have_their_types)
{
    static const char *const taken[] = {
        "{\"files_modified\":[]}",
        "{\"edit_results\":[{}]}",
        "{\"files_modified\":[\"a\",\"b\"],\"edit_results\":[{\"n\":[1]}]}",
    };
    static const char *const refused[] = {
        "{}",
        "[]",
        "7",
        "{\"files_modified\":\"a\"}",
        "{\"files_modified\":[1]}",
        "{\"files_modified\":[\"a\"],\"edit_results\":[\"b\"]}",
        "{\"edit_results\":null}",
    };
    struct tool tool = {0};

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct tool_job job = {.tool = &tool};

        tool.read_only = false;
        CHECK(tool_read_edits(&job, str_of(taken[i])));
        CHECK_STR(buf_c(&job.edits), taken[i]);
        buf_release(&job.edits);
        tool.read_only = true;
        CHECK(!tool_read_edits(&job, str_of(taken[i])));
    }
    tool.read_only = false;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tool_job job = {.tool = &tool};

        CHECK(!tool_read_edits(&job, str_of(refused[i])));
        CHECK_INT(job.edits.len, 0);
    }
}

TEST(so_many_at_once)
{
    struct plan plan = {.steps = 2};
    struct tool tool = tool_of(&plan);
    struct tool_job jobs[3 * TOOL_PARALLEL + 1];
    size_t count = sizeof jobs / sizeof *jobs;

    for (size_t i = 0; i < count; i++)
        jobs[i] = (struct tool_job){.tool = &tool, .args = STR("x")};
    most = 0;
    CHECK_INT(tool_run(jobs, count, -1, NULL, NULL), 0);
    CHECK_INT(most, TOOL_PARALLEL);
    CHECK_INT(plan.begun, count);
    for (size_t i = 0; i < count; i++)
        check_result(&jobs[i], false, "result of x");
}

TEST(one_whose_time_is_up_is_stopped)
{
    struct plan endless = {.steps = -1, .leaves = 2}, fast = {.steps = 3};
    struct tool tools[] = {tool_of(&endless), tool_of(&fast)};
    struct tool_job jobs[] = {
        {.tool = &tools[0], .args = STR("a"), .timeout_ms = 120},
        {.tool = &tools[1], .args = STR("b"), .timeout_ms = 60000},
    };

    CHECK_INT(tool_run(jobs, 2, -1, NULL, NULL), 0);
    CHECK_INT(endless.stopped, 1);
    CHECK_INT(fast.stopped, 0);
    check_result(&jobs[0], true,
                 "the tool was stopped: it took longer than 0.1 s\n\xc3\xa9\xc3\xa9");
    check_result(&jobs[1], false, "result of b");
}

TEST(what_a_stopped_call_leaves_is_bounded)
{
    struct plan endless = {.steps = -1, .leaves = TOOL_RESULT_MAX / 2};
    struct tool tool = tool_of(&endless);
    struct tool_job job = {.tool = &tool, .timeout_ms = 1};

    CHECK_INT(tool_run(&job, 1, -1, NULL, NULL), 0);
    CHECK(!job.result.overflow);
    CHECK(job.result.len <= TOOL_RESULT_MAX && job.result.len > TOOL_RESULT_MAX - 2);
    CHECK_STR(buf_c(&job.result) + job.result.len - 2, "\xc3\xa9");
    buf_release(&job.result);
}

TEST(an_interruption_ends_them_all)
{
    struct plan endless = {.steps = -1}, fast = {.steps = 1};
    struct tool tools[] = {tool_of(&fast), tool_of(&endless)};
    struct tool_job jobs[TOOL_PARALLEL + 3];
    size_t count = sizeof jobs / sizeof *jobs;
    struct err e = ERR_INIT;
    int wake[2];

    CHECK_INT(pipe(wake), 0);
    for (size_t i = 0; i < count; i++)
        jobs[i] = (struct tool_job){.tool = &tools[i > 0], .args = STR("x")};
    fast.wake = wake[1];
    CHECK_INT(tool_run(jobs, count, wake[0], NULL, &e), -1);
    CHECK_INT(e.kind, ERR_SIGNAL);
    CHECK_INT(going, 0);
    CHECK_INT(endless.begun, TOOL_PARALLEL - 1);
    CHECK_INT(endless.asked, TOOL_PARALLEL - 1);
    CHECK_INT(endless.stopped, TOOL_PARALLEL - 1);
    CHECK(endless.until <= time_ticks() + TOOL_GRACE_MS);
    for (size_t i = 0; i < count; i++)
        check_result(&jobs[i], true,
                     i < TOOL_PARALLEL ? "the tool was interrupted"
                                       : "the tool was not run: the turn was interrupted");
    err_release(&e);
    close(wake[0]);
    close(wake[1]);
}

TEST(after_an_interruption_nothing_is_begun)
{
    struct plan plan = {.steps = 1};
    struct tool tool = tool_of(&plan);
    struct tool_job job = {.tool = &tool};
    struct err e = ERR_INIT;
    int wake[2];

    CHECK_INT(pipe(wake), 0);
    CHECK_INT(write(wake[1], "", 1), 1);
    CHECK_INT(tool_run(NULL, 0, wake[0], NULL, &e), 0);
    CHECK_INT(tool_run(&job, 1, wake[0], NULL, &e), -1);
    CHECK_INT(plan.begun, 0);
    check_result(&job, true, "the tool was not run: the turn was interrupted");
    err_release(&e);
    close(wake[0]);
    close(wake[1]);
}

/* ---- the schema of the arguments ---- */

static void check_parameters(const char *schema, const char *want, int line)
{
    char *got = tool_parameters(str_of(schema));

    test_check_str(got, want, schema, __FILE__, line);
    free(got);
}
#define CHECK_PARAMETERS(schema, want) check_parameters(schema, want, __LINE__)

TEST(a_schema_has_a_type_and_properties)
{
    CHECK_PARAMETERS("", "{\"type\":\"object\",\"properties\":{}}");
    CHECK_PARAMETERS("true", "{\"type\":\"object\",\"properties\":{}}");
    CHECK_PARAMETERS("{\"properties\":[],\"type\":null,\"enum\":[{}]}",
                     "{\"type\":\"object\",\"properties\":{}}");
    CHECK_PARAMETERS("{\"required\":[\"a\"],\"properties\":{\"a\":{\"anyOf\":[{}, 1e2]}}}",
                     "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"anyOf\":"
                     "[{},1e2]}}}");
}

#define A "\"a\":{\"type\":\"string\"}"
#define B "\"b\":{\"type\":\"integer\"}"

TEST(alternatives_of_a_schema_are_merged)
{
    /* What all alternatives require is required. */
    CHECK_PARAMETERS("{\"anyOf\":[{\"properties\":{" A "," B "},\"required\":[\"a\",\"b\"]},"
                     "{\"properties\":{" A "},\"required\":[\"a\"]}]}",
                     "{\"type\":\"object\",\"properties\":{" A "," B "},\"required\":[\"a\"]}");
    CHECK_PARAMETERS("{\"properties\":{" A
                     "},\"required\":[\"a\"],\"oneOf\":[{\"required\":[\"b\"],"
                     "\"properties\":{" B "}},true]}",
                     "{\"type\":\"object\",\"properties\":{" A "," B "},\"required\":[\"a\"]}");
    /* What any part requires is required. */
    CHECK_PARAMETERS("{\"allOf\":[{\"properties\":{" A "}},{\"properties\":{" B "},\"required\":"
                     "[\"b\",\"a\"]}],\"description\":\"d\"}",
                     "{\"type\":\"object\",\"description\":\"d\",\"properties\":{" A "," B
                     "},\"required\":[\"a\",\"b\"]}");
    /* The same schema counts once. */
    CHECK_PARAMETERS("{\"oneOf\":[{\"properties\":{" A "}},{\"properties\":{\"a\":1}},"
                     "{\"properties\":{\"a\":{ \"type\":\"string\"}}},{\"properties\":{" B "}}]}",
                     "{\"type\":\"object\",\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"string\"},"
                     "1]}," B "},\"required\":[]}");
}

TEST(references_of_a_schema_are_followed)
{
    CHECK_PARAMETERS("{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"properties\":{" A
                     "},\"required\":[\"a\"]}}}",
                     "{\"type\":\"object\",\"$defs\":{\"x\":{\"properties\":{" A
                     "},\"required\":[\"a\"]}},\"properties\":{" A "},\"required\":[\"a\"]}");
    /* It refers to itself, to nothing, or elsewhere. */
    CHECK_PARAMETERS("{\"$ref\":\"#\",\"properties\":{" A "},\"required\":[\"a\"]}",
                     "{\"type\":\"object\",\"properties\":{" A "},\"required\":[\"a\"]}");
    CHECK_PARAMETERS("{\"allOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}],\"properties\":{" A "}}",
                     "{\"type\":\"object\",\"properties\":{" A "},\"required\":[]}");
    CHECK_PARAMETERS("{\"$ref\":\"#/a/b\",\"anyOf\":[{\"$ref\":\"https://h/s\"},{\"$ref\":1}]}",
                     "{\"type\":\"object\",\"properties\":{},\"required\":[]}");
}

TEST(a_large_schema_is_merged_in_time)
{
    struct buf schema = BUF_INIT(SIZE_MAX);
    int64_t began = time_ticks();
    char *got;

    buf_add_c(&schema, "{\"allOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}],\"properties\":{\"a\":1");
    for (int i = 0; i < 20000; i++)
        buf_addf(&schema, ",\"b%d\":{\"type\":\"string\"}", i);
    buf_add_c(&schema, "}}");
    got = tool_parameters(buf_str(&schema));
    CHECK(json_check(str_of(got), &(struct str){0}, NULL));
    CHECK(time_ticks() - began < 20000);
    free(got);
    buf_release(&schema);
}
