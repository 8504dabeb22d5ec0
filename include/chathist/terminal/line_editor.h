/*
 * line_editor - reads a text from the terminal, with editing, a history and completion. It is the
 * only user of libedit.
 *
 * A text may have several lines: Ctrl-J and Alt-Enter insert a newline, and pasted text keeps its
 * newlines if the terminal marks it (bracketed paste). Up and Down move in it. A text that is
 * taller than the terminal is shown in part, and Ctrl-X Ctrl-E opens it in the user's editor.
 * ~/.editrc is obeyed. Text is UTF-8 in every locale.
 *
 * libedit alone is not enough. It inserts escape sequences that it does not know, knows no
 * bracketed paste, decodes characters as the locale says, and restarts reads after signals. So the
 * bytes of the terminal are read here, and libedit gets characters and sequences that have a
 * binding.
 *
 * Between line_open and line_close SIGINT, SIGTERM, SIGHUP and SIGQUIT are caught, unless the
 * program was started with them ignored. Between two calls of line_read the terminal does not echo;
 * characters typed then are kept. A process can have one editor.
 */
#ifndef CHATHIST_TERMINAL_LINE_EDITOR_H
#define CHATHIST_TERMINAL_LINE_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/process.h"

/* The words that could complete the text before the cursor. */
struct line_words {
    size_t from; /* the words begin at this byte of the text */
    struct words all;
};

/* Adds a word if it begins with `typed`. */
void line_offer(struct line_words *w, struct str typed, struct str word);

struct line_setup {
    /* Offers words for the text before the cursor. It must not print or end the program, because
     * libedit has changed the modes of the terminal. */
    void (*complete)(void *arg, struct str before, struct line_words *words);
    /* Lets the user change the text in an editor, which gets the terminal. Returns false if the
     * text is unchanged; it has then reported why. */
    bool (*edit)(void *arg, struct buf *text);
    void *arg;
    bool color; /* the prompt may be bold */
};

enum line_came {
    LINE_TEXT,
    LINE_END,     /* Ctrl-D, or the terminal was closed */
    LINE_CLEARED, /* Ctrl-C: the text is dropped */
    LINE_SIGNAL,  /* a signal that ends the program: line_signals_fatal */
};

struct line;

/* Standard input and standard output are a terminal. Returns 0, or -1 with *e set; the caller calls
 * line_close in either case. */
int line_open(struct line **l, const struct line_setup *setup, struct err *e);
/* Prints `prompt` and reads a text, without its last newline. *text is cleared first; after
 * LINE_CLEARED it holds the dropped text. */
enum line_came line_read(struct line *l, struct str prompt, struct buf *text);
/* The next line begins with this text. */
void line_begin_with(struct line *l, struct str text);
/* Adds a text to the history. Returns false if it is empty or equal to the newest one. */
bool line_remember(struct line *l, struct str text);
/* Restores the modes of the terminal for another program (`lent`), or sets ours again. */
void line_lend(struct line *l, bool lent);
/* Restores the terminal. NULL is allowed. */
void line_close(struct line *l);

#endif
