/*
 * mcp_content - what came of a call of an MCP server's tool, as text for the model; and what a
 * server logs, for the user.
 *
 * Source: modelcontextprotocol.io/specification/2025-11-25/server/tools ("Tool Result": text,
 * image, audio, resource_link and resource blocks in `content`, `structuredContent`, `isError`),
 * 2026-07-28/ basic (`resultType`); 2025-11-25/server/utilities/logging ("Log Message
 * Notifications").
 */
#ifndef CHATHIST_LLM_MCP_CONTENT_H
#define CHATHIST_LLM_MCP_CONTENT_H

#include <stdbool.h>

#include "chathist/base/buf.h"

/* Adds the text of a CallToolResult to out: text and the text of resources, with a newline between
 * two blocks; for a block without text one line in brackets that tells what it is. Without any text
 * the structured content, as JSON. *failed: the tool says that it failed, or that it did not
 * finish. What is beyond out's maximum is left out, and the text then ends with a line that says
 * so. */
void mcp_content_add(struct buf *out, struct str result, bool *failed);
/* Adds the parameters of notifications/message: `level logger text`, data that is no text as JSON;
 * whatever is missing is left out. */
void mcp_content_add_message(struct buf *out, struct str params);

#endif
