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
 * A message is one of JSON-RPC 2.0 (jsonrpc.org/specification). Batches of them, which 2025-03-26
 * alone has, and HTTP+SSE, the transport before Streamable HTTP, are not spoken.
 * Revisions 2024-11-05, 2025-03-26 and 2025-06-18 are spoken, too; the parts that are used here are
 * the same in them.
 *
 * Messages of a server are read while it gets ready, in mcp_renew, and while one of its tools is
 * called. Between these they wait in the pipe. A server at a URL can only send messages in the
 * response to one of ours, because no stream is kept open for others.
 *
 * This client offers nothing to servers: it answers requests for roots, sampling and elicitation
 * with "method not found". A progress notification of a call starts its time limit again. Tools
 * that can only be called as tasks (`taskSupport` is "required") are not offered.
 */
#ifndef CHATHIST_MCP_CLIENT_H
#define CHATHIST_MCP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/llm/http.h"
#include "chathist/llm/provider.h"
#include "chathist/llm/tool.h"

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
/* The most notifications and requests that a server may send without answering a request. */
#define MCP_UNASKED_MAX 10000
/* The longest name of a server, so that half of the name of a tool is the tool's own. */
#define MCP_SERVER_NAME_MAX 30

/* The longest message of a server, in bytes. A longer one makes the server unusable. */
#define MCP_MESSAGE_MAX ((size_t)16 << 20)
/* The most bytes that may wait to be written: a server that does not read has failed. */
#define MCP_OUT_MAX ((size_t)64 << 20)
/* How much of a server's instructions is kept, in bytes. */
#define MCP_INSTRUCTIONS_MAX ((size_t)4 << 10)

enum mcp_state {
    MCP_GREETING,    /* initialize was sent */
    MCP_DISCOVERING, /* server/discover was sent */
    MCP_LISTING,     /* tools/list was sent */
    MCP_READY,
};

struct mcp_tool {
    struct tool tool; /* its name is NULL before mcp_name_tools; `source` points to this struct */
    struct mcp_server *server;
    char *name; /* the name that the server knows; owned */
};

struct mcp_list {
    struct mcp_tool **tools; /* each is owned */
    size_t count, cap;
    size_t bytes;
};

/* A call that has not been answered. */
struct mcp_call {
    int64_t id; /* the request's id; 0: it waits until the server is ready */
    struct tool_job *job;
    bool again; /* it was sent once, in a session that the server had ended */
};

enum mcp_news {
    MCP_SLOW,    /* the server has been getting ready, or listing its tools, for MCP_SLOW_MS */
    MCP_LOG,     /* the server logs `level logger text` */
    MCP_WARNING, /* a whole message: a tool is not offered, because providers would refuse the
                  * request with it or it breaks the rules of the protocol; or changed tools cannot
                  * be listed, and the old ones stay */
};

/* Receives news of a server. `text` is valid UTF-8 but may hold control characters. It is
 * valid during the call. */
struct mcp_watch {
    void (*tell)(void *arg, const char *server, enum mcp_news news, struct str text);
    void *arg;
};

/* A server. The struct must not move after mcp_start. */
struct mcp_server {
    char *name; /* owned */
    struct mcp_list list;
    struct buf instructions; /* for the model, how to use the tools, up to MCP_INSTRUCTIONS_MAX
                              * bytes of UTF-8; empty: none */
    /* The id of a session, which each call names in its `_meta` (MCP_SESSION_KEY in mcp/server.h).
     * The caller sets it after mcp_start for a server of ours; NULL: none. Borrowed. */
    const struct buf *session;
    /* private: the transport */
    const struct mcp_transport *transport;
    void *link;       /* belongs to the transport */
    size_t noise;     /* how much of what it sent was no message */
    struct buf shown; /* the beginning of the first of that, as text for an error */
    struct err fault; /* why the server cannot be used any more, for good */
    /* private: the protocol */
    const struct mcp_watch *watch;
    struct mcp_list coming; /* the pages of a list that is not complete */
    bool listed;            /* `list` came from the server */
    bool changed;           /* the server says that its tools have changed */
    bool renewed;           /* `list` was replaced */
    bool told_slow;
    enum mcp_state state;
    const char *revision; /* the revision that is spoken; NULL: not known yet */
    bool stateless;       /* it has no initialize: each request carries version and capabilities */
    int greetings;        /* how many of server/discover and initialize were tried */
    bool asked_twice;     /* server/discover was repeated */
    size_t wrong_ids;     /* answers with the id of no request since the calls under way began */
    int unasked;          /* messages since its last answer, or about a second of progress */
    int64_t progressed;   /* time_ticks when progress last set that to 0 */
    int64_t last_id;      /* the id of our last request: 1, 2, ... */
    int64_t awaited;      /* the request whose answer getting ready depends on; 0: none */
    struct mcp_call *calls; /* calls that have not been answered */
    size_t calls_count, calls_cap;
    struct buf refused;      /* why it does not begin */
    struct hash_map cursors; /* cursors that were asked for in `coming`, as JSON */
};

/* Returns whether this is 1 to MCP_SERVER_NAME_MAX of the characters [A-Za-z0-9_-]. */
bool mcp_server_name_valid(struct str name);

/* Starts a server under a valid name. env is its environment and cwd its working directory
 * (base/process). `watch` is borrowed until mcp_end; NULL: no news. The caller ignores
 * SIGPIPE. Returns 0, or -1 with *e set (ERR_LIMIT). Call mcp_end in both cases. */
int mcp_start(struct mcp_server *s, const char *name, char *const argv[], char *const env[],
              const char *cwd, const struct mcp_watch *watch, struct err *e);
/* A server at a URL, with Streamable HTTP. What it points to is borrowed until mcp_end. */
struct mcp_remote {
    const char *url;                  /* http or https */
    struct http_limits limits;        /* limits of each request; only its idle_ms is not used */
    const struct ask_header *headers; /* sent with each request, to this server only */
    size_t headers_count;
};
/* Like mcp_start, for a server at a URL; an error is found later. */
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
/* Names the tools that have no name yet `server__tool`. A character that is not in [A-Za-z0-9_-]
 * becomes `_`, and a name of more than 64 characters is cut. A name that one of the `others` or
 * another tool of the servers has already gets `_2`, `_3` and so on at its end. */
void mcp_name_tools(struct mcp_server *const *servers, size_t count,
                    const struct tool *const *others, size_t others_count);
/* Ends all servers side by side: closes their input, waits up to `grace_ms`, sends SIGTERM, waits
 * up to `grace_ms` again, and kills them. Each wait is cut to CHILD_HURRY_MS once hurry_fd (-1:
 * none) becomes readable. Frees their tools. */
void mcp_end(struct mcp_server *const *servers, size_t count, int64_t grace_ms, int hurry_fd);

/*
 * Reads a CallToolResult into a job and ends the job. Blocks of text and resources with a text
 * are added to its result unchanged, with a newline between blocks. Any other block becomes a
 * line in brackets that describes it. Without any text the structured content is added as JSON. A
 * long text is shortened like that of an executable (tool_add_ends). If the tool reports an error
 * or did not finish, the result begins with `the tool failed`. Images that providers take are added
 * to job->images, from blocks of type image and from embedded resources. Of a tool that succeeded,
 * job->edits gets the structured content if that has the form of tool_read_edits, otherwise the
 * paths of links (resource_link) to file:// URIs as the files that it has modified.
 */
void mcp_result_read(struct tool_job *job, struct str result);

#endif
