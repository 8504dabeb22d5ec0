/*
 * tool_exec - tools that are executables: their declarations and their calls (llm/tool).
 */
#ifndef CHATHIST_CHAT_TOOL_EXEC_H
#define CHATHIST_CHAT_TOOL_EXEC_H

#include "chathist/base/error.h"
#include "chathist/llm/tool.h"

/* How long an executable may take to print its declaration. */
#define TOOL_SCHEMA_MS 10000
/* How many bytes at the end of its standard error a result has at most. */
#define TOOL_STDERR_MAX ((size_t)4 << 10)

/*
 * `TOOL --schema` prints the declaration: a JSON object with name, description and parameters. The
 * object may be wrapped as OpenAI does, {"type":"function","function":{...}}, and the parameters
 * may be called `input_schema` (Anthropic) or `inputSchema` (MCP). With `"read_only":true` the tool
 * says that its calls change nothing.
 *
 * A call runs `TOOL` with the arguments on its standard input; the result is its standard output.
 * If the last line of that is a JSON object with `files_modified`, `edit_results` or both and no
 * other member, it goes to job->edits and not into the result (tool_read_edits).
 * It runs as a child (base/process), without a shell and without a terminal.
 */
struct tool_exec {
    struct tool tool;
    char *path;
    char *const *env; /* its environment; borrowed */
};

/* Reads the declaration of an executable. Its `path` has a slash. The caller ignores SIGPIPE.
 * Returns 0, or -1 with *e set: ERR_USAGE if it cannot be run or prints something else, ERR_SIGNAL
 * if cancel_fd became readable. Call tool_exec_release in both cases. */
int tool_exec_load(struct tool_exec *t, const char *path, char *const env[], int cancel_fd,
                   struct err *e);
/* Parses a declaration into t. Returns 0, or -1 with *e set. */
int tool_exec_declare(struct tool *t, struct str text, struct err *e);
void tool_exec_release(struct tool_exec *t);

#endif
