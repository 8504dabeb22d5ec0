/*
 * server - an MCP server on standard input and output, which offers tools.
 *
 * Sources, all at modelcontextprotocol.io/specification:
 *   2025-11-25/basic/transports   stdio: one message a line in both directions
 *   2025-11-25/basic/lifecycle    initialize: the client's revision if it is known, else the newest
 *   2025-11-25/server/tools       tools/list, tools/call; what a tool cannot do is a result with
 *                                 isError, what is wrong with the request is an error
 *   2026-07-28/basic/versioning   server/discover; requests name their revision in `_meta`, and an
 *                                 unknown one is error -32022
 *   2026-07-28/server/utilities/caching   ttlMs and cacheScope in lists
 * and jsonrpc.org/specification. Revisions 2024-11-05, 2025-03-26 and 2025-06-18 are spoken, too.
 * A batch of messages, which a server of 2025-03-26 must take (2025-03-26/basic), is answered in
 * each of them.
 *
 * Requests are answered in turn. What the client wants to cancel has been answered by then.
 */
#ifndef CHATHIST_MCP_SERVER_H
#define CHATHIST_MCP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* In the `_meta` of a call of chat: the id of the session that asks. */
#define MCP_SESSION_KEY "chathist/session"

/* A tool. `schema` is the JSON Schema of its arguments. All tools only read. */
struct mcp_offer {
    const char *name, *title, *description, *schema;
};

struct mcp_service {
    const char *name, *version;
    const char *instructions; /* what the model is told of the server */
    const struct mcp_offer *tools;
    size_t tools_count;
    /* Calls tool number `tool` with a JSON object. `meta` is what the client says of the call
     * besides, JSON or STR_NONE. Adds the text of the result, or what the model can do about the
     * failure. Returns whether it succeeded. */
    bool (*call)(void *arg, size_t tool, struct str args, struct str meta, struct buf *text);
    void *arg;
};

/* Answers what comes from `in` until its end. Returns 0, or -1 with *e set if it cannot be read or
 * `out` cannot be written. */
int mcp_serve(const struct mcp_service *s, int in, int out, struct err *e);

#endif
