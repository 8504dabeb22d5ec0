/*
 * input - the input of `chat`: the prompt from arguments, standard input, files and the editor, and
 * the messages of --messages.
 *
 * The functions input_... end the program on an error.
 */
#ifndef CHATHIST_CHAT_INPUT_H
#define CHATHIST_CHAT_INPUT_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/chat/chat_args.h"
#include "chathist/history/location.h"
#include "chathist/llm/context.h"

/* The maximum size of a file of --messages. */
#define MESSAGES_MAX ((size_t)256 << 20)

/* Returns true if a conversation is to be held on the terminal: standard input and output are one,
 * and the arguments ask for nothing else. */
bool input_interactive(const struct chat_args *a);
/* Adds standard input, arguments and files. No prompt at all is an error, unless --edit can open
 * the editor. With --regenerate only images and PDFs are allowed. */
void input_prompt(struct buf *prompt, struct attachment_list *attachments,
                  const struct chat_args *a);
/* Opens the session's last prompt in the editor. Does nothing without a prompt or a
 * terminal. */
void input_edit(struct buf *prompt, const struct history *h, struct str session);
/* Adds the text of --messages. */
void input_messages(struct buf *text, const struct chat_args *a);

/* Adds a text file to the prompt, after a blank line and fenced with its name, or an image or a PDF
 * to the list, as its first bytes say. Returns 0, or -1 with ERR_USAGE and nothing added if the
 * file is unreadable, too large (PROMPT_MAX, ATTACHMENT_MAX, ATTACHMENTS_MAX), another kind of
 * binary file, a directory or a URL. Unless `quiet` is set, a notice says that a text is empty or
 * not UTF-8. */
int attach_file(struct buf *prompt, struct attachment_list *attachments, const char *file,
                bool quiet, struct err *e);

/* Replaces the text by the result of the user's editor, ${VISUAL:-${EDITOR:-vi}}, without one final
 * newline. The editor gets a temporary file that only the user can read. Returns 0, or -1 with *e
 * set and the text unchanged if the editor cannot be run or fails, or the result is too long. */
int editor_edit(struct buf *text, struct err *e);

#endif
