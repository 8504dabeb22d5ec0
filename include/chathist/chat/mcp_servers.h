/*
 * mcp_servers - the MCP servers of a conversation: started side by side, and ended with it.
 */
#ifndef CHATHIST_CHAT_MCP_SERVERS_H
#define CHATHIST_CHAT_MCP_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/cli/config.h"
#include "chathist/llm/mcp.h"
#include "chathist/llm/tool.h"

struct mcp_servers {
    const struct tool **tools; /* of all of them, for struct ask */
    size_t tools_count, tools_cap;
    bool open;
    bool quiet, verbose; /* set by the caller before they are opened */
    /* private */
    struct mcp_watch watch;
    struct mcp_server **at;
    size_t count, cap;
};

/* Starts those that `options` or the configuration want (front/mcp_wish), and waits until their
 * tools are known; these are named so that none has the name of one of the `others`. `key` (NULL:
 * none) is kept from them. Ends the program, and the servers before it, when one does not start or
 * a signal comes; nothing of the caller's may catch signals. Tells of a server that is slow or has
 * no tools, and when verbose what servers log, unless quiet. *m stays where
 * it is. */
void mcp_servers_open(struct mcp_servers *m, const char *const *options, const struct config *c,
                      const char *key, const struct tool *const *others, size_t others_count);
/* Before a request: hears whether tools have changed, and asks for them; until cancel_fd becomes
 * readable. true: `tools` is another list, and what the old one held is gone. */
bool mcp_servers_renew(struct mcp_servers *m, const struct tool *const *others, size_t others_count,
                       int cancel_fd);
/* Ends them, in a hurry when a signal has come already. One that comes meanwhile makes it hurry and
 * then ends the program, so that no server is left behind. May be called again, and for what was
 * never opened; nothing of the caller's may catch signals. */
void mcp_servers_close(struct mcp_servers *m, bool hurry);

#endif
