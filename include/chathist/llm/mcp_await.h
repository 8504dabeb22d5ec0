/*
 * mcp_await - what is waited for of MCP servers (llm/mcp): that they get ready, and that they tell
 * their tools anew when these have changed.
 */
#ifndef CHATHIST_LLM_MCP_AWAIT_H
#define CHATHIST_LLM_MCP_AWAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/err.h"
#include "chathist/llm/mcp.h"

/* How long a server may take until its tools are known: npx and uvx fetch it first. */
#define MCP_START_MS ((int64_t)60 * 1000)
/* How long to tell a list that has changed. */
#define MCP_RENEW_MS ((int64_t)10 * 1000)
/* From then on the user is told that it is waited for. */
#define MCP_SLOW_MS ((int64_t)1000)

/* Waits until the tools of all of them are known, side by side. -1: ERR_LIMIT with the message of
 * one that failed or was not ready in `ms` milliseconds, ERR_SIGNAL when cancel_fd (-1: none)
 * became readable. */
int mcp_await(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd,
              struct err *e);
/* Listens to them without waiting; those that say that their tools have changed are then asked for
 * the list, side by side, for `ms` milliseconds at the most or until cancel_fd becomes readable.
 * true: some have another list now, whose tools have no names yet; those of the old one are freed.
 * No call is under way. What goes wrong leaves the old list, and is told to the watch. */
bool mcp_renew(struct mcp_server *const *servers, size_t count, int64_t ms, int cancel_fd);

#endif
