/*
 * chat_input - what chat is given to say and to go by: the prompt and, with --messages, the
 * conversation before it.
 *
 * Both end the program when they cannot be read.
 */
#ifndef CHATHIST_FRONT_CHAT_INPUT_H
#define CHATHIST_FRONT_CHAT_INPUT_H

#include "base/buf.h"
#include "front/chat_args.h"

/* The most that a file of --messages may hold. */
#define MESSAGES_MAX ((size_t)256 << 20)

/* Adds standard input, arguments and files. */
void chat_input_prompt(struct buf *prompt, const struct chat_args *a);
/* Adds the text of --messages. */
void chat_input_messages(struct buf *text, const struct chat_args *a);

#endif
