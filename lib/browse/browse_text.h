/*
 * browse_text - text laid out in the lines of a panel: wrapped at words, shown as light Markdown,
 * its hits marked.
 *
 * A line is a row of cells: a character with its combining marks, 1 or 2 columns wide, nothing that
 * a terminal obeys or joins. What vis_unsafe knows, and bytes that are no UTF-8, become their
 * visible form (base/vis). U+200D, variation selectors and skin tones are left out, for terminals
 * differ in how many columns the sequences take that they form; a mark with nothing before it
 * stands on a blank.
 */
#ifndef CHATHIST_BROWSE_BROWSE_TEXT_H
#define CHATHIST_BROWSE_BROWSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/chat/markdown.h"

/* Styles, together. */
enum {
    BROWSE_BOLD = 1,
    BROWSE_ITALIC = 2,
    BROWSE_CODE = 4,
    BROWSE_DIM = 8,
    BROWSE_HIT = 16,
    BROWSE_HEAD = 32,  /* a message's header */
    BROWSE_TOOL = 64,  /* a tool call or result */
    BROWSE_HERE = 128, /* the hit that is looked at */
};

/* So much of a line in one style. */
struct browse_run {
    size_t n; /* bytes */
    unsigned styles;
};

struct browse_line {
    size_t at; /* in `text` */
    size_t run, run_count;
    size_t from; /* the byte of what was laid out with which it begins */
};

/* Zero-initialise, but for `text`. */
struct browse_lines {
    struct buf text;
    struct browse_run *runs;
    size_t run_count, run_cap;
    struct browse_line *at;
    size_t count, cap;
};

/* A place in a text, in bytes. */
struct browse_place {
    size_t at, n;
};

struct browse_layout {
    size_t width; /* columns; at least 2 */
    bool markdown;
    const struct markdown *state;    /* in which it begins; NULL: at the start of a text */
    const struct browse_place *hits; /* ascending, none overlapping */
    size_t hit_count;
    bool has_here; /* the hit that begins at `here` is marked as the one that is looked at */
    size_t here;
    unsigned styles; /* of all of it */
};

void browse_lines_init(struct browse_lines *l);
void browse_lines_release(struct browse_lines *l);
/* Adds the lines of a text; an empty one has none. A newline at its end begins no other line. */
void browse_lines_add(struct browse_lines *l, struct str text, const struct browse_layout *how);
/* Adds one line, white space made blanks, cut with `…` at the width. */
void browse_lines_add_one(struct browse_lines *l, struct str text, const struct browse_layout *how);
/* Adds to the last line, if it fits; cut the same way. */
void browse_lines_append(struct browse_lines *l, struct str text, const struct browse_layout *how);
/* The last n bytes of the text, which the caller has added, belong to the last line. */
void browse_lines_styled(struct browse_lines *l, size_t n, unsigned styles);
/* Columns that a line takes. */
size_t browse_line_columns(const struct browse_lines *l, size_t i);

#endif
