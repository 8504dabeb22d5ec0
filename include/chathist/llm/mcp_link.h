/*
 * mcp_link - a server process at the other end of its pipes: JSON-RPC messages out and in, without
 * waiting, and what it says on standard error.
 *
 *     mcp_link_start -> (mcp_link_fds -> poll -> mcp_link_step) … -> mcp_link_end
 *
 * It knows no methods: llm/mcp does. What goes wrong with the process or its output breaks the link
 * for good; `fault` then tells why, with the end of what the server said on standard error.
 */
#ifndef CHATHIST_LLM_MCP_LINK_H
#define CHATHIST_LLM_MCP_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/process.h"
#include "chathist/base/err.h"
#include "chathist/llm/jsonrpc.h"

/* The most descriptors that it waits for. */
#define MCP_LINK_FDS 3
/* The most that waits to be written: a server that does not read is broken. */
#define MCP_LINK_OUT_MAX ((size_t)64 << 20)

struct mcp_link {
    const char *name; /* for messages; borrowed */
    struct child child;
    struct jsonrpc in;
    struct buf out;   /* not written yet: add messages with jsonrpc_add_… */
    struct buf log;   /* the end of its standard error */
    struct err fault; /* why it is broken; ERR_NONE: it is not */
};

/* Starts the server; fn gets its messages. -1: it cannot be started. mcp_link_end is due whatever
 * comes of it. The caller ignores SIGPIPE. */
int mcp_link_start(struct mcp_link *l, const char *name, char *const argv[], char *const env[],
                   const char *cwd, jsonrpc_fn *fn, void *arg, struct err *e);
/* What it waits for; returns their number, 0 when it is broken. */
size_t mcp_link_fds(const struct mcp_link *l, struct pollfd fds[MCP_LINK_FDS]);
/* Writes and reads what can be without waiting. fn may break the link by its -1. */
void mcp_link_step(struct mcp_link *l);
bool mcp_link_broken(const struct mcp_link *l);
/* Breaks it: ends the process and sets the fault, `MCP server 'name' …`. */
void mcp_link_break(struct mcp_link *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends the server, unless somebody has by child_end_all, which does it as
 * modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle says ("Shutdown": close the
 * input, wait, SIGTERM, SIGKILL). */
void mcp_link_end(struct mcp_link *l);

#endif
