#include "chathist/llm/tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

/* How far from a cut the end of a line is looked for. */
#define LINE_REACH 1000

/* Drops the end of a line that begins before the text, or of a code point. */
static struct str from_line(struct str text)
{
    const char *line = memchr(text.p, '\n', text.n < LINE_REACH ? text.n : LINE_REACH);

    if (line)
        return str_skip(text, (size_t)(line + 1 - text.p));
    for (int i = 0; i < 3 && text.n > 0 && ((unsigned char)text.p[0] & 0xC0) == 0x80; i++)
        text = str_skip(text, 1);
    return text;
}

/* Returns the first `most` bytes, up to the end of a line if one is near. */
static struct str to_line(struct str text, size_t most)
{
    for (size_t n = most; n > 0 && most - n < LINE_REACH; n--)
        if (text.p[n - 1] == '\n')
            return (struct str){text.p, n};
    return tool_cut(text, most);
}

void tool_add_ends(struct buf *to, struct str text, size_t head, size_t tail, uint64_t gone)
{
    struct str first, last;

    if (gone == 0 && text.n <= head + tail) {
        utf8_add_repaired(to, text);
        return;
    }
    first = to_line(text, head);
    last = from_line(str_skip(text, text.n - tail));
    utf8_add_repaired(to, first);
    buf_end_line(to);
    buf_addf(to, "[output cut: %" PRIu64 " bytes are left out here]\n",
             gone + (text.n - first.n - last.n));
    utf8_add_repaired(to, last);
}

bool tool_read_edits(struct tool_job *job, struct str object)
{
    static const struct {
        const char *key;
        enum json_type of;
    } members[] = {{"files_modified", JSON_STRING}, {"edit_results", JSON_OBJECT}};
    struct buf taken = BUF_INIT(TOOL_RESULT_MAX);
    bool ok = !job->tool->read_only;

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct str value = json_get(object, members[i].key);
        struct json_iter it = json_iter(value);

        if (!value.p)
            continue;
        ok = ok && json_type(value) == JSON_ARRAY;
        while (ok && json_next(&it))
            ok = json_type(it.value) == members[i].of;
        buf_add_byte(&taken, taken.len > 0 ? ',' : '{');
        json_add_string(&taken, str_of(members[i].key));
        buf_add_byte(&taken, ':');
        json_add_compact(&taken, value);
    }
    ok = ok && taken.len > 0;
    if (ok) {
        buf_add_byte(&taken, '}');
        buf_init(&job->edits, TOOL_RESULT_MAX);
        buf_add_str(&job->edits, buf_str(&taken));
    }
    buf_release(&taken);
    return ok;
}

/* ---- the schema of the arguments ---- */

/* How many schemas a walk through a tool's schema visits, one of which may refer to itself, how
 * many properties are merged, and how many bytes all walks read. */
#define SCHEMAS_MAX 100
#define PROPERTIES_MAX 500
#define MERGE_BYTES ((size_t)64 << 20)

/* What may stand for the properties. `$ref` has one schema, the others have lists. */
static const char *const alternatives[] = {"allOf", "anyOf", "oneOf", "$ref"};
enum { ALTERNATIVES = sizeof alternatives / sizeof *alternatives };

struct merge {
    struct str root;
    size_t visits, bytes, count;
    struct {
        struct str key, value;
    } at[PROPERTIES_MAX];
};

/* Returns the schema that `#/$defs/name` refers to, or STR_NONE. */
static struct str referred(struct merge *m, struct str ref)
{
    struct str rest = json_body(ref), found = STR_NONE;

    if (str_eq_c(str_cut(&rest, '/'), "#"))
        found = m->root;
    while (found.p && rest.n > 0) {
        struct str part = str_cut(&rest, '/');
        char *name = mem_copy(part.p, part.n);

        m->bytes += found.n;
        found = json_get(found, name);
        free(name);
    }
    return found;
}

/* Visits a schema and its alternatives. Collects their properties, or, with a `key`, returns
 * whether every object that fits the schema has that property. */
static bool visit(struct merge *m, struct str schema, struct str key)
{
    struct json_iter it = json_iter(json_get(schema, key.p ? "required" : "properties"));
    bool found = false;

    m->bytes += schema.n;
    if (m->visits++ >= SCHEMAS_MAX || m->bytes > MERGE_BYTES)
        return false;
    while (it.object == !key.p && (key.p || m->count < PROPERTIES_MAX) && json_next(&it))
        if (key.p) {
            found = found || str_eq(json_body(it.value), key);
        } else {
            m->at[m->count].key = it.key;
            m->at[m->count++].value = it.value;
        }
    for (size_t i = 0; i < ALTERNATIVES; i++) {
        struct str value = json_get(schema, alternatives[i]);
        size_t all = 0, some = 0;

        if (json_type(value) == JSON_STRING)
            found = visit(m, referred(m, value), key) || found;
        for (it = json_iter(value); !it.object && json_next(&it); all++)
            some += visit(m, it.value, key);
        found = found || (some > 0 && (some == all || i == 0));
    }
    return found;
}

/* Adds the schema of the property, or those of all properties of that name. Returns false, and adds
 * nothing, if an earlier one has the name. */
static bool add_property(struct buf *out, const struct merge *m, size_t i)
{
    struct buf others = BUF_INIT(SIZE_MAX);
    bool first = true;

    for (size_t k = 0; k < m->count && first; k++) {
        bool added = !str_eq(m->at[k].key, m->at[i].key);

        first = added || k >= i;
        for (size_t n = i; n < k && !added; n++)
            added =
                str_eq(m->at[n].key, m->at[k].key) && json_equal(m->at[n].value, m->at[k].value);
        if (first && !added && k > i) {
            buf_add_byte(&others, ',');
            json_add_compact(&others, m->at[k].value);
        }
    }
    if (first) {
        buf_addf(out, "%s\"%.*s\":%s", i > 0 ? "," : "", (int)m->at[i].key.n, m->at[i].key.p,
                 others.len > 0 ? "{\"anyOf\":[" : "");
        json_add_compact(out, m->at[i].value);
        buf_add_str(out, buf_str(&others));
        buf_add_c(out, others.len > 0 ? "]}" : "");
    }
    buf_release(&others);
    return first;
}

/* Adds `properties` and `required` of all alternatives. */
static void add_merged_properties(struct buf *out, struct str schema)
{
    struct merge *m = mem_zalloc(sizeof *m);
    struct buf required = BUF_INIT(SIZE_MAX);

    m->root = schema;
    visit(m, schema, STR_NONE);
    buf_add_c(out, ",\"properties\":{");
    for (size_t i = 0; i < m->count; i++) {
        m->visits = 0;
        if (add_property(out, m, i) && visit(m, schema, m->at[i].key))
            buf_addf(&required, "%s\"%.*s\"", required.len > 0 ? "," : "", (int)m->at[i].key.n,
                     m->at[i].key.p);
    }
    buf_addf(out, "},\"required\":[%s]", buf_c(&required));
    buf_release(&required);
    free(m);
}

char *tool_parameters(struct str schema)
{
    static const char *const left_out[] = {"type", "not", "enum", "properties", "required"};
    struct buf out = BUF_INIT(SIZE_MAX);
    bool merged = false;

    for (size_t i = 0; i < ALTERNATIVES; i++)
        merged = merged || json_get(schema, alternatives[i]).p;
    buf_add_c(&out, "{\"type\":\"object\"");
    for (struct json_iter it = json_iter(schema); it.object && json_next(&it);) {
        bool leave = json_key_is(it.key, "properties") && json_type(it.value) != JSON_OBJECT;

        for (size_t i = 0; i < (merged ? 5 : 3); i++)
            leave = leave || json_key_is(it.key, left_out[i]);
        for (size_t i = 0; i < ALTERNATIVES; i++)
            leave = leave || json_key_is(it.key, alternatives[i]);
        if (leave)
            continue;
        buf_addf(&out, ",\"%.*s\":", (int)it.key.n, it.key.p);
        json_add_compact(&out, it.value);
    }
    if (merged)
        add_merged_properties(&out, schema);
    else if (json_type(json_get(schema, "properties")) != JSON_OBJECT)
        buf_add_c(&out, ",\"properties\":{}");
    buf_add_byte(&out, '}');
    return buf_detach(&out);
}

/* ---- calls ---- */

/* Begins as many jobs as may run at the same time. Returns how many are running. */
static size_t begin_some(struct tool_job *jobs, size_t count, size_t most)
{
    size_t going = 0;

    for (size_t i = 0; i < count && going < most; i++) {
        struct tool_job *job = &jobs[i];

        if (!job->done && job->began == 0) {
            job->began = time_ticks();
            job->deadline = job->timeout_ms > 0 ? job->began + job->timeout_ms : INT64_MAX;
            job->tool->kind->begin(job);
        }
        going += !job->done;
    }
    return going;
}

/* Reports the calls that are done, in their order if they run in order (`most` is 1). */
static void report_ended(struct tool_job *jobs, size_t count, size_t most,
                         const struct tool_watch *watch)
{
    for (size_t i = 0; i < count && (jobs[i].done || most > 1); i++) {
        if (!jobs[i].done || jobs[i].reported)
            continue;
        jobs[i].reported = true;
        if (watch && watch->ended)
            watch->ended(watch->arg, &jobs[i]);
    }
}

static void ask_to_end(struct tool_job *job)
{
    if (job->began != 0 && job->tool->kind->ask)
        job->tool->kind->ask(job);
}

/* Ends a job that is not done, before `until`. Its output so far follows the reason. */
static void end_job(struct tool_job *job, const char *why, int64_t until)
{
    struct buf said = BUF_INIT(TOOL_RESULT_MAX);

    if (job->began != 0)
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

/* Fills in the descriptors that running jobs wait for, from fds[1] on, and the longest time to wait
 * for them. Returns the number of descriptors. */
static size_t gather_fds(const struct tool_job *jobs, size_t count, struct pollfd *fds,
                         int64_t *wait)
{
    size_t n = 1;

    *wait = TICK_MS;
    for (size_t i = 0; i < count; i++) {
        size_t more;

        if (jobs[i].done || jobs[i].began == 0)
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
static int step_jobs(struct tool_job *jobs, size_t count, size_t most, int cancel_fd)
{
    struct pollfd fds[TOOL_PARALLEL * TOOL_FDS + 1];
    int64_t wait;
    size_t n;

    if (cancel_fd >= 0 && file_wait(cancel_fd, 0) > 0) {
        for (size_t i = 0; i < count; i++)
            if (!jobs[i].done)
                return -1;
        return 0;
    }
    if (begin_some(jobs, count, most) == 0)
        return 0;
    fds[0] = (struct pollfd){.fd = cancel_fd, .events = POLLIN};
    n = gather_fds(jobs, count, fds, &wait);
    if (poll(fds, (nfds_t)n, wait > 0 ? (int)wait : 0) > 0 && fds[0].revents)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct tool_job *job = &jobs[i];
        struct buf why = BUF_INIT(BUF_SMALL);

        if (job->done || job->began == 0)
            continue;
        job->tool->kind->step(job);
        if (job->done || time_ticks() < job->deadline)
            continue;
        if (job->overdue)
            buf_addf(&why, "the tool was stopped: %s", job->overdue);
        else
            buf_addf(&why, "the tool was stopped: it took longer than %" PRId64 ".%" PRId64 " s",
                     job->timeout_ms / 1000, job->timeout_ms % 1000 / 100);
        ask_to_end(job);
        end_job(job, buf_c(&why), time_ticks() + TOOL_GRACE_MS);
        buf_release(&why);
    }
    return 1;
}

int tool_run(struct tool_job *jobs, size_t count, int cancel_fd, const struct tool_watch *watch,
             struct err *e)
{
    size_t most = TOOL_PARALLEL;
    struct orphans orphans;
    bool processes = false;
    int64_t until;
    int going = 1;

    for (size_t i = 0; i < count; i++) {
        if (jobs[i].done)
            continue;
        processes = processes || jobs[i].tool->kind->processes;
        if (!jobs[i].tool->read_only)
            most = 1;
        buf_init(&jobs[i].result, TOOL_RESULT_MAX);
    }
    if (processes)
        orphans_begin(&orphans);
    while (going > 0) {
        report_ended(jobs, count, most, watch);
        going = step_jobs(jobs, count, most, cancel_fd);
        if (going > 0 && watch && watch->tick)
            watch->tick(watch->arg, jobs, count);
    }
    /* They end side by side. */
    until = time_ticks() + TOOL_GRACE_MS;
    for (size_t i = 0; going < 0 && i < count; i++)
        if (!jobs[i].done)
            ask_to_end(&jobs[i]);
    for (size_t i = 0; going < 0 && i < count; i++)
        if (!jobs[i].done)
            end_job(&jobs[i],
                    jobs[i].began ? "the tool was interrupted"
                                  : "the tool was not run: the turn was interrupted",
                    until);
    report_ended(jobs, count, most, watch);
    if (processes)
        orphans_end(&orphans);
    return going == 0 ? 0 : err_set(e, ERR_SIGNAL, "interrupted");
}
