#include "chathist/llm/tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "chathist/base/file.h"
#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"
#include "chathist/base/utf8.h"

/* How often a job is stepped that waits for no descriptor, and any other job at least, because a
 * process that a tool started may keep its pipes open. In milliseconds. */
#define SOON_MS 5
#define TICK_MS 100

bool tool_name_valid(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (!ascii_is_letter(c) && !ascii_is_digit(c) && c != '_' && c != '-')
            return false;
    }
    return name.n > 0 && name.n <= TOOL_NAME_MAX;
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

/* Begins as many jobs as may run at the same time. Returns how many are running. */
static size_t begin_some(struct tool_job *jobs, size_t count)
{
    size_t going = 0;

    for (size_t i = 0; i < count && going < TOOL_PARALLEL; i++) {
        struct tool_job *job = &jobs[i];

        if (!job->done && job->deadline == 0) {
            job->deadline = job->timeout_ms > 0 ? time_ticks() + job->timeout_ms : INT64_MAX;
            job->tool->kind->begin(job);
        }
        going += !job->done;
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

static void ask_to_end(struct tool_job *job)
{
    if (job->deadline != 0 && job->tool->kind->ask)
        job->tool->kind->ask(job);
}

/* Ends a job that is not done, before `until`. Its output so far follows the reason. */
static void end_job(struct tool_job *job, const char *why, int64_t until)
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
    end_job(job, buf_c(&why), time_ticks() + TOOL_GRACE_MS);
    buf_release(&why);
}

/* Ends all jobs that are not done, side by side. */
static void end_jobs(struct tool_job *jobs, size_t count)
{
    int64_t until = time_ticks() + TOOL_GRACE_MS;

    for (size_t i = 0; i < count; i++)
        if (!jobs[i].done)
            ask_to_end(&jobs[i]);
    for (size_t i = 0; i < count; i++)
        if (!jobs[i].done)
            end_job(&jobs[i],
                    jobs[i].deadline ? "the tool was interrupted"
                                     : "the tool was not run: the turn was interrupted",
                    until);
}

/* Fills in the descriptors that running jobs wait for, from fds[1] on, and the longest time to wait
 * for them. Returns the number of descriptors. */
static size_t gather_fds(const struct tool_job *jobs, size_t count, struct pollfd *fds,
                         int64_t *wait)
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
        if (jobs[i].deadline - time_ticks() < *wait)
            *wait = jobs[i].deadline - time_ticks();
        n += more;
    }
    return n;
}

/* Waits until there is something to do, and steps all running jobs. Returns 1 while one is not
 * done, 0 if all are, or -1 if cancel_fd is readable. */
static int step_jobs(struct tool_job *jobs, size_t count, int cancel_fd)
{
    struct pollfd fds[TOOL_PARALLEL * TOOL_FDS + 1];
    int64_t wait;
    size_t n;

    if (cancel_fd >= 0 && file_wait(cancel_fd, 0) > 0)
        return any_left(jobs, count) ? -1 : 0;
    if (begin_some(jobs, count) == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = cancel_fd, .events = POLLIN};
    n = gather_fds(jobs, count, fds, &wait);
    if (poll(fds, (nfds_t)n, wait > 0 ? (int)wait : 0) > 0 && fds[0].revents)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].done || jobs[i].deadline == 0)
            continue;
        jobs[i].tool->kind->step(&jobs[i]);
        if (!jobs[i].done && time_ticks() >= jobs[i].deadline)
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
        if (jobs[i].done)
            continue;
        processes = processes || jobs[i].tool->kind->processes;
        buf_init(&jobs[i].result, TOOL_RESULT_MAX);
    }
    if (processes)
        orphans_begin(&orphans);
    while (going > 0)
        going = step_jobs(jobs, count, cancel_fd);
    if (going < 0)
        end_jobs(jobs, count);
    if (processes)
        orphans_end(&orphans);
    return going == 0 ? 0 : err_set(e, ERR_SIGNAL, "interrupted");
}

/* ---- executables ---- */

/* How many reads of a stream are done before other calls have their turn. */
#define READS 4

/* How much of standard output is kept: a few bytes more than a result shows, to know whether there
 * was more and where a code point ends. */
#define OUT_MAX (TOOL_OUTPUT_MAX + 4)

/* A call that is running. */
struct run {
    struct child child;
    size_t sent;                 /* of the arguments */
    struct buf out;              /* the beginning of standard output */
    struct buf err;              /* the end of standard error */
    uint64_t out_left, err_left; /* bytes left out of them */
    struct buf chunk;
};

/* ---- executables: the result of a call ---- */

/* Drops the end of a code point that was cut in two at the start of the text. */
static struct str whole_start(struct str text)
{
    while (text.n > 0 && ((unsigned char)text.p[0] & 0xC0) == 0x80)
        text = str_skip(text, 1);
    return text;
}

static void end_line(struct buf *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        buf_add_byte(out, '\n');
}

static void add_out(struct buf *to, const struct run *r)
{
    struct str text = tool_cut(buf_str(&r->out), TOOL_OUTPUT_MAX);
    uint64_t left = r->out_left + (r->out.len - text.n);

    utf8_add_repaired(to, text);
    if (left == 0)
        return;
    end_line(to);
    buf_addf(to, "[output cut: %" PRIu64 " more bytes]\n", left);
}

static void add_err(struct buf *to, const struct run *r)
{
    if (r->err_left > 0)
        buf_addf(to, "[%" PRIu64 " bytes before this]\n", r->err_left);
    utf8_add_repaired(to, r->err_left ? whole_start(buf_str(&r->err)) : buf_str(&r->err));
}

/* Adds both streams, for a call that failed. */
static void add_streams(struct buf *to, const struct run *r)
{
    if (r->err.len > 0) {
        end_line(to);
        buf_add_c(to, "standard error:\n");
        add_err(to, r);
    }
    if (r->out.len > 0) {
        end_line(to);
        buf_add_c(to, "standard output:\n");
        add_out(to, r);
    }
}

/* ---- executables: calls ---- */

static void release_run(struct tool_job *job)
{
    struct run *r = job->state;

    buf_release(&r->out);
    buf_release(&r->err);
    buf_release(&r->chunk);
    free(r);
    job->state = NULL;
}

/* Starts the tool. One without a name is asked for its declaration. */
static void begin_run(struct tool_job *job)
{
    const struct tool_exec *t = job->tool->source;
    char schema[] = "--schema", *argv[] = {t->path, t->tool.name ? NULL : schema, NULL};
    struct run *r = mem_zalloc(sizeof *r);
    struct err e = ERR_INIT;

    job->state = r;
    buf_init(&r->out, OUT_MAX);
    buf_init(&r->err, BUF_SMALL);
    buf_init(&r->chunk, BUF_SMALL);
    /* The tool runs as the same user and must not read keys from this process. */
    process_hide();
    if (child_start(&r->child, argv, t->env, NULL, &e) < 0) {
        tool_fail(job, "%s", err_text(&e));
        err_release(&e);
        release_run(job);
    }
}

static size_t fds_of_run(const struct tool_job *job, struct pollfd fds[TOOL_FDS])
{
    const struct child *c = &((const struct run *)job->state)->child;
    size_t n = 0;

    if (c->in >= 0)
        fds[n++] = (struct pollfd){.fd = c->in, .events = POLLOUT};
    if (c->out >= 0)
        fds[n++] = (struct pollfd){.fd = c->out, .events = POLLIN};
    if (c->err >= 0)
        fds[n++] = (struct pollfd){.fd = c->err, .events = POLLIN};
    return n;
}

static void send_args(struct tool_job *job, struct run *r)
{
    struct str rest = str_skip(job->args, r->sent);

    if (r->child.in >= 0 && rest.n > 0)
        r->sent += child_write(&r->child.in, rest);
    if (r->sent == job->args.n)
        child_close(&r->child.in);
}

/* Reads without waiting, and keeps the first bytes of standard output and the end of standard
 * error. Returns true if there may be more to read. */
static bool drain(struct run *r, int *fd)
{
    for (int i = 0; *fd >= 0 && i < READS; i++) {
        buf_clear(&r->chunk);
        if (!child_read(fd, &r->chunk))
            return false;
        if (fd == &r->child.out) {
            size_t room = OUT_MAX - r->out.len, n = r->chunk.len < room ? r->chunk.len : room;

            buf_add(&r->out, r->chunk.data, n);
            r->out_left += r->chunk.len - n;
        } else {
            buf_add_str(&r->err, buf_str(&r->chunk));
            if (r->err.len > TOOL_STDERR_MAX) {
                r->err_left += r->err.len - TOOL_STDERR_MAX;
                buf_consume(&r->err, r->err.len - TOOL_STDERR_MAX);
            }
        }
    }
    return *fd >= 0;
}

static void finish_run(struct tool_job *job, struct run *r)
{
    child_end(&r->child, 0);
    job->failed = r->child.status != 0;
    if (r->child.signal)
        buf_addf(&job->result, "the tool failed: signal %d ended it\n", r->child.signal);
    else if (job->failed)
        buf_addf(&job->result, "the tool failed with exit status %d\n", r->child.status);
    if (job->failed)
        add_streams(&job->result, r);
    else
        add_out(&job->result, r);
    release_run(job);
    job->done = true;
}

static void step_run(struct tool_job *job)
{
    struct run *r = job->state;
    /* This is checked before reading, because everything that the tool wrote is in the pipes once
     * it has ended. A process that it started may keep them open and go on writing. */
    bool ended = child_ended(&r->child);
    bool more;

    send_args(job, r);
    more = drain(r, &r->child.out);
    more = drain(r, &r->child.err) || more;
    if (ended && (!more || r->out_left + r->err_left > 0))
        finish_run(job, r);
}

static void ask_run(struct tool_job *job)
{
    struct run *r = job->state;

    child_term(&r->child);
}

static void stop_run(struct tool_job *job, int64_t until)
{
    struct run *r = job->state;
    int64_t left = until - time_ticks();

    drain(r, &r->child.out);
    drain(r, &r->child.err);
    child_end(&r->child, left > 0 ? left / 2 : 0);
    add_streams(&job->result, r);
    release_run(job);
}

static const struct tool_kind executable = {begin_run, fds_of_run, step_run,
                                            ask_run,   stop_run,   true};

/* ---- executables: the declaration ---- */

/* Sets the parameters: a JSON Schema for an object in a form that every provider accepts. */
static int declare_parameters(struct tool *t, struct str object, struct err *e)
{
    static const char *const names[] = {"parameters", "input_schema", "inputSchema"};
    struct buf out = BUF_INIT(BUF_LINE);
    struct str schema = STR_NONE, type;

    for (size_t i = 0; json_is_null(schema) && i < sizeof names / sizeof *names; i++)
        schema = json_get(object, names[i]);
    type = json_get(schema, "type");
    if (!json_is_null(schema) && json_type(schema) != JSON_OBJECT)
        return err_set(e, ERR_USAGE, "its parameters are not an object");
    if (type.p && !json_is_text(type, "object"))
        return err_set(e, ERR_USAGE, "its parameters are not of type 'object'");
    if (json_is_null(schema))
        schema = STR("{\"properties\":{}}");
    json_add_compact(&out, schema);
    t->parameters = buf_detach(&out);
    if (type.p)
        return 0;
    buf_add_c(&out, "{\"type\":\"object\"");
    buf_add_c(&out, t->parameters[1] == '}' ? "" : ",");
    buf_add_c(&out, t->parameters + 1);
    free(t->parameters);
    t->parameters = buf_detach(&out);
    return 0;
}

int tool_exec_declare(struct tool *t, struct str text, struct err *e)
{
    struct buf name = BUF_INIT(BUF_LINE), about = BUF_INIT(BUF_LINE);
    struct str object, wrapped, description;
    bool valid;

    if (!json_check(text, &object, NULL) || json_type(object) != JSON_OBJECT)
        return err_set(e, ERR_USAGE, "its declaration is not a JSON object");
    wrapped = json_get(object, "function");
    if (json_type(wrapped) == JSON_OBJECT)
        object = wrapped;
    if (!json_decode(json_get(object, "name"), &name))
        return err_set(e, ERR_USAGE, "its declaration has no name");
    valid = tool_name_valid(buf_str(&name));
    t->name = buf_detach(&name);
    if (!valid)
        return err_set(e, ERR_USAGE, "its name '%s' is not 1 to 64 letters, digits, '_' and '-'",
                       t->name);
    description = json_get(object, "description");
    if (!json_is_null(description) && !json_decode(description, &about))
        return err_set(e, ERR_USAGE, "its description is not a text");
    t->description = buf_detach(&about);
    return declare_parameters(t, object, e);
}

int tool_exec_load(struct tool_exec *t, const char *path, char *const env[], int cancel_fd,
                   struct err *e)
{
    struct tool_job job = {.tool = &t->tool, .timeout_ms = TOOL_SCHEMA_MS};
    struct err why = ERR_INIT;
    struct stat st;
    int result;

    *t = (struct tool_exec){
        .tool = {.kind = &executable, .source = t}, .path = mem_text(path), .env = env};
    /* Running a directory fails with "permission denied", which would not help. */
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        result = err_set(e, ERR_USAGE, "cannot use the tool '%s': is a directory", path);
    else
        result = tool_run(&job, 1, cancel_fd, e);
    if (result == 0 && job.failed)
        result = err_set(e, ERR_USAGE, "cannot use the tool '%s': %s", path, buf_c(&job.result));
    else if (result == 0 && tool_exec_declare(&t->tool, buf_str(&job.result), &why) < 0)
        result = err_set(e, ERR_USAGE, "cannot use the tool '%s': %s", path, err_text(&why));
    err_release(&why);
    buf_release(&job.result);
    return result;
}

void tool_exec_release(struct tool_exec *t)
{
    free(t->tool.name);
    free(t->tool.description);
    free(t->tool.parameters);
    free(t->path);
    *t = (struct tool_exec){0};
}
