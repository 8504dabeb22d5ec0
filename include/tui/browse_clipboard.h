/*
 * browse_clipboard - a text for the clipboard: by the terminal (OSC 52), and by a program where
 * there is a desktop, for many a terminal passes the sequence over in silence.
 */
#ifndef CHATHIST_TUI_BROWSE_CLIPBOARD_H
#define CHATHIST_TUI_BROWSE_CLIPBOARD_H

#include <stdatomic.h>

#include "base/buf.h"

/* Asks the terminal: 0; -1 when it is known not to take such a text. */
int browse_clipboard_terminal(int fd, struct str text);
/* Gives it to the first program that takes it: 0; -1: there is none, or *cancel was set. */
int browse_clipboard_programs(struct str text, const atomic_bool *cancel);

#endif
