/*
 * mcp_transport.h: what a transport of an MCP server has that needs no descriptors.
 */
#ifndef CHATHIST_TESTS_UNIT_MCP_TRANSPORT_H
#define CHATHIST_TESTS_UNIT_MCP_TRANSPORT_H

#include "../../lib/mcp/client.h"

static size_t no_fds(const struct mcp_server *s, struct pollfd fds[TOOL_FDS])
{
    (void)s;
    (void)fds;
    return 0;
}

static void no_step(struct mcp_server *s)
{
    (void)s;
}

#endif
