/*
 * tool_exec - tools that are executables.
 *
 * `TOOL --schema` prints the declaration: a JSON object with name, description and parameters, also
 * in OpenAI's wrapping {"type":"function","function":{…}} or with the parameters as `input_schema`
 * (Anthropic) or `inputSchema` (MCP). A call is `TOOL`, the arguments on its standard input; what
 * it prints is the result. It runs without a shell and without a terminal, in a session and process
 * group of its own that is killed when it has ended or its time is up.
 */
#ifndef CHATHIST_LLM_TOOL_EXEC_H
#define CHATHIST_LLM_TOOL_EXEC_H

#include "chathist/base/err.h"
#include "chathist/llm/tool.h"

/* How long it may take to print its declaration. */
#define TOOL_SCHEMA_MS 10000
/* The most that a result holds of the tool's output, and of what it says on standard error. */
#define TOOL_OUTPUT_MAX ((size_t)100 << 10)
#define TOOL_STDERR_MAX ((size_t)4 << 10)

struct tool_exec {
    struct tool tool;
    char *path;
    char *const *env; /* its environment; borrowed */
};

/* Asks the executable at `path`, which has a slash, for its declaration. tool_exec_release is due
 * whatever comes of it. -1: it cannot be run, or what it prints is no declaration (ERR_USAGE, names
 * the path), or cancel_fd became readable (ERR_SIGNAL). SIGPIPE is ignored by the caller. */
int tool_exec_load(struct tool_exec *t, const char *path, char *const env[], int cancel_fd,
                   struct err *e);
/* Reads a declaration into t: 0, or -1 with what is wrong with it. */
int tool_exec_declare(struct tool *t, struct str text, struct err *e);
void tool_exec_release(struct tool_exec *t);

#endif
