/*
 * server - an MCP server as mcp/client and its transports see it: its tools, the calls that are
 * under way, and the state of the protocol.
 */
#ifndef CHATHIST_MCP_SERVER_H
#define CHATHIST_MCP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/llm/tool.h"
#include "chathist/mcp/jsonrpc.h"

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
    int64_t id; /* of the request; 0: it waits until the server is ready */
    struct tool_job *job;
    bool again; /* it was sent once, in a session that the server had ended */
};

enum mcp_news {
    MCP_SLOW,       /* the server has been getting ready, or listing its tools, for MCP_SLOW_MS */
    MCP_MESSAGE,    /* the server logs `level logger text` */
    MCP_LEFT_OUT,   /* a tool is not offered: its inputSchema is not for an object, and providers
                   * would refuse the whole request; the text is its name */
    MCP_BAD_HEADER, /* a tool is not offered: an x-mcp-header of its inputSchema breaks the rules of
                     * 2026-07-28/basic/transports/streamable-http; the text is its name */
    MCP_LIST_LOST,  /* changed tools cannot be listed for this reason; the old list stays */
};

/* Receives news of a server. `text` is valid UTF-8 but may hold control characters. It is
 * valid during the call. */
struct mcp_watch {
    void (*tell)(void *arg, const char *server, enum mcp_news news, struct str text);
    void *arg;
};

struct mcp_transport; /* mcp/transport */

/* A server. The struct must not move after mcp_start. */
struct mcp_server {
    char *name; /* owned */
    struct mcp_list list;
    struct buf instructions; /* for the model, how to use the tools, up to MCP_INSTRUCTIONS_MAX
                              * bytes of UTF-8; empty: none */
    /* private: the transport */
    const struct mcp_transport *transport;
    void *link; /* belongs to the transport */
    struct jsonrpc in;
    struct err fault; /* why the server cannot be used any more, for good */
    /* private: the protocol */
    const struct mcp_watch *watch;
    struct mcp_list coming; /* the pages of a list that is not complete */
    bool listed;            /* `list` came from the server */
    bool changed;           /* the server says that its tools have changed */
    bool renewed;           /* `list` was replaced */
    bool told_slow;
    enum mcp_state state;
    const char *revision; /* that is spoken; NULL: not known yet */
    bool stateless;       /* it has no initialize: each request carries version and capabilities */
    int greetings;        /* how many of server/discover and initialize were tried */
    bool asked_twice;     /* server/discover was repeated */
    int unasked;          /* messages since its last answer */
    int64_t last_id;      /* of our requests: 1, 2, ... */
    int64_t awaited;      /* the request whose answer getting ready depends on; 0: none */
    struct mcp_call *calls; /* that have not been answered */
    size_t calls_count, calls_cap;
    struct buf refused; /* why it does not begin */
    size_t pages;
};

#endif
