/*
 * tool - what a model may call: the declarations that go into a request, and the running of calls
 * side by side.
 *
 * Where a tool comes from is its kind's business: an executable (llm/tool_exec), an MCP server
 * (llm/mcp). A kind is a vtable over descriptors for poll(2), so that calls of every kind run
 * beside each other in one loop. Nothing that a tool does is an error of the turn: it is told to
 * the model as the call's result.
 */
#ifndef CHATHIST_LLM_TOOL_H
#define CHATHIST_LLM_TOOL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

struct tool_job;

/* The most descriptors that one call waits for. */
#define TOOL_FDS 3
/* The most that a result holds; what comes beyond it is left out, and the result says so. */
#define TOOL_RESULT_MAX ((size_t)1 << 20)
/* How long a call may take unless somebody says otherwise. */
#define TOOL_TIMEOUT_MS 120000
/* What a call that is to end gets to do so by itself. */
#define TOOL_GRACE_MS 100
/* So many calls are under way at once; the others wait for their turn. */
#define TOOL_PARALLEL 16

struct tool_kind {
    /* Begins the call. One that cannot be begun is done at once, with a result that says why. */
    void (*begin)(struct tool_job *job);
    /* What it waits for. Returns their number; none: the next step is due soon. */
    size_t (*fds)(const struct tool_job *job, struct pollfd fds[TOOL_FDS]);
    /* Does what can be done without waiting; called whenever one of them is ready, and from time to
     * time. */
    void (*step)(struct tool_job *job);
    /* Asks a call to end that is soon to be stopped, and does not wait for it; NULL: there is
     * nobody to ask. */
    void (*ask)(struct tool_job *job);
    /* Ends a call that is not done, for good, at `until` (of clock_ticks) at the latest: its time
     * is up or the turn was interrupted. What it leaves in the result is told to the model behind
     * the reason. */
    void (*stop)(struct tool_job *job, int64_t until);
    bool processes; /* a call is a process of its own, with whatever it starts */
};

/* A tool that the model is told of. Owned by where it comes from. */
struct tool {
    char *name;        /* as the model calls it: [A-Za-z0-9_-]{1,64} */
    char *description; /* "": none */
    char *parameters;  /* a JSON Schema object as text */
    const struct tool_kind *kind;
    void *source; /* the kind's own */
};

/* A call that is under way. The caller sets the first three. */
struct tool_job {
    const struct tool *tool;
    struct str args;    /* a JSON object; borrowed until it is done */
    int64_t timeout_ms; /* 0: none */
    struct buf result;  /* text for the model, made of valid UTF-8 when it is done */
    bool failed;        /* the result tells of a failure */
    bool done;
    int64_t deadline; /* of clock_ticks; 0: not begun. Set by tool_run */
    void *state;      /* the kind's own while it is not done; NULL afterwards */
};

/* Runs the calls side by side, begun in their order, until each is done; one whose time is up is
 * stopped, and its result says so. -1 (ERR_SIGNAL) when cancel_fd became readable: what is not done
 * then is stopped and failed, its result says that it was interrupted. Processes that the calls left
 * running, in whatever session, are killed (base/process). */
int tool_run(struct tool_job *jobs, size_t count, int cancel_fd, struct err *e);
/* Ends a job for its kind: done, failed, with the message instead of what the result held. */
void tool_fail(struct tool_job *job, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first `most` bytes of a text, less a code point that would be cut in two. */
struct str tool_cut(struct str text, size_t most);
/* Is it a name that every provider takes? */
bool tool_name_valid(struct str name);

#endif
