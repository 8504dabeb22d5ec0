#include "chathist/chat/tool_exec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/process.h"
#include "chathist/base/time.h"

/* How many reads of a stream are done before other calls have their turn. */
#define READS 4
/* The most bytes that may be in the pipes of a tool (pipe(7), pipe-max-size). */
#define PIPES_MAX ((size_t)2 << 20)

/* The part of a stream that is kept while it is read: its first `head` bytes and at least its last `tail`
 * bytes. */
struct stream {
    size_t head, tail;
    struct buf kept;
    uint64_t gone; /* bytes left out after the first `head` */
};

/* A call that is running. */
struct run {
    struct child child;
    size_t sent; /* how many bytes of the arguments were sent */
    struct stream out, err;
    struct buf chunk;
    size_t read; /* bytes of both streams, since it ended if it has */
};

/* ---- the result of a call ---- */

/* Drops the middle only when there are twice as many bytes as remain, so that few are moved. */
static void add_to_stream(struct stream *s, struct str chunk)
{
    buf_add_str(&s->kept, chunk);
    if (s->kept.len > 2 * (s->head + s->tail)) {
        size_t more = s->kept.len - s->head - s->tail;

        memmove(s->kept.data + s->head, s->kept.data + s->kept.len - s->tail, s->tail);
        buf_truncate(&s->kept, s->head + s->tail);
        s->gone += more;
    }
}

static void add_stream(struct buf *to, const struct stream *s)
{
    tool_add_ends(to, buf_str(&s->kept), s->head, s->tail, s->gone);
}

/* Adds both streams, for a call that failed. */
static void add_streams(struct buf *to, const struct run *r)
{
    if (r->err.kept.len > 0) {
        buf_end_line(to);
        buf_add_c(to, "standard error:\n");
        add_stream(to, &r->err);
    }
    if (r->out.kept.len > 0) {
        buf_end_line(to);
        buf_add_c(to, "standard output:\n");
        add_stream(to, &r->out);
    }
}

/* Takes the last line of the output if it is an object that has only the names of edited files. */
static void read_edited_files(struct tool_job *job, struct stream *out)
{
    struct str text = str_trim(buf_str(&out->kept)), line = text, object;
    size_t members = 0, known = 0;

    for (const char *p = text.p + text.n; p > text.p; p--)
        if (p[-1] == '\n') {
            line = str_skip(text, (size_t)(p - text.p));
            break;
        }
    if (!json_check(line, &object, NULL) || json_type(object) != JSON_OBJECT)
        return;
    for (struct json_iter it = json_iter(object); json_next(&it);)
        members++;
    known += json_get(object, "files_modified").p ? 1 : 0;
    known += json_get(object, "edit_results").p ? 1 : 0;
    /* Without any other output it is the result, too. */
    if (members == known && tool_read_edits(job, object) && line.p > text.p)
        buf_truncate(&out->kept, (size_t)(line.p - out->kept.data));
}

/* ---- calls ---- */

static void release_run(struct tool_job *job)
{
    struct run *r = job->state;

    buf_release(&r->out.kept);
    buf_release(&r->err.kept);
    buf_release(&r->chunk);
    free(r);
    job->state = NULL;
}

/* Starts the tool. Without a name it prints its declaration. */
static void start_tool(struct tool_job *job)
{
    const struct tool_exec *t = job->tool->source;
    char schema[] = "--schema", *argv[] = {t->path, t->tool.name ? NULL : schema, NULL};
    struct run *r = mem_zalloc(sizeof *r);
    struct err e = ERR_INIT;

    job->state = r;
    r->out = (struct stream){TOOL_HEAD_MAX, TOOL_TAIL_MAX, BUF_INIT(BUF_SMALL), 0};
    r->err = (struct stream){0, TOOL_STDERR_MAX, BUF_INIT(BUF_SMALL), 0};
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

/* Reads without waiting. Returns true if there may be more to read. */
static bool drain(struct run *r, int *fd, struct stream *s)
{
    for (int i = 0; *fd >= 0 && i < READS; i++) {
        buf_clear(&r->chunk);
        if (!child_read(fd, &r->chunk))
            return false;
        add_to_stream(s, buf_str(&r->chunk));
        r->read += r->chunk.len;
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
    if (job->failed) {
        add_streams(&job->result, r);
    } else {
        read_edited_files(job, &r->out);
        add_stream(&job->result, &r->out);
    }
    release_run(job);
    job->done = true;
}

static void step_run(struct tool_job *job)
{
    struct run *r = job->state;
    /* This is checked before reading, because everything that the tool wrote is in the pipes once
     * it has ended. A process that it started may keep them open and go on writing. */
    bool ended = child_ended(&r->child);
    struct str rest = str_skip(job->args, r->sent);
    bool more;

    if (r->child.in >= 0 && rest.n > 0)
        r->sent += child_write(&r->child.in, rest);
    if (r->sent == job->args.n)
        child_close(&r->child.in);
    r->read = ended ? r->read : 0;
    more = drain(r, &r->child.out, &r->out);
    more = drain(r, &r->child.err, &r->err) || more;
    if (ended && (!more || r->read > PIPES_MAX))
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

    drain(r, &r->child.out, &r->out);
    drain(r, &r->child.err, &r->err);
    child_end(&r->child, left > 0 ? left / 2 : 0);
    add_streams(&job->result, r);
    release_run(job);
}

static const struct tool_kind executable = {start_tool, fds_of_run, step_run,
                                            ask_run,    stop_run,   true};

/* ---- the declaration ---- */

/* Sets the parameters: a JSON Schema for an object in a form that every provider accepts. */
static int declare_parameters(struct tool *t, struct str object, struct err *e)
{
    static const char *const names[] = {"parameters", "input_schema", "inputSchema"};
    struct str schema = STR_NONE, type;

    for (size_t i = 0; json_is_null(schema) && i < sizeof names / sizeof *names; i++)
        schema = json_get(object, names[i]);
    type = json_get(schema, "type");
    if (!json_is_null(schema) && json_type(schema) != JSON_OBJECT)
        return err_set(e, ERR_USAGE, "its parameters are not an object");
    if (type.p && !json_is_text(type, "object"))
        return err_set(e, ERR_USAGE, "its parameters are not of type 'object'");
    t->parameters = tool_parameters(schema);
    return 0;
}

int tool_exec_declare(struct tool *t, struct str text, struct err *e)
{
    struct buf name = BUF_INIT(BUF_LINE), about = BUF_INIT(BUF_LINE);
    struct str object, wrapped, description;
    bool valid;

    if (!json_check(text, &object, NULL) || json_type(object) != JSON_OBJECT)
        return err_set(e, ERR_USAGE, "its declaration is not a JSON object");
    t->read_only = json_is_true(json_get(object, "read_only"));
    wrapped = json_get(object, "function");
    if (json_type(wrapped) == JSON_OBJECT)
        object = wrapped;
    t->read_only = t->read_only || json_is_true(json_get(object, "read_only"));
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
        result = tool_run(&job, 1, cancel_fd, NULL, e);
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
