/*
 * mirror - the header lines that repeat parts of a message, so that a gateway can route it
 * without reading its JSON.
 *
 * Source: modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http,
 * "Request Metadata": Mcp-Method, Mcp-Name, and Mcp-Param-NAME for each parameter of a tool whose
 * schema has `"x-mcp-header": "NAME"`. Servers of earlier revisions ignore these headers.
 */
#ifndef MCP_MIRROR_H
#define MCP_MIRROR_H

#include <stdbool.h>

#include "chathist/base/buf.h"

/* Adds the lines `Name: value\n` of a message with this method. For tools/call, `tool` is the name
 * that the server knows, and otherwise NULL; `schema` and `args` are the JSON of its inputSchema
 * and its arguments, or STR_NONE if no parameter is to be repeated. */
void mcp_mirror_add(struct buf *out, const char *method, const char *tool, struct str schema,
                    struct str args);
/* Does each `x-mcp-header` of an inputSchema follow the rules? A tool is not to be offered
 * otherwise. */
bool mcp_mirror_valid(struct str schema);

#endif
