/*
 * mcp_servers - the MCP servers of a conversation: which ones the user wants, their start, their
 * tools and their end.
 *
 * A server is wanted by --mcp, as
 *     NAME            the server that `mcp.NAME = COMMAND` or `mcp.NAME.url = URL` in the user
 *                     configuration defines
 *     NAME=COMMAND    a command
 *     NAME=URL        a server that is running, at an http or https URL
 *     URL             the same, with a name made from its host
 * or, without --mcp, by its name in `mcp = NAME ...` in the user configuration. -T SERVER:TOOL also
 * wants a server that the configuration defines. Of a server's tools the model gets those that -T
 * names, else those that `mcp.NAME.tools` names, else all.
 */
#ifndef CHATHIST_CHAT_MCP_SERVERS_H
#define CHATHIST_CHAT_MCP_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/chat/chat_args.h"
#include "chathist/chat/tools.h"
#include "chathist/cli/config.h"
#include "chathist/mcp/client.h"

struct mcp_servers {
    bool open;
    /* The caller sets these before mcp_servers_open: */
    bool quiet, verbose;
    const struct buf *session; /* the id of the present one, which may change; borrowed until
                                * mcp_servers_close */
    /* What the servers say about the use of their tools, for the system prompt, the same from
     * mcp_servers_open to mcp_servers_close. */
    struct buf instructions;
    /* private */
    const char *self;          /* the name that chat was started by */
    struct mcp_config *wanted; /* configurations in the order of `at` */
    size_t wanted_count, wanted_cap;
    struct mcp_watch watch;
    struct mcp_server **at;
    size_t count, cap;
};

/* Starts the servers that are wanted, waits until their tools are known, and adds these to the
 * toolbox. They get names that differ from each other and from those of the executables in it. The
 * `secrets` are kept out of the servers' environment. If a server does not start or lacks a tool
 * that -T names, or a signal comes, this function ends the servers and the program; the caller must
 * not catch signals. Unless m->quiet, it reports servers that are slow or lack tools, and if
 * m->verbose what servers log. *m must not move afterwards. */
void mcp_servers_open(struct mcp_servers *m, const struct chat_args *args, const struct config *c,
                      const char *const *secrets, struct toolbox *b);
/* Call this before a request: reads whether tools have changed and lists them again. Ends early
 * when cancel_fd becomes readable. Returns true if tools in the toolbox were replaced; the old ones
 * are freed. */
bool mcp_servers_renew(struct mcp_servers *m, struct toolbox *b, int cancel_fd);
/* Ends the servers; `hurry` if a signal has come already. A signal that comes meanwhile makes it
 * hurry, and ends the program when no server is left. May be called twice, and without
 * mcp_servers_open. The caller must not catch signals. */
void mcp_servers_close(struct mcp_servers *m, bool hurry);

#endif
