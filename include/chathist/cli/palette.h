/*
 * palette - the one table of styles: what each kind of text looks like on a terminal, with the
 * colours for a dark and for a light background. `color.ROLE` in the user configuration replaces a
 * colour.
 *
 * Every colour of 256 has a contrast of at least 4.5:1 (WCAG 2.1, 1.4.3) on its background; if that
 * is not known, on black and on white. Terminals with 8 colours draw them as they like.
 */
#ifndef CHATHIST_CLI_PALETTE_H
#define CHATHIST_CLI_PALETTE_H

#include "chathist/base/buf.h"

enum style {
    STYLE_NONE, /* the end of all styles */
    STYLE_BOLD,
    STYLE_ITALIC,
    STYLE_STRUCK,
    STYLE_USER, /* this and the following are roles, which have colours */
    STYLE_ASSISTANT,
    STYLE_TOOL,
    STYLE_ID,
    STYLE_CODE,
    STYLE_LINK,
    STYLE_HIT, /* its colour is the background of black text */
    STYLE_DIM,
    STYLE_COMMENT,
    STYLE_STRING,
    STYLE_NUMBER,
    STYLE_KEYWORD,
    STYLE_ADDED,
    STYLE_REMOVED,
    STYLE_PLOT,
    STYLE_COUNT,
};
#define STYLE_FIRST_ROLE STYLE_USER

enum background { BACKGROUND_UNKNOWN, BACKGROUND_DARK, BACKGROUND_LIGHT };

/* The black on which hits stand, in the fixed part of the 256 colours and in the first 8. */
#define PALETTE_BLACK_256 16
#define PALETTE_BLACK 0

/* Returns the background that COLORFGBG names, such as `15;0`; NULL is allowed. */
enum background palette_background(const char *colorfgbg);
/* Returns the background that a terminal reports when it is asked by OSC 11: the answer is
 * `11;rgb:RRRR/GGGG/BBBB`, without ESC ] before it. */
enum background palette_reported(struct str answer);
/* Returns how many colours a terminal has by TERM and COLORTERM, each of which may be NULL: 256, 8,
 * or 0. */
int palette_colors(const char *term, const char *colorterm);

/* Returns the number of the colour of a role, or -1 for the colour of other text. */
int palette_color(enum style s, enum background b, int colors);
/* Adds the escape sequence that begins a style, or ends all of them (STYLE_NONE). */
void palette_add(struct buf *out, enum style s, enum background b, int colors);

/* Sets the colour of a role for the whole program: a number below 256, the name of one of the first
 * 8, or `default`, that of other text. Numbers from 8 on count if the terminal has 256. Returns 0;
 * -1 if there is no such role; or -2 if it is not a colour. */
int palette_set(struct str role, struct str color);

#endif
