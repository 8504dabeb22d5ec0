/*
 * import_aichat - sessions of aichat: NAME.yaml in the directory `sessions` of its configuration.
 *
 * Source: sigoden/aichat, src/config/session.rs (Session), src/client/message.rs (Message,
 * MessageContent, MessageContentToolCalls) and src/function.rs (ToolCall). A mapping with `model`,
 * `messages` and, when the session was compressed, `compressed_messages`, which come first. A tool
 * message holds calls and results together: it becomes an answer and a message for each result.
 *
 * There are no ids and no times: see import_messages. `model` is CLIENT:MODEL, of which the client
 * is the provider. YAML is read with libyaml, which is used here alone; anchors are not followed,
 * as aichat writes none.
 */
#ifndef CHATHIST_PORT_IMPORT_AICHAT_H
#define CHATHIST_PORT_IMPORT_AICHAT_H

#include "port/import_message.h"

int import_aichat(struct source *s, struct import_sink *sink, struct err *e);

#endif
