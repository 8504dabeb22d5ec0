/*
 * prompt - what is said: arguments and standard input (chat(1)). Files are front/attach's.
 */
#ifndef CHATHIST_CHAT_PROMPT_H
#define CHATHIST_CHAT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* The most that may be said at once; a line of the history must hold it. */
#define PROMPT_MAX (BUF_LINE / 2)

/* Is standard input something to read: a pipe, a file or a socket? */
bool prompt_has_stdin(void);
/* Adds all of standard input without its one final newline. `waiting` is said on stderr when it has
 * been silent for 3 seconds; NULL: nothing. -1: unreadable or over PROMPT_MAX. */
int prompt_add_stdin(struct buf *prompt, const char *waiting, struct err *e);
/* Is the one word `-`, which stands for standard input? */
bool prompt_is_dash(char **words, size_t count);
/* Adds the words (but a lone `-`) joined by blanks, behind a blank line when something stands there
 * already. */
void prompt_add_words(struct buf *prompt, char **words, size_t count);
/* Adds a blank line when something stands there already. */
void prompt_part(struct buf *prompt);

#endif
