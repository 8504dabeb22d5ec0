/*
 * markdown - how a text in Markdown is to be shown lightly: which of its characters are bold, code,
 * and so on.
 *
 * Every character comes out, in its order and once, the marks too, so that what is copied from a
 * terminal is the text itself; only styles are told. It is no CommonMark: what is bold is decided
 * when it begins, for the text is shown while it comes, and ends with its line at the latest.
 * Emphasis begins behind a blank or what opens something (snake_case, 2*3, x**2 are none). Code
 * blocks are recognised as by front/code_block.
 *
 * A push parser, the same for every way in which the text is cut. Nothing is held back but a row of
 * equal marks until what follows it has come.
 */
#ifndef CHATHIST_CHAT_MARKDOWN_H
#define CHATHIST_CHAT_MARKDOWN_H

#include <stdbool.h>

#include "chathist/base/buf.h"

/* Styles, together. */
enum {
    MARKDOWN_BOLD = 1, /* headings, too */
    MARKDOWN_ITALIC = 2,
    MARKDOWN_CODE = 4,
    MARKDOWN_MARK = 8, /* a mark itself, to be shown faintly */
};

/* Is handed each piece of the text with its styles; a newline has none. */
typedef void markdown_fn(void *arg, unsigned styles, struct str text);

/* Zero-initialise, all but fn and arg. */
struct markdown {
    markdown_fn *fn;
    void *arg;
    /* private */
    size_t run;      /* marks that wait for what follows them */
    size_t fence;    /* of how many marks the fence of this block is; 0: no block */
    size_t code;     /* of how many backticks the code in this line is; 0: none */
    size_t indent;   /* blanks at the start of this line */
    char run_mark;   /* which mark they are */
    char fence_mark; /* ` or ~ */
    char emphasis;   /* which mark the italics began with */
    char before;     /* the last byte; a newline at the start of a line */
    bool started;    /* the text has begun */
    bool begun;      /* this line has more than blanks */
    bool info;       /* this line opened the block */
    bool closing;    /* it closes it, unless more follows */
    bool escaped;    /* by a backslash */
    bool heading, bold, italic;
};

void markdown_feed(struct markdown *m, struct str piece);
/* The end of the text; m may then be fed another one. */
void markdown_end(struct markdown *m);

/* ---- code_block ---- */

/*
 * code_block - the fenced code blocks of an answer in Markdown (CommonMark 0.31, section 4.5).
 *
 * One deviation: a fence may be indented by any number of blanks, because models put code into
 * lists, whose nesting is not followed here.
 */
/* Adds the lines of the first block to out, without its fences and without the indentation of the
 * first fence. A block without end goes to the end of the text. false: there is none. */
bool code_block_first(struct str text, struct buf *out);

#endif
