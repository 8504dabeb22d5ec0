/*
 * import_llm - the database of llm (https://llm.datasette.io): logs.db.
 *
 * Source: simonw/llm, llm/migrations.py, llm/logs.py and docs/logging.md. There are two generations
 * of tables, and a database may have both:
 *
 *   - conversations, responses: a row for a prompt and its response, with the conversation's id; a
 *     response without one is a session of its own. tool_calls belong to the response, tool_results
 *     to the prompt that brought them; fragments stand before the prompt or the system prompt.
 *   - threads, turns, messages, parts: a message links to the one before it, and a turn's are those
 *     behind its parent_message_hash up to its tip_message_hash.
 *
 * The system prompt is a message where it changes. Attachments that are images are counted;
 * reasoning is left out. The database is opened for reading only; this is the one file that uses
 * sqlite3.
 */
#ifndef CHATHIST_PORT_IMPORT_LLM_H
#define CHATHIST_PORT_IMPORT_LLM_H

#include "port/import_message.h"

int import_llm(struct source *s, struct import_sink *sink, struct err *e);

#endif
