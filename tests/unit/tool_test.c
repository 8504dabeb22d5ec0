#include "chathist/llm/tool.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "chathist/base/time.h"

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

static struct tool tool_of(struct plan *p)
{
    return (struct tool){.kind = &planned, .source = p};
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
    CHECK_INT(tool_run(NULL, 0, -1, NULL), 0);
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
    CHECK_INT(tool_run(jobs, 3, -1, NULL), 0);
    CHECK_INT(most, 2);
    check_result(&jobs[0], false, "result of a");
    check_result(&jobs[1], true, "cannot begin");
    check_result(&jobs[2], false, "result of c");
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
    CHECK_INT(tool_run(jobs, count, -1, NULL), 0);
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

    CHECK_INT(tool_run(jobs, 2, -1, NULL), 0);
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

    CHECK_INT(tool_run(&job, 1, -1, NULL), 0);
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
    CHECK_INT(tool_run(jobs, count, wake[0], &e), -1);
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
    CHECK_INT(tool_run(NULL, 0, wake[0], &e), 0);
    CHECK_INT(tool_run(&job, 1, wake[0], &e), -1);
    CHECK_INT(plan.begun, 0);
    check_result(&job, true, "the tool was not run: the turn was interrupted");
    err_release(&e);
    close(wake[0]);
    close(wake[1]);
}
