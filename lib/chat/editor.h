/*
 * editor - a text given to the user's editor: ${VISUAL:-${EDITOR:-vi}}.
 */
#ifndef CHATHIST_CHAT_EDITOR_H
#define CHATHIST_CHAT_EDITOR_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* Is there a terminal to edit on: standard input and standard error? */
bool editor_possible(void);
/* Replaces the text by what the editor makes of it, without its one final newline. The editor works
 * on a file of its own in ${TMPDIR:-/tmp} that nobody else can read; it is gone afterwards. -1: no
 * such file, the editor could not be run or failed, or what it left is too long; the text is then
 * what it was. */
int editor_edit(struct buf *text, struct err *e);

#endif
