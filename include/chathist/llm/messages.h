/*
 * messages - a conversation that is handed over as a text, for one request (chat --messages).
 *
 * The text is a JSON array of {role, content}, an object with such an array as `messages` (as
 * requests and exports are; Anthropic's with the system prompt beside it), or JSON lines of either
 * or of such entries, among them history lines (chathist(5)). Of each entry role, content (a
 * string, or parts that are all text), tool_calls (as in the history, or in OpenAI's form) and
 * tool_call_id count; id, reply_to and finish_reason mark turns that failed, which are
 * not sent (llm/context). Anything else is passed over and counted: whatever the text is, it can do no
 * harm.
 */
#ifndef CHATHIST_LLM_MESSAGES_H
#define CHATHIST_LLM_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/llm/context.h"

/* Adds the entries to c in their order. Returns how many were none: no object, a role other than
 * user, assistant, system and tool, content that is no text (an assistant that calls tools needs
 * none). Blank lines do not count. Invalid UTF-8 is read as U+FFFD. */
size_t messages_add(struct context *c, struct str text);
/* Is there an entry that is bad because it is nested too deeply, or all of the text? */
bool messages_too_deep(struct str text);

#endif
