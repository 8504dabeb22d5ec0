/*
 * tool - what a model may call: the declarations that go into a request, and the calls, which run
 * in order, or side by side if they only read.
 *
 * A tool is of some kind: an executable (chat/tool_exec) or a tool of an MCP server (mcp/client).
 * A kind is a table of functions over descriptors for poll(2), so that calls of all kinds run in
 * one loop. A tool that fails is not an error of the turn: the result of the call describes the
 * failure to the model.
 */
#ifndef CHATHIST_LLM_TOOL_H
#define CHATHIST_LLM_TOOL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/attachment.h"

struct tool_job;

/* The most descriptors that one call waits for. The calls of an MCP server share its connections,
 * one for each call that runs at the same time. */
#define TOOL_FDS 20
/* The most bytes of a result. The rest is dropped, and the result says so. */
#define TOOL_RESULT_MAX ((size_t)1 << 20)
/* How many bytes at the start and the end of a tool's output a result has at most, of an executable
 * those of its standard output. */
#define TOOL_HEAD_MAX ((size_t)30 << 10)
#define TOOL_TAIL_MAX ((size_t)70 << 10)
/* The default time limit of a call. */
#define TOOL_TIMEOUT_MS 120000
/* How long a call that has to end may take to end by itself. */
#define TOOL_GRACE_MS 100
/* How many calls run at the same time; further calls wait. */
#define TOOL_PARALLEL 16

struct tool_kind {
    /* Begins the call. If that fails, the job is done at once, with the reason as its result. */
    void (*begin)(struct tool_job *job);
    /* Fills in the descriptors that the call waits for and returns their number. After 0,
     * the next step follows soon. */
    size_t (*fds)(const struct tool_job *job, struct pollfd fds[TOOL_FDS]);
    /* Reads and writes without waiting. Called when a descriptor is ready, and from time to
     * time. */
    void (*step)(struct tool_job *job);
    /* Asks a call to end before it is stopped, without waiting. May be NULL. */
    void (*ask)(struct tool_job *job);
    /* Ends a call for good that is late or was interrupted, not later than `until` (time_ticks).
     * Text that it leaves in job->result follows the reason in the result. */
    void (*stop)(struct tool_job *job, int64_t until);
    bool processes; /* calls start processes, which may leave others running */
};

/* The declaration of a tool. Owned by its source. */
struct tool {
    char *name;        /* the name that the model uses: [A-Za-z0-9_-]{1,64} */
    char *description; /* may be empty */
    char *parameters;  /* the text of a JSON Schema for an object */
    const struct tool_kind *kind;
    void *source;   /* belongs to the kind */
    bool read_only; /* it says that its calls change nothing: they may run side by side */
};

struct tool_call;

/* A call. The caller zeroes it and sets the members up to timeout_ms. */
struct tool_job {
    const struct tool_call *call; /* the call of the model, for the caller; borrowed */
    const struct tool *tool;
    struct str args;               /* a JSON object; borrowed until the job is done */
    int64_t timeout_ms;            /* 0: no limit */
    struct buf result;             /* text for the model; valid UTF-8 once the job is done */
    struct attachment_list images; /* images of the result; the caller releases them */
    struct buf edits;              /* what it says that it has changed: a JSON object with
                                    * `files_modified` or `edit_results`, or empty. The caller
                                    * releases it */
    bool failed;                   /* the result describes a failure */
    bool done;
    bool reported;       /* the watch knows that it is done */
    int64_t began;       /* a time of time_ticks, set by tool_run; 0: the call has not begun */
    int64_t deadline;    /* the same; INT64_MAX: none. A kind may change it */
    const char *overdue; /* why it was brought forward: a text that lives as long; else NULL */
    void *state;         /* belongs to the kind until the job is done, then NULL */
};

/* Receives news of calls. Each function may be NULL. */
struct tool_watch {
    /* A call is done, also one that was done before or was interrupted. Calls that run in order are
     * reported in order. */
    void (*ended)(void *arg, struct tool_job *job);
    /* Called about ten times a second while calls run. */
    void (*tick)(void *arg, const struct tool_job *jobs, size_t count);
    void *arg;
};

/*
 * Runs calls until all are done; a call that is done before is not run. A call begins when the one
 * before it has ended. Only if the tools of all calls that are to be run only read, they run side
 * by side. A call that exceeds its time limit is stopped, and its result says so. Returns 0, or -1
 * with *e set (ERR_SIGNAL) when cancel_fd (-1: none) became readable: calls that are not done then
 * are stopped, and their results say that they were interrupted. Processes that the calls left
 * running are killed, in whatever session they are (orphans_end in base/process). `watch` may be
 * NULL.
 */
int tool_run(struct tool_job *jobs, size_t count, int cancel_fd, const struct tool_watch *watch,
             struct err *e);
/* For kinds: a job is done and has failed. The message replaces its result. */
void tool_fail(struct tool_job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns the first `most` bytes of a text, without a code point that would be cut in two. */
struct str tool_cut(struct str text, size_t most);
/* Adds a text. Of one with more than `head` + `tail` bytes the middle is left out: the first `head`
 * and the last `tail` bytes remain, cut between lines where one ends near and else between code
 * points, and a line between them says how much is missing. `gone` bytes are missing already after
 * the first `head` bytes. Bytes that are not UTF-8 become U+FFFD. */
void tool_add_ends(struct buf *to, struct str text, size_t head, size_t tail, uint64_t gone);
/* Reads what an object says about edits into job->edits: the members `files_modified`, an array of
 * strings, and `edit_results`, an array of objects. Returns false, and adds nothing, if it has
 * neither, if one has another type, or if the tool only reads. */
bool tool_read_edits(struct tool_job *job, struct str object);
/* Returns true if every provider accepts this name: 1 to TOOL_NAME_MAX of [A-Za-z0-9_-]. */
#define TOOL_NAME_MAX 64
bool tool_name_valid(struct str name);
/* Returns the schema of a tool's arguments in a form that every provider accepts; the caller frees
 * it. It always has a type and properties (OpenAI, LM Studio: "object schema missing properties").
 * Anthropic and OpenAI refuse alternatives at the top level (allOf, anyOf, oneOf, $ref), so that
 * their properties are merged: one with several schemas may have any of them, and required is what
 * every object needs that fits. `schema` is a JSON Schema for an object, or STR_NONE. */
char *tool_parameters(struct str schema);

#endif
