/*
 * browse_clipboard - puts a text on the clipboard, by the terminal (OSC 52) and by a program: many
 * terminals ignore the sequence, and none says so.
 */
#ifndef CHATHIST_BROWSE_BROWSE_CLIPBOARD_H
#define CHATHIST_BROWSE_BROWSE_CLIPBOARD_H

#include <stdatomic.h>

#include "chathist/base/buf.h"

/* What terminals take at once, most of them. */
#define BROWSE_CLIPBOARD_MAX ((size_t)74994)

/* Sends it to the terminal, which does not answer: 0; -1 if it is known not to take such a text. In
 * tmux nothing is sent, for tmux drops the sequence by default and has a program instead. */
int browse_clipboard_terminal(int fd, struct str text);
/* Gives it to tmux, where one runs, and to the first program of the desktop that takes it: 0; -1:
 * none did, or *cancel was set. */
int browse_clipboard_programs(struct str text, const atomic_bool *cancel);

#endif
