/*
 * provider_anthropic_messages - a context as the messages of Anthropic's wire (PROTOCOLS section 3,
 * "What a request must hold"; platform documentation, "Messages" and "Tool use").
 *
 *  - Turns alternate, the user begins and ends. A conversation that begins with the model gets a
 *    user message `…` before it. There is no empty or blank text.
 *  - Results of tools are blocks, first in the user message behind the calls. Ids and names of
 *    calls get the form of llm/call_ids. Arguments that are no object travel as
 *    {"INVALID_JSON":"…"}.
 *  - Images are blocks before the text of their message.
 *  - While a loop of calls and results goes on (context_in_loop), the blocks of its answers go back
 *    to the provider that wrote them in the order in which they came ("Extended thinking with tool
 *    use": thinking, call, thinking, text, call). Where only the thinking was kept, it stands
 *    first.
 */
#ifndef CHATHIST_LLM_PROVIDER_ANTHROPIC_MESSAGES_H
#define CHATHIST_LLM_PROVIDER_ANTHROPIC_MESSAGES_H

#include "chathist/base/err.h"
#include "chathist/base/cjson.h"
#include "chathist/llm/context.h"

/* Makes two arrays, the caller's to free: the messages of a context that is settled, and a
 * declaration of each tool that is called in them; *tools is NULL when none is. -1: ERR_USAGE, the
 * last message is not the user's, or it is blank. */
int anthropic_messages(const struct context *context, const char *provider, cJSON **messages,
                       cJSON **tools, struct err *e);
/* The same for a conversation that is not to be answered now: it may end with the model, and may be
 * empty. */
void anthropic_conversation(const struct context *context, const char *provider, cJSON **messages,
                            cJSON **tools);

#endif
