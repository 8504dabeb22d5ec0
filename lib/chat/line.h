/*
 * line - a line typed on the terminal, edited, with a history and completion (libedit, whose only
 * user this is), and the signals that come while the program lives by such lines.
 *
 * A text may have several lines: Ctrl-J and Alt-Enter put in a newline, and so does what is pasted,
 * where the terminal tells pasting from typing (bracketed paste). What ~/.editrc says holds. Text
 * is UTF-8, whatever the locale.
 *
 * Between line_open and line_close SIGINT, SIGTERM, SIGHUP and SIGQUIT are caught, but for those
 * that the program was started with ignored; between two lines the terminal does not show what is
 * typed, which is not lost. One at a time in a process.
 */
#ifndef CHATHIST_CHAT_LINE_H
#define CHATHIST_CHAT_LINE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chat/line_words.h"

struct line_setup {
    /* Offers the words that could complete the text before the cursor. The terminal is in the
     * editor's hands: nothing may be printed, the program not be ended. */
    void (*complete)(void *arg, struct str before, struct line_words *words);
    void *arg;
    bool color; /* the prompt may be bold */
};

enum line_came {
    LINE_TEXT,
    LINE_END,     /* Ctrl-D, or the terminal is gone */
    LINE_CLEARED, /* Ctrl-C: what was typed is dropped */
    LINE_SIGNAL,  /* one that is to end the program: line_signals_fatal */
};

struct line;

/* Standard input and standard output are a terminal. -1 when it cannot be set up. */
int line_open(struct line **l, const struct line_setup *setup, struct err *e);
/* Reads a text (its newline dropped) after what the last line of the terminal shows, `prompt`.
 * *text is cleared first; with LINE_CLEARED it is what was dropped. */
enum line_came line_read(struct line *l, struct str prompt, struct buf *text);
/* Enters a text into the history. false: it is the newest one there already. */
bool line_remember(struct line *l, struct str text);
/* Gives the terminal to another program, and takes it back. */
void line_lend(struct line *l, bool lent);
/* The terminal is as it was before. NULL is fine. */
void line_close(struct line *l);

#endif
