/*
 * mcp_list - the tools of an MCP server: read from the pages of its list, and named for the model.
 *
 * Source: modelcontextprotocol.io/specification/2025-11-25/server/tools ("Listing Tools", "Tool
 * Names").
 */
#ifndef CHATHIST_LLM_MCP_LIST_H
#define CHATHIST_LLM_MCP_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/llm/tool.h"

/* The most tools that a server may have, and bytes of their names, descriptions and schemas. */
#define MCP_TOOLS_MAX 1000
#define MCP_LIST_MAX ((size_t)8 << 20)
/* The longest name of a server, so that half of a tool's name is its own. */
#define MCP_SERVER_NAME_MAX 30

struct mcp_server;

struct mcp_tool {
    struct tool tool; /* its name is NULL until mcp_list_name; `source` is this */
    struct mcp_server *server;
    char *name; /* as the server calls it; owned */
};

struct mcp_list {
    struct mcp_tool **tools; /* each owned */
    size_t count, cap;
    size_t bytes;
};

/* Takes in a page, a ListToolsResult in JSON. Entries without a name, those whose name is there
 * already, and those that can only be called as tasks are left out, and so are, with a notice, those
 * whose inputSchema is not an object's; a description that is missing
 * is the title. -1: too many. */
int mcp_list_add_page(struct mcp_list *list, struct str result, struct mcp_server *server,
                      const struct tool_kind *kind, struct err *e);
/* Names tools `server__tool`: a character that is not in [A-Za-z0-9_-] becomes `_`, a name of more
 * than 64 is cut. One that is taken, by one of the `others` or in this list, ends in `_2`, `_3`,
 * … */
void mcp_list_name(struct mcp_list *list, const char *server, const struct tool *const *others,
                   size_t others_count);
void mcp_list_release(struct mcp_list *list);

/* 1 to MCP_SERVER_NAME_MAX of the characters [A-Za-z0-9_-]. */
bool mcp_server_name_valid(struct str name);

#endif
