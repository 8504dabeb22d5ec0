/*
 * import_chatgpt - the export of ChatGPT: conversations.json.
 *
 * The format is not documented by its maker. As others have found it
 * (mitkury/chatgpt-export-parser, docs/chatgpt-data-export-format.md): an array of conversations,
 * each with `mapping`, a tree of nodes (`message`, `parent`, `children`), and `current_node`, its
 * tip. Edited prompts and answers that were asked for again are branches: the messages from the
 * root to current_node are imported.
 *
 *   - What an assistant sends to another recipient than `all` is a call of the tool of that name;
 *     the tool's messages that follow are its results.
 *   - Parts that are images are counted. Thoughts, the user's own instructions
 *     (user_editable_context) and what is hidden in the conversation are left out.
 *   - Conversations come in the order of their update_time.
 */
#ifndef CHATHIST_PORT_IMPORT_CHATGPT_H
#define CHATHIST_PORT_IMPORT_CHATGPT_H

#include "port/import_message.h"

int import_chatgpt(struct source *s, struct import_sink *sink, struct err *e);

#endif
