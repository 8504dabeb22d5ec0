#include "chathist/llm/tool.h"

#include <inttypes.h>
#include <stdarg.h>

#include "chathist/base/clock.h"
#include "chathist/base/io.h"
#include "chathist/base/process.h"
#include "chathist/base/utf8.h"

/* How often a job that has nothing to wait for is looked after, and any other at least: a tool that
 * has ended may have left its pipes to somebody else. Milliseconds. */
#define SOON_MS 5
#define TICK_MS 100

#define NAME_MAX_BYTES 64

bool tool_name_valid(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return name.n > 0 && name.n <= NAME_MAX_BYTES;
}

void tool_fail(struct tool_job *job, const char *fmt, ...)
{
    va_list ap;

    buf_clear(&job->result);
    va_start(ap, fmt);
    buf_vaddf(&job->result, fmt, ap);
    va_end(ap);
    job->failed = true;
    job->done = true;
}

struct str tool_cut(struct str text, size_t most)
{
    int32_t cp;

    if (text.n <= most)
        return text;
    text.n = most;
    /* A code point that is cut in two begins in the last three bytes. */
    for (size_t back = 1; back <= 3 && back <= most; back++)
        if (utf8_decode((struct str){text.p + most - back, back}, &cp) == 0)
            text.n = most - back;
    return text;
}

static void begin(struct tool_job *job)
{
    job->deadline = job->timeout_ms > 0 ? clock_ticks() + job->timeout_ms : INT64_MAX;
    job->tool->kind->begin(job);
}

/* Begins as many as there is room for. Returns how many are under way. */
static size_t begin_some(struct tool_job *jobs, size_t count)
{
    size_t going = 0;

    for (size_t i = 0; i < count && going < TOOL_PARALLEL; i++) {
        if (!jobs[i].done && jobs[i].deadline == 0)
            begin(&jobs[i]);
        going += !jobs[i].done;
    }
    return going;
}

static bool any_left(const struct tool_job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!jobs[i].done)
            return true;
    return false;
}

/* Has a job that is to be ended been begun? Then it is asked to go. */
static void ask_to_end(struct tool_job *job)
{
    if (job->deadline != 0 && job->tool->kind->ask)
        job->tool->kind->ask(job);
}

/* Ends a job that is not done, by `until`; what it has so far stands behind the reason. */
static void end(struct tool_job *job, const char *why, int64_t until)
{
    struct buf said = BUF_INIT(TOOL_RESULT_MAX);

    if (job->deadline != 0)
        job->tool->kind->stop(job, until);
    buf_add_c(&said, why);
    if (job->result.len > 0) {
        buf_add_c(&said, "\n");
        buf_add_str(&said, tool_cut(buf_str(&job->result), TOOL_RESULT_MAX - said.len));
    }
    buf_release(&job->result);
    job->result = said;
    job->failed = true;
    job->done = true;
}

static void end_late(struct tool_job *job)
{
    struct buf why = BUF_INIT(BUF_SMALL);

    buf_addf(&why, "the tool was stopped: it took longer than %" PRId64 ".%" PRId64 " s",
             job->timeout_ms / 1000, job->timeout_ms % 1000 / 100);
    ask_to_end(job);
    end(job, buf_c(&why), clock_ticks() + TOOL_GRACE_MS);
    buf_release(&why);
}

/* All that are not done, which have the time together. */
static void end_all(struct tool_job *jobs, size_t count)
{
    int64_t until = clock_ticks() + TOOL_GRACE_MS;

    for (size_t i = 0; i < count; i++)
        if (!jobs[i].done)
            ask_to_end(&jobs[i]);
    for (size_t i = 0; i < count; i++)
        if (!jobs[i].done)
            end(&jobs[i],
                jobs[i].deadline ? "the tool was interrupted"
                                 : "the tool was not run: the turn was interrupted",
                until);
}

/* What the jobs that are under way wait for, behind fds[0]; *wait becomes how long at the most.
 * Returns the number of descriptors. */
static size_t gather(const struct tool_job *jobs, size_t count, struct pollfd *fds, int64_t *wait)
{
    size_t n = 1;

    *wait = TICK_MS;
    for (size_t i = 0; i < count; i++) {
        size_t more;

        if (jobs[i].done || jobs[i].deadline == 0)
            continue;
        more = jobs[i].tool->kind->fds(&jobs[i], fds + n);
        if (more == 0 && *wait > SOON_MS)
            *wait = SOON_MS;
        if (jobs[i].deadline - clock_ticks() < *wait)
            *wait = jobs[i].deadline - clock_ticks();
        n += more;
    }
    return n;
}

/* One look at all of them: waits until there is something to do. 1 while one is not done, 0, or -1
 * when cancelled. */
static int look(struct tool_job *jobs, size_t count, int cancel_fd)
{
    struct pollfd fds[TOOL_PARALLEL * TOOL_FDS + 1];
    int64_t wait;
    size_t n;

    if (cancel_fd >= 0 && io_wait(cancel_fd, 0) > 0)
        return any_left(jobs, count) ? -1 : 0;
    if (begin_some(jobs, count) == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = cancel_fd, .events = POLLIN};
    n = gather(jobs, count, fds, &wait);
    if (poll(fds, (nfds_t)n, wait > 0 ? (int)wait : 0) > 0 && fds[0].revents)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].done || jobs[i].deadline == 0)
            continue;
        jobs[i].tool->kind->step(&jobs[i]);
        if (!jobs[i].done && clock_ticks() >= jobs[i].deadline)
            end_late(&jobs[i]);
    }
    return 1;
}

int tool_run(struct tool_job *jobs, size_t count, int cancel_fd, struct err *e)
{
    struct orphans orphans;
    bool processes = false;
    int going = 1;

    for (size_t i = 0; i < count; i++) {
        processes = processes || jobs[i].tool->kind->processes;
        buf_init(&jobs[i].result, TOOL_RESULT_MAX);
        jobs[i].done = jobs[i].failed = false;
        jobs[i].state = NULL;
        jobs[i].deadline = 0;
    }
    if (processes)
        orphans_begin(&orphans);
    while (going > 0)
        going = look(jobs, count, cancel_fd);
    if (going < 0)
        end_all(jobs, count);
    if (processes)
        orphans_end(&orphans);
    return going == 0 ? 0 : err_set(e, ERR_SIGNAL, "interrupted");
}
