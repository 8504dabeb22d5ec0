/*
 * markdown - shows Markdown lightly on a terminal: styles for bold, italic, struck
 * text, code and headings; code blocks have those of their language.
 *
 * Every character of the text is printed once and in order, including the marks, so that text
 * copied from the terminal is the original. This is a subset of CommonMark. The text is shown while
 * it arrives, so bold text is recognised at its opening mark, and ends with its line at the latest.
 * Emphasis begins after a blank or an opening bracket, not within snake_case, 2*3 or x**2.
 *
 * It is a push parser whose output does not depend on how the text is split. It holds back only a
 * run of equal marks until the next character is known, and in code what highlight holds back.
 */
#ifndef CHATHIST_TERMINAL_MARKDOWN_H
#define CHATHIST_TERMINAL_MARKDOWN_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/terminal/highlight.h"

/* Styles, combined by |. */
enum {
    MARKDOWN_BOLD = 1, /* used for headings, too */
    MARKDOWN_ITALIC = 2,
    MARKDOWN_CODE = 4,
    MARKDOWN_MARK = 8,   /* a mark, shown dimmed */
    MARKDOWN_BLOCK = 16, /* in a line of a code block; it changes nothing in how text is shown */
    MARKDOWN_STRUCK = 32,
    MARKDOWN_LINK = 64,  /* an address; only markdown_layout sets it */
    MARKDOWN_KIND = 128, /* this and the next two bits: an enum highlight_kind, within a block */
    MARKDOWN_KINDS = 7 * MARKDOWN_KIND,
    MARKDOWN_FREE = 1024, /* this and the following bits are free for other uses */
};

/* Gets each piece of the text with its styles; a newline has no style. */
typedef void markdown_fn(void *arg, unsigned styles, struct str text);

/* Zero-initialise everything but fn and arg. Without fn only the state is kept. */
struct markdown {
    markdown_fn *fn;
    void *arg;
    /* private */
    size_t run;      /* the number of marks that are held back */
    size_t fence;    /* the length of the fence of this block; 0: no block */
    size_t code;     /* the number of backticks around the inline code; 0: no code */
    size_t indent;   /* blanks at the start of this line */
    char run_mark;   /* the marks that are held back */
    char fence_mark; /* ` or ~ */
    char emphasis;   /* the mark that the italics began with */
    char before;     /* the last byte; a newline at the start of a line */
    bool started;    /* the text has begun */
    bool begun;      /* this line has more than blanks */
    bool info;       /* this line opened the block */
    bool closing;    /* this line closes the block, unless more follows */
    bool escaped;    /* the next character follows a backslash */
    bool heading, bold, italic, struck;
    char name[16]; /* the language, from the line that opened the block; further bytes are lost */
    size_t name_len;
    struct highlight highlight;
};

void markdown_feed(struct markdown *m, struct str piece);
/* Ends the text; m can then be used for another one. */
void markdown_end(struct markdown *m);

/* Adds the lines of the first fenced code block (CommonMark 0.31, section 4.5) without its fences
 * and without the indentation of the first fence. A block without an end extends to the end of the
 * text. Unlike CommonMark, a fence may be indented by any number of blanks, because models put code
 * into lists. Returns false if the text has no block. */
bool code_block_first(struct str text, struct buf *out);

#endif
