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
 * The lines of a list item or a quote begin below its text, and addresses are links.
 *
 * A screen of cells has no terminal that wraps lines or joins characters. There, U+200D, variation
 * selectors and skin tones are dropped, because terminals disagree about the width of the sequences
 * that they form; a tab becomes blanks; a combining mark without a character before it is put on a
 * blank; and no line is wider than the screen.
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

/* The most bytes of a character with its marks on a screen of cells; further marks are dropped. */
#define MARKDOWN_CELL_MAX 24

/* Gets text that is safe on a terminal, and where it stands in the source: the offset of the
 * character that its first byte belongs to, or SIZE_MAX for a byte that the source lacks, such as a
 * newline between two words. */
typedef void markdown_layout_fn(void *arg, unsigned styles, struct str text, size_t at);

/* A text, and the styles and the place of each byte. */
struct markdown_origin {
    unsigned styles;
    size_t at;
};
struct markdown_styled {
    struct buf bytes;
    struct markdown_origin *of;
    size_t cap;
};

struct markdown_layout {
    markdown_layout_fn *fn;
    void *arg;
    /* Returns the width of the terminal, or 0 without one. Called at the start of a line. */
    size_t (*columns)(void *arg);
    /* Called before and after the text of an address, with STR_NONE after it; NULL: not needed. */
    void (*link)(void *arg, struct str address);
    /* Returns styles for the character at an offset of the source, which ascends; NULL: none. */
    unsigned (*also)(void *arg, size_t at);
    bool plain; /* the text is no Markdown */
    bool cells; /* the output is a screen of cells (below) */
    /* private */
    struct markdown markdown;
    struct buf part; /* an incomplete character, or a CR */
    unsigned part_styles;
    size_t offset; /* bytes of the source that were laid out */
    size_t width, column;
    struct markdown_styled held; /* blanks and a word after them */
    size_t blanks;               /* bytes of `held` that are blanks */
    size_t blank_columns, word_columns;
    size_t cell;    /* bytes of the last character with its marks */
    int32_t last;   /* the last character of the word */
    bool long_word; /* the word is longer than a line, and is printed as it arrives */
    bool measured;  /* the width of this line is known */
    enum markdown_lead { LEAD_START, LEAD_NUMBER, LEAD_MARK, LEAD_AFTER, LEAD_END } lead;
    size_t hang;   /* the column of its text */
    size_t indent; /* the blanks that this line was begun with */
    enum { LAYOUT_START, LAYOUT_TEXT, LAYOUT_ROW } state; /* the state of the line that arrives */
    struct buf line;                                      /* its beginning, or a row of a table */
    struct buf table;                                     /* complete rows */
    size_t rows;
};

/* Sets `fn`, `arg` and `columns`; the caller may set the other public members. It calls markdown_layout_release. */
void markdown_layout_init(struct markdown_layout *l, markdown_layout_fn *fn, void *arg,
                          size_t (*columns)(void *arg));
void markdown_layout_release(struct markdown_layout *l);
/* The text begins with this state of its Markdown; call it before the first feed. */
void markdown_layout_resume(struct markdown_layout *l, const struct markdown *state);
void markdown_layout_feed(struct markdown_layout *l, struct str piece);
/* Prints the text that is held back, except a table. Other text is printed next, on a new line.
 * Returns whether the cursor is at the start of a line already. */
bool markdown_layout_pause(struct markdown_layout *l);
/* Ends the text; l can then be used for another one. Returns whether the cursor is at the start of
 * a line, as after a table. */
bool markdown_layout_end(struct markdown_layout *l);
/* Returns whether a part of a table is held back. The cursor is at the start of a line then. */
bool markdown_layout_holds_table(const struct markdown_layout *l);

#endif
