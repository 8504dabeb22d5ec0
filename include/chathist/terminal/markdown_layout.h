/*
 * markdown_layout - lays out Markdown for a terminal while it arrives: styles, words that are not
 * cut at the right edge, and tables with columns.
 *
 * A line is broken between two words, or between two wide characters, and gets no hyphen; the
 * blanks at the break are not printed. A word that is longer than a line, and code blocks, are left
 * to the terminal, so that they are copied from it without a newline that they do not have. The
 * last word is held back until it is complete.
 *
 * A table of GitHub Flavored Markdown whose lines begin with `|` is held back until it is complete,
 * and its cells are padded. If it is wider than the terminal, its cells are wrapped. A terminal
 * without room for that gets the lines unchanged.
 *
 * It is a push parser whose output does not depend on how the text is split.
 */
#ifndef CHATHIST_TERMINAL_MARKDOWN_LAYOUT_H
#define CHATHIST_TERMINAL_MARKDOWN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/utf8.h"
#include "chathist/terminal/markdown.h"

/* A text, and the styles of each byte. */
struct markdown_styled {
    struct buf bytes, styles;
};

struct markdown_layout {
    markdown_fn *fn; /* gets text that is safe on a terminal */
    void *arg;
    /* Returns the width of the terminal, or 0 without one. Called at the start of a line. */
    size_t (*columns)(void *arg);
    /* private */
    struct markdown markdown;
    struct vis vis;
    size_t width, column;
    struct markdown_styled held; /* blanks and a word after them */
    size_t blanks;               /* bytes of `held` that are blanks */
    size_t blank_columns, word_columns;
    int32_t last;   /* the last character of the word */
    bool long_word; /* the word is longer than a line, and is printed as it arrives */
    bool measured;  /* the width of this line is known */
    enum { LAYOUT_START, LAYOUT_TEXT, LAYOUT_ROW } state; /* of the line that arrives */
    struct buf line;                                      /* its beginning, or a row of a table */
    struct buf table;                                     /* complete rows */
    size_t rows;
};

/* Sets the public members. The caller calls markdown_layout_release. */
void markdown_layout_init(struct markdown_layout *l, markdown_fn *fn, void *arg,
                          size_t (*columns)(void *arg));
void markdown_layout_release(struct markdown_layout *l);
void markdown_layout_feed(struct markdown_layout *l, struct str piece);
/* Prints the text that is held back, except a table. Other text is printed next, on a new line.
 * Returns whether the cursor is at the start of a line already. */
bool markdown_layout_pause(struct markdown_layout *l);
/* Ends the text; l can then be used for another one. Returns whether the cursor is at the start of
 * a line, as after a table. */
bool markdown_layout_end(struct markdown_layout *l);
/* Is a part of a table held back? The cursor is at the start of a line then. */
bool markdown_layout_holds_table(const struct markdown_layout *l);

#endif
