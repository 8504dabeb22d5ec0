/*
 * client - talks to MCP servers (Model Context Protocol): starts programs on this machine or
 * connects to servers at URLs, lists their tools, and calls the tools as llm/tool does.
 *
 *     mcp_start or mcp_open -> mcp_await -> mcp_name_tools -> (mcp_renew -> tool_run ...) ...
 *     -> mcp_end
 *
 * Sources, all at modelcontextprotocol.io/specification:
 *   2025-11-25/basic/transports        stdio: one message a line in both directions; the server's
 *                                      standard error is a log. Streamable HTTP: see
 *                                      mcp/streamable_http.c
 *   2024-11-05/basic/transports        HTTP with SSE, the transport before Streamable HTTP
 *   2025-11-25/basic/lifecycle         initialize, the choice of protocolVersion, the notification
 *                                      initialized; how a server is ended
 *   2025-11-25/server/tools            tools/list, tools/call, `tools` in the server's
 *                                      capabilities, notifications/tools/list_changed
 *   2025-11-25/server/utilities/logging      notifications/message: level, logger, data
 *   2025-11-25/server/utilities/pagination   cursor, nextCursor
 *   2025-11-25/basic/utilities/cancellation  notifications/cancelled; late answers are ignored
 *   2025-11-25/basic/utilities/ping    is answered with an empty result
 *   2026-07-28/basic/versioning        this revision has no initialize: a server that refuses
 *                                      initialize is asked with server/discover, and each request
 *                                      carries the version and the capabilities in `_meta`. Over
 *                                      HTTP server/discover comes first.
 * Revisions 2024-11-05, 2025-03-26 and 2025-06-18 are spoken, too; the parts that are used here are
 * the same in them.
 *
 * Messages of a server are read while it gets ready, in mcp_renew, and while one of its tools is
 * called. Between these they wait in the pipe. A server at a URL can only send messages in the
 * response to one of ours, because no stream is kept open for others.
 *
 * This client offers nothing to servers: it answers requests for roots, sampling and elicitation
 * with "method not found". Progress notifications are ignored and do not prolong a call. Tools that
 * can only be called as tasks (`taskSupport` is "required") are not offered.
 */
#ifndef CHATHIST_MCP_CLIENT_H
#define CHATHIST_MCP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/tool.h"
#include "chathist/mcp/server.h"

/* How long a server may take until its tools are known. npx and uvx download it first. */
#define MCP_START_MS ((int64_t)60 * 1000)
/* How long a server may take to list tools that have changed. */
#define MCP_RENEW_MS ((int64_t)10 * 1000)
/* After this time a notice says that the program waits for a server. */
#define MCP_SLOW_MS ((int64_t)1000)
/* How long servers may take to end by themselves. The user waits for this. */
#define MCP_GRACE_MS ((int64_t)500)

/* The most tools that a server may have, and bytes that their names, descriptions and schemas may
 * have. */
#define MCP_TOOLS_MAX 1000
#define MCP_LIST_MAX ((size_t)8 << 20)
/* The most bytes that the result of a call keeps of what the server sent. */
#define MCP_RESULT_MAX ((size_t)100 << 10)
/* The most notifications and requests that a server may send without answering a request. */
#define MCP_UNASKED_MAX 10000
/* The longest name of a server, so that half of the name of a tool is the tool's own. */
#define MCP_SERVER_NAME_MAX 30

/* Is this 1 to MCP_SERVER_NAME_MAX of the characters [A-Za-z0-9_-]? */
bool mcp_server_name_valid(struct str name);

/* Starts a server under a valid name. env is its environment and cwd its working directory
 * (base/process). `watch` is borrowed until mcp_end; NULL: no news. The caller ignores
 * SIGPIPE. Returns 0, or -1 with *e set (ERR_LIMIT). Call mcp_end in both cases. */
int mcp_start(struct mcp_server *s, const char *name, char *const argv[], char *const env[],
              const char *cwd, const struct mcp_watch *watch, struct err *e);
/* A server at a URL, with Streamable HTTP. */
struct mcp_remote {
    const char *url;                  /* http or https */
    const struct http_limits *limits; /* for connect_ms and the trusted certificates */
    const struct ask_header *headers; /* sent with each request, to this server only */
    size_t headers_count;
};
/* Like mcp_start, for a server at a URL; an error is found later. *r is borrowed for the call. */
void mcp_open(struct mcp_server *s, const char *name, const struct mcp_remote *r,
              const struct mcp_watch *watch);
/* Waits until the tools of all servers are known. Returns 0, or -1 with *e set: ERR_LIMIT if one
 * failed or was not ready within `ms` milliseconds, ERR_SIGNAL if cancel_fd (-1: none) became
 * readable. */
int mcp_await(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd,
              struct err *e);
/* Reads what the servers have sent, without waiting, and then asks those whose tools have changed
 * for a new list. That takes `ms` milliseconds at most, and ends when cancel_fd becomes readable.
 * No call may be under way. Returns true if some list was replaced; its tools have no names yet,
 * and the tools of the old list are freed. After an error the old list stays, and the watch gets
 * the reason. */
bool mcp_renew(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd);
/* Names the tools of a server `server__tool`. A character that is not in [A-Za-z0-9_-] becomes `_`,
 * and a name of more than 64 characters is cut. A name that one of the `others` or a tool of this
 * server has already gets `_2`, `_3` and so on at its end. */
void mcp_name_tools(struct mcp_server *s, const struct tool *const *others, size_t others_count);
/* Ends all servers side by side: closes their input, waits up to `grace_ms`, sends SIGTERM, waits
 * up to `grace_ms` again, and kills them. Each wait is cut to CHILD_HURRY_MS once hurry_fd (-1:
 * none) becomes readable. Frees their tools. */
void mcp_end(struct mcp_server *const *servers, size_t count, int64_t grace_ms, int hurry_fd);

/*
 * Adds the text of a CallToolResult to out. Blocks of text and resources with a text are added as
 * they are, with a newline between blocks. Any other block becomes a line in brackets that
 * describes it. Without any text the structured content is added as JSON. *failed is set if the
 * tool reports an error or did not finish. Text beyond the maximum of out is dropped, and a last
 * line says how much. Images that providers take are also added to `images` (may be NULL), from
 * blocks of type image and from embedded resources.
 */
void mcp_result_add(struct buf *out, struct attachment_list *images, struct str result,
                    bool *failed);

#endif
