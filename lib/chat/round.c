#include "chathist/chat/round.h"

#include <stdlib.h>

#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/history/message.h"
#include "chathist/llm/provider_error.h"

/* How much of invalid arguments the model is shown, in code points. */
#define EXCERPT_MAX 200

static const struct tool *find_tool(const struct ask *ask, struct str name)
{
    for (size_t i = 0; i < ask->tools_count; i++)
        if (str_eq_c(name, ask->tools[i]->name))
            return ask->tools[i];
    return NULL;
}

/* The model sees its call again with `{}` for arguments, so it is shown what it wrote. */
static void refuse_arguments(struct round_call *c)
{
    struct buf shown = BUF_INIT(BUF_SMALL);

    provider_error_add_excerpt(&shown, buf_str(&c->call->args), EXCERPT_MAX);
    tool_fail(&c->job, "the tool was not run: its arguments are not a valid JSON object: %s",
              buf_c(&shown));
    buf_release(&shown);
}

static void look_up(const struct turn *t, struct round_call *c)
{
    struct tool_job *job = &c->job;

    buf_init(&job->result, TOOL_RESULT_MAX);
    job->tool = find_tool(&t->ask, buf_str(&c->call->name));
    job->timeout_ms = t->tool_timeout_ms;
    if (!job->tool)
        tool_fail(job, "there is no tool '%s'", buf_c(&c->call->name));
    else if (!json_check(buf_str(&c->call->args), &job->args, NULL) ||
             json_type(job->args) != JSON_OBJECT)
        refuse_arguments(c);
}

void round_begin(struct turn *t)
{
    t->calls = mem_zalloc(t->answer.calls_count * sizeof *t->calls);
    t->calls_count = t->answer.calls_count;
    for (size_t i = 0; i < t->calls_count; i++) {
        t->calls[i].call = &t->answer.calls[i];
        look_up(t, &t->calls[i]);
    }
}

void round_refuse(struct round_call *c, const char *why)
{
    tool_fail(&c->job, "%s", why);
}

int round_run(struct turn *t, struct err *e)
{
    struct tool_job *jobs = mem_zalloc(t->calls_count * sizeof *jobs);
    size_t *places = mem_zalloc(t->calls_count * sizeof *places);
    size_t count = 0;
    int result;

    for (size_t i = 0; i < t->calls_count; i++) {
        if (t->calls[i].job.done)
            continue;
        buf_release(&t->calls[i].job.result);
        jobs[count] = t->calls[i].job;
        places[count++] = i;
    }
    result = tool_run(jobs, count, t->ask.limits.cancel_fd, e);
    for (size_t i = 0; i < count; i++)
        t->calls[places[i]].job = jobs[i];
    free(jobs);
    free(places);
    t->rounds++;
    return result;
}

int round_store(struct turn *t, struct err *e)
{
    for (size_t i = 0; i < t->calls_count; i++) {
        const struct round_call *c = &t->calls[i];
        struct draft *d = turn_add_line(t, ROLE_TOOL, buf_str(&c->job.result));

        draft_set_text(d, FIELD_TOOL_CALL_ID, buf_str(&c->call->id));
    }
    return turn_store(t, e);
}

static void grow_context(struct turn *t)
{
    const struct opaque_blocks *replay = &t->answer.opaque;
    struct buf calls = BUF_INIT(BUF_LINE);

    response_calls_json(&t->answer, &calls);
    context_add_calls(&t->context, buf_str(&t->answer.text), buf_str(&calls),
                      buf_str(opaque_is_whole(replay) ? &replay->turn : &replay->thinking),
                      t->provider->name);
    for (size_t i = 0; i < t->calls_count; i++)
        context_add_result(&t->context, buf_str(&t->calls[i].call->id),
                           buf_str(&t->calls[i].job.result));
    buf_release(&calls);
}

void round_end(struct turn *t)
{
    if (!t->calls)
        return;
    grow_context(t);
    for (size_t i = 0; i < t->calls_count; i++)
        buf_release(&t->calls[i].job.result);
    free(t->calls);
    t->calls = NULL;
    t->calls_count = 0;
    response_release(&t->answer);
}
