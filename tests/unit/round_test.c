#include "chathist/chat/turn.h"

#include <stdlib.h>

#include "test.h"
#include "chathist/base/json.h"
#include "chathist/history/thread.h"
#include "llm/provider_wire.h"
#include "scratch.h"

/* ---- tools that are done at once ---- */

/* Stores the prompt without a request. */
static int store_prompt(struct turn *t, struct err *e)
{
    turn_store_prompt_begin(t);
    return turn_store_prompt_end(t, e);
}

static int begun;

static void begin(struct tool_job *job)
{
    begun++;
    buf_add_str(&job->result, job->args);
    job->done = true;
}

static size_t fds(const struct tool_job *job, struct pollfd at[TOOL_FDS])
{
    (void)job;
    (void)at;
    return 0;
}

static const struct tool_kind at_once = {.begin = begin, .fds = fds, .step = begin};
static char name_a[] = "a", name_b[] = "b";
static const struct tool tool_a = {.name = name_a, .kind = &at_once};
static const struct tool tool_b = {.name = name_b, .kind = &at_once};
static const struct tool *const tools[] = {&tool_a, &tool_b};

/* ---- a turn whose answer has these calls ---- */

static struct history h;

static void enter(struct turn *t)
{
    struct locate_from from = {.explicit_file = "h.jsonl", .cwd = scratch_dir};

    scratch_enter();
    CHECK_INT(locate(&h, &from, NULL), 0);
    h.sync = false;
    *t = (struct turn){
        .history = &h,
        .provider = &provider_echo,
        .ask = {.model = "echo", .tools = tools, .tools_count = 2, .limits = {.cancel_fd = -1}},
        .session = STR("s"),
        .prompt = STR("go"),
        .limits = CONTEXT_LIMITS_NONE};
    CHECK_INT(turn_prepare(t, NULL), 0);
    CHECK_INT(store_prompt(t, NULL), 0);
    begun = 0;
}

static void leave(struct turn *t)
{
    turn_release(t);
    history_release(&h);
    scratch_leave();
}

static void answer_calls(struct turn *t, const char *const calls[][2])
{
    response_add_text(&t->answer, STR("\"let me\""), NULL);
    for (int64_t i = 0; calls[i][0]; i++) {
        struct buf args = BUF_INIT(BUF_SMALL);

        json_add_string(&args, str_of(calls[i][1]));
        response_add_call(&t->answer, i, STR_NONE, str_of(calls[i][0]), buf_str(&args), NULL);
        buf_release(&args);
    }
    response_settle_calls(&t->answer);
}

TEST(results_are_in_the_order_of_the_calls)
{
    static const char *const calls[][2] = {
        {"b", "{\"n\":1}"},   {"none", "{}"}, {"a", "oh"},
        {"a", " {\"n\":2} "}, {"", ""},       {NULL, NULL},
    };
    static const char *const want[] = {
        "{\"n\":1}", "there is no tool 'none'",
        "the tool was not run: its arguments are not a valid JSON object: oh", "{\"n\":2}",
        "there is no tool 'unnamed'"};
    struct thread thread;
    struct turn t;

    enter(&t);
    answer_calls(&t, calls);
    CHECK_INT(turn_store_answer(&t, NULL), 0);
    round_begin(&t);
    CHECK_INT(t.calls_count, 5);
    CHECK(!t.calls[0].job.done && t.calls[1].job.done && t.calls[2].job.failed);
    CHECK_INT(round_run(&t, NULL), 0);
    CHECK_INT(begun, 2);
    CHECK_INT(t.rounds, 1);
    CHECK_INT(round_store(&t, NULL), 0);
    round_end(&t);
    CHECK(!t.calls && t.answer.calls_count == 0 && t.answer.text.len == 0);
    if (CHECK_INT(t.context.count, 7)) {
        CHECK_STR(t.context.at[1].content, "let me");
        CHECK(t.context.at[1].tool_calls != NULL);
        for (size_t i = 0; i < 5; i++)
            CHECK_STR(t.context.at[2 + i].content, want[i]);
    }
    CHECK_INT(thread_find(&thread, &h, STR("s"), false, NULL), 0);
    if (CHECK_INT(thread.count, 7))
        for (size_t i = 0; i < 5; i++) {
            struct buf scratch = BUF_INIT(BUF_LINE);

            CHECK(str_eq_c(message_content(&thread.at[2 + i], &scratch), want[i]));
            CHECK(
                str_eq(message_text(&thread.at[2 + i], FIELD_REPLY_TO, &scratch), thread.at[0].id));
            buf_release(&scratch);
        }
    thread_release(&thread);
    leave(&t);
}

TEST(a_refused_call_is_not_run)
{
    static const char *const calls[][2] = {{"a", "{}"}, {"b", "{}"}, {NULL, NULL}};
    struct turn t;

    enter(&t);
    answer_calls(&t, calls);
    round_begin(&t);
    round_refuse(&t.calls[0], "no");
    CHECK_INT(round_run(&t, NULL), 0);
    CHECK_INT(begun, 1);
    CHECK_STR(buf_c(&t.calls[0].job.result), "no");
    CHECK(t.calls[0].job.failed && !t.calls[1].job.failed);
    CHECK_STR(buf_c(&t.calls[1].job.result), "{}");
    leave(&t);
}

TEST(an_interruption_leaves_a_result_for_each)
{
    static const char *const calls[][2] = {{"a", "{}"}, {"none", "{}"}, {NULL, NULL}};
    struct err e = ERR_INIT;
    struct turn t;
    int wake[2];

    enter(&t);
    CHECK_INT(pipe(wake), 0);
    CHECK_INT(write(wake[1], "", 1), 1);
    t.ask.limits.cancel_fd = wake[0];
    answer_calls(&t, calls);
    round_begin(&t);
    CHECK_INT(round_run(&t, &e), -1);
    CHECK_INT(e.kind, ERR_SIGNAL);
    CHECK_INT(begun, 0);
    CHECK_STR(buf_c(&t.calls[0].job.result), "the tool was not run: the turn was interrupted");
    CHECK_STR(buf_c(&t.calls[1].job.result), "there is no tool 'none'");
    err_release(&e);
    close(wake[0]);
    close(wake[1]);
    leave(&t);
}
