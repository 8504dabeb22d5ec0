/*
 * prompt - a text from arguments and standard input, as chat and hist-append take it.
 */
#ifndef CHATHIST_CHAT_PROMPT_H
#define CHATHIST_CHAT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* The maximum size of a prompt; a line of the history must be able to hold it. */
#define PROMPT_MAX (BUF_LINE / 2)

/* Returns whether standard input can be read: it is a pipe, a file or a socket. */
bool prompt_has_stdin(void);
/* Adds standard input without a byte order mark and its one final newline. `waiting` (NULL:
 * nothing) is printed on stderr after 3 seconds of silence. Returns 0, or -1 with *e set if it is
 * unreadable or larger than PROMPT_MAX; with refuse_binary also if it is no text (text_fault). With
 * `waiting` set, bytes that are not UTF-8 are reported. */
int prompt_add_stdin(struct buf *prompt, const char *waiting, bool refuse_binary, struct err *e);
/* Returns whether `-`, which stands for standard input, is the only word. */
bool prompt_is_dash(char **words, size_t count);
/* Adds the words joined by blanks, except a lone `-`, after a blank line if there is text
 * already. */
void prompt_add_words(struct buf *prompt, char **words, size_t count);
/* Adds a blank line if there is text already. */
void prompt_part(struct buf *prompt);

#endif
