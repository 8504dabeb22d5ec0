#include "chathist/llm/tool_exec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chathist/base/process.h"
#include "chathist/base/clock.h"
#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"

/* So often a stream is read before the other calls have their turn. */
#define READS 4

/* So much of standard output is kept: whether more came than is told, and where a code point ends,
 * can then be seen. */
#define OUT_MAX (TOOL_OUTPUT_MAX + 4)

/* A call under way. */
struct run {
    struct child child;
    size_t sent;                 /* of the arguments */
    struct buf out;              /* the beginning of standard output */
    struct buf err;              /* the end of standard error */
    uint64_t out_left, err_left; /* bytes left out of them */
    struct buf chunk;
};

/* ---- what the model is told ---- */

/* Drops what is left of a code point whose beginning was left out. */
static struct str whole_start(struct str text)
{
    while (text.n > 0 && ((unsigned char)text.p[0] & 0xC0) == 0x80) {
        text.p++;
        text.n--;
    }
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

/* Both streams, for a call that failed. */
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

/* ---- a call ---- */

static void release(struct tool_job *job)
{
    struct run *r = job->state;

    buf_release(&r->out);
    buf_release(&r->err);
    buf_release(&r->chunk);
    free(r);
    job->state = NULL;
}

static void start(struct tool_job *job, char *argument)
{
    const struct tool_exec *t = job->tool->source;
    char *argv[] = {t->path, argument, NULL};
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
        release(job);
    }
}

static void begin_call(struct tool_job *job)
{
    start(job, NULL);
}

static void begin_schema(struct tool_job *job)
{
    char argument[] = "--schema";

    start(job, argument);
}

static size_t fds(const struct tool_job *job, struct pollfd fds[TOOL_FDS])
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
    struct str rest = {job->args.p + r->sent, job->args.n - r->sent};

    if (r->child.in >= 0 && rest.n > 0)
        r->sent += child_write(&r->child.in, rest);
    if (r->sent == job->args.n)
        child_close(&r->child.in);
}

/* Keeps the beginning of standard output. */
static void take_out(struct run *r)
{
    size_t room = OUT_MAX - r->out.len;
    size_t n = r->chunk.len < room ? r->chunk.len : room;

    buf_add(&r->out, r->chunk.data, n);
    r->out_left += r->chunk.len - n;
}

/* Keeps the end of standard error. */
static void take_err(struct run *r)
{
    size_t over;

    buf_add_str(&r->err, buf_str(&r->chunk));
    over = r->err.len > TOOL_STDERR_MAX ? r->err.len - TOOL_STDERR_MAX : 0;
    buf_consume(&r->err, over);
    r->err_left += over;
}

/* Reads what is there; true when there may be more. */
static bool drain(struct run *r, int *fd, void (*take)(struct run *r))
{
    for (int i = 0; *fd >= 0 && i < READS; i++) {
        buf_clear(&r->chunk);
        if (!child_read(fd, &r->chunk))
            return false;
        take(r);
    }
    return *fd >= 0;
}

static void finish(struct tool_job *job, struct run *r)
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
    release(job);
    job->done = true;
}

static void step(struct tool_job *job)
{
    struct run *r = job->state;
    /* Before reading: what it wrote is then in the pipes. A program that it left behind may hold
     * them open, and go on writing. */
    bool ended = child_ended(&r->child);
    bool more;

    send_args(job, r);
    more = drain(r, &r->child.out, take_out);
    more = drain(r, &r->child.err, take_err) || more;
    if (ended && (!more || r->out_left + r->err_left > 0))
        finish(job, r);
}

/* That its input has ended means nothing to a tool. */
static void ask(struct tool_job *job)
{
    struct run *r = job->state;

    child_term(&r->child);
}

static void stop(struct tool_job *job, int64_t until)
{
    struct run *r = job->state;
    int64_t left = until - clock_ticks();

    drain(r, &r->child.out, take_out);
    drain(r, &r->child.err, take_err);
    child_end(&r->child, left > 0 ? left / 2 : 0);
    add_streams(&job->result, r);
    release(job);
}

static const struct tool_kind calls = {begin_call, fds, step, ask, stop, true};
static const struct tool_kind schemas = {begin_schema, fds, step, ask, stop, true};

/* ---- the declaration ---- */

/* The parameters, a JSON Schema for an object, as every provider takes it. */
static int declare_parameters(struct tool *t, struct str object, struct err *e)
{
    static const char *const names[] = {"parameters", "input_schema", "inputSchema"};
    struct buf out = BUF_INIT(BUF_LINE), text = BUF_INIT(BUF_LINE);
    struct str schema = STR_NONE, type;
    int result = 0;

    for (size_t i = 0; json_is_null(schema) && i < sizeof names / sizeof *names; i++)
        schema = json_get(object, names[i]);
    type = json_get(schema, "type");
    if (json_is_null(schema))
        buf_add_c(&out, "{\"type\":\"object\",\"properties\":{}}");
    else if (json_type(schema) != JSON_OBJECT)
        result = err_set(e, ERR_USAGE, "its parameters are not an object");
    else if (type.p && !str_eq_c(json_text(type, &text), "object"))
        result = err_set(e, ERR_USAGE, "its parameters are not of type 'object'");
    else
        json_add_compact(&out, schema);
    if (result == 0 && schema.p && !type.p && !json_is_null(schema)) {
        buf_clear(&text);
        buf_add_c(&text, "{\"type\":\"object\"");
        buf_add_c(&text, out.len > 2 ? "," : "");
        buf_add(&text, out.data + 1, out.len - 1);
        buf_clear(&out);
        buf_add_str(&out, buf_str(&text));
    }
    t->parameters = buf_detach(&out);
    buf_release(&text);
    return result;
}

/* Decoded, with whether it can be a name. */
static char *copy_text(struct str string, bool *name)
{
    struct buf text = BUF_INIT(BUF_LINE);

    json_decode(string, &text);
    *name = tool_name_valid(buf_str(&text));
    return buf_detach(&text);
}

int tool_exec_declare(struct tool *t, struct str text, struct err *e)
{
    struct str object, wrapped, description;
    bool valid;

    if (!json_check(text, &object, NULL) || json_type(object) != JSON_OBJECT)
        return err_set(e, ERR_USAGE, "its declaration is not a JSON object");
    wrapped = json_get(object, "function");
    if (json_type(wrapped) == JSON_OBJECT)
        object = wrapped;
    if (json_type(json_get(object, "name")) != JSON_STRING)
        return err_set(e, ERR_USAGE, "its declaration has no name");
    t->name = copy_text(json_get(object, "name"), &valid);
    if (!valid)
        return err_set(e, ERR_USAGE, "its name '%s' is not 1 to 64 letters, digits, '_' and '-'",
                       t->name);
    description = json_get(object, "description");
    if (!json_is_null(description) && json_type(description) != JSON_STRING)
        return err_set(e, ERR_USAGE, "its description is not a text");
    t->description = copy_text(description, &valid);
    return declare_parameters(t, object, e);
}

int tool_exec_load(struct tool_exec *t, const char *path, char *const env[], int cancel_fd,
                   struct err *e)
{
    struct tool probe = {.kind = &schemas, .source = t};
    struct tool_job job = {.tool = &probe, .timeout_ms = TOOL_SCHEMA_MS};
    struct err why = ERR_INIT;
    struct stat st;
    int result;

    *t = (struct tool_exec){
        .tool = {.kind = &calls, .source = t}, .path = mem_copy(path, strlen(path)), .env = env};
    /* The system would say that permission is denied. */
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
