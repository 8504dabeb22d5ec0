/*
 * import_messages - a conversation as it is sent to a model: the messages of OpenAI's chat
 * completions or Anthropic's Messages interface.
 *
 * Sources: OpenAI, "Create chat completion", messages; Anthropic, "Create a Message", messages.
 * They may be an array, an object with `messages` (a whole request; its `model` and `system` count,
 * too), or objects one a line. Calls of tools and their results are in both forms.
 *
 * Such a file has neither ids nor, mostly, times. Its session is named after the file and its
 * place, or after what it begins with when it has none; a message is known by its number and its
 * content. A `timestamp`, `created_at` or `create_time` of a message is its time.
 */
#ifndef CHATHIST_PORT_IMPORT_MESSAGES_H
#define CHATHIST_PORT_IMPORT_MESSAGES_H

#include "port/import_message.h"

int import_messages(struct source *s, struct import_sink *sink, struct err *e);

/* Sets the session of a file without an id of its own to FORMAT:NAME-HASH. */
int import_set_file_session(struct import_message *m, const char *format, struct source *s,
                            struct err *e);
/* Gives one such message, an object: `n` is its number in the conversation. m has its session and,
 * if it is known, its model; they stay. */
int import_give_message(struct source *s, struct import_sink *sink, struct import_message *m,
                        struct str object, size_t n, struct err *e);

#endif
