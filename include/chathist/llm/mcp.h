/*
 * mcp - a client of MCP servers (Model Context Protocol) that are programs on this machine: starts
 * one, learns which tools it has, and calls them as llm/tool asks.
 *
 *     mcp_start -> mcp_await -> mcp_list_name -> (mcp_renew -> tool_run …) … -> mcp_end
 *
 * Protocol facts, all from modelcontextprotocol.io/specification:
 *   2025-11-25/basic/transports        stdio: a message a line, both ways; stderr is a log
 *   2025-11-25/basic/lifecycle         initialize, protocolVersion agreed upon, then the
 *                                      notification initialized; how a server is ended
 *   2025-11-25/server/tools            tools/list, tools/call; `tools` in the server's
 *                                      capabilities; notifications/tools/list_changed
 *   2025-11-25/server/utilities/logging      notifications/message: level, logger, data
 *   2025-11-25/basic/utilities/progress      notifications/progress, which nobody asked for
 *   2025-11-25/server/utilities/pagination   cursor, nextCursor
 *   2025-11-25/basic/utilities/cancellation  notifications/cancelled; late answers are ignored
 *   2025-11-25/basic/utilities/ping    is answered with an empty result
 *   2026-07-28/basic/versioning        from this revision on there is no initialize: a server that
 *                                      refuses it is asked with server/discover, and each request
 *                                      carries version and capabilities in `_meta`
 * Revisions 2024-11-05, 2025-03-26 and 2025-06-18 are spoken, too: what is used here is the same.
 *
 * A server is listened to while it gets ready, in mcp_renew, and while a call of one of its tools
 * is under way; in between, what it sends waits.
 *
 * Nothing is offered to servers: requests for roots, sampling or elicitation are answered with
 * "method not found". Progress is ignored: it does not prolong a call. A server's `instructions`
 * are not passed on. Tools that can only be called as tasks (`taskSupport` of "required") are left
 * out.
 */
#ifndef CHATHIST_LLM_MCP_H
#define CHATHIST_LLM_MCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/err.h"
#include "chathist/llm/mcp_link.h"
#include "chathist/llm/mcp_list.h"
#include "chathist/llm/tool.h"

/* How long servers may take to go by themselves: who has the answer waits for that. */
#define MCP_GRACE_MS ((int64_t)500)

/* The most that the result of a call holds of what the server gave. */
#define MCP_RESULT_MAX ((size_t)100 << 10)

enum mcp_state {
    MCP_GREETING,    /* initialize was sent */
    MCP_DISCOVERING, /* server/discover was sent */
    MCP_LISTING,     /* tools/list was sent */
    MCP_READY,
};

/* A call that is under way. */
struct mcp_call {
    int64_t id; /* of the request */
    struct tool_job *job;
};

enum mcp_news {
    MCP_SLOW,      /* it has been getting ready, or listing its tools, for MCP_SLOW_MS */
    MCP_MESSAGE,   /* what it logs: `level logger text` */
    MCP_LEFT_OUT,  /* the name of a tool whose arguments are no object: providers refuse it */
    MCP_LIST_LOST, /* its tools have changed, but cannot be listed: why; the old list stays */
};

/* Is told what happens beside what was asked for. `text` is UTF-8 with anything in it, and valid
 * during the call. */
struct mcp_watch {
    void (*tell)(void *arg, const char *server, enum mcp_news news, struct str text);
    void *arg;
};

/* A server. Does not move while it is at work. */
struct mcp_server {
    char *name; /* owned */
    struct mcp_list list;
    /* private */
    const struct mcp_watch *watch;
    struct mcp_list coming; /* the pages of the list so far */
    bool listed;            /* `list` is one that it gave */
    bool changed;           /* it says that there is another one */
    bool renewed;           /* `list` is another one */
    bool told_slow;
    struct mcp_link link;
    enum mcp_state state;
    bool stateless;         /* it has no initialize: each request carries what it needs */
    int64_t last_id;        /* of our requests: 1, 2, … */
    int64_t awaited;        /* the request that getting ready waits for; 0: none */
    struct mcp_call *calls; /* whose answers have not come */
    size_t calls_count, calls_cap;
    struct buf refused; /* what it said to initialize */
    size_t pages;
};

/* Starts a server under a name that mcp_server_name_valid accepts, with the environment env and in
 * the directory cwd (base/process). `watch` is borrowed until mcp_end; NULL: nobody. -1 (ERR_LIMIT): there is no such
 * program. mcp_end is due whatever comes of it. */
int mcp_start(struct mcp_server *s, const char *name, char *const argv[], char *const env[],
              const char *cwd, const struct mcp_watch *watch, struct err *e);
/* Ends them: all are asked to go at once, and get `grace_ms` together to go by themselves, then as
 * much after SIGTERM; CHILD_HURRY_MS once `hurry_fd` (-1: none) can be read. Their tools are
 * freed. */
void mcp_end(struct mcp_server *const *servers, size_t count, int64_t grace_ms, int hurry_fd);

/* For llm/mcp_await: all that can be done without waiting, calls of a server that broke fail; asks
 * for the list of its tools; ready, with the list that it had, if any; the same, and why there is
 * no other one. */
void mcp_step(struct mcp_server *s);
void mcp_list_again(struct mcp_server *s);
void mcp_settle(struct mcp_server *s);
void mcp_lose_list(struct mcp_server *s, const char *why);
void mcp_tell(const struct mcp_server *s, enum mcp_news news, struct str text);

/* How the tools are called; in llm/tool's terms. */
extern const struct tool_kind mcp_kind;

#endif
