/*
 * chat_input - what chat is given to say and to go by: the prompt and, with --messages, the
 * conversation before it.
 *
 * All of it ends the program when it cannot be read.
 */
#ifndef CHATHIST_CHAT_CHAT_INPUT_H
#define CHATHIST_CHAT_CHAT_INPUT_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/chat/chat_args.h"
#include "chathist/history/locate.h"
#include "chathist/llm/context.h"

/* The most that a file of --messages may hold. */
#define MESSAGES_MAX ((size_t)256 << 20)

/* Is a conversation to be held on the terminal: standard input and output are one, and nothing else
 * was asked for? */
bool chat_input_interactive(const struct chat_args *a);
/* Adds standard input, arguments and files. Nothing at all is an error, but not for --edit where
 * there is a terminal. For --regenerate, only images are. */
void chat_input_prompt(struct buf *prompt, struct image_list *images, const struct chat_args *a);
/* Has the session's last prompt edited; nothing happens when it has none, or without a terminal. */
void chat_input_edit(struct buf *prompt, const struct history *h, struct str session);
/* Adds the text of --messages. */
void chat_input_messages(struct buf *text, const struct chat_args *a);

#endif
