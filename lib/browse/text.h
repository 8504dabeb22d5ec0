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
#ifndef CHATHIST_BROWSE_TEXT_H
#define CHATHIST_BROWSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/chat/markdown.h"
#include "chathist/history/message.h"
#include "chathist/history/thread.h"
#include "chathist/search/pattern.h"

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

/*
 * browse_parts - the messages of a thread cut into parts, so that the panel lays out no more than
 * it shows, however long a message is.
 *
 * A part is as a text of its own: it ends with a line where there is one, and knows in which state
 * of its Markdown it begins. Made beside the keyboard, for a long message is decoded for it.
 */

/* So many bytes at the most, but for what would be left over. */
#define BROWSE_PART ((size_t)16 << 10)

struct browse_part {
    size_t message;
    size_t at, n;          /* of its content; SIZE_MAX: all of it */
    struct markdown state; /* without fn and arg */
};

/* Zero-initialise. */
struct browse_parts {
    struct browse_part *at;
    size_t count, cap;
    size_t *first; /* for each message, and behind the last one: its first part */
    /* private: for each message that is long, its content, and the memory behind it unless that is
     * its line */
    struct str *contents;
    struct buf *texts;
    size_t messages;
};

/* Of a thread, which is to stay while they are used. */
void browse_parts_make(struct browse_parts *p, const struct thread *t);
void browse_parts_release(struct browse_parts *p);
/* The part of a message that has a byte of its content, and the last one. */
size_t browse_parts_find(const struct browse_parts *p, size_t message, size_t at);
size_t browse_parts_last(const struct browse_parts *p, size_t message);
/* The content of a message, borrowed from the parts, from the line or from scratch (BUF_LINE). What
 * is decoded into scratch is short. */
struct str browse_parts_text(const struct browse_parts *p, const struct thread *t, size_t message,
                             struct buf *scratch);

/*
 * browse_item - a part of a message laid out for the panel: the first one has a header, the last
 * one the tool calls. What a tool was asked for and what it said is one line each unless it is
 * unfolded.
 */

/* So many bytes of the arguments of a call are laid out. */
#define BROWSE_SHOWN ((size_t)32 << 10)
/* A hit begins in one part and may end in the next one, so many bytes behind. */
#define BROWSE_OVERLAP ((size_t)512)

struct browse_item {
    bool laid; /* `lines` is right */
    struct browse_lines lines;
    size_t body; /* the first line of the content */
};

struct browse_item_view {
    size_t width;
    bool first, last; /* of the message's parts */
    bool unfolded;
    struct pattern *pattern;  /* whose matches are marked; NULL: none */
    struct browse_place here; /* of the content, the hit that is looked at; n 0: none */
};

/* Fills item->lines, which was released, with a part of a message. `text` is its whole content. */
void browse_item_lay(struct browse_item *item, const struct message *m, struct str text,
                     const struct browse_part *part, const struct browse_item_view *view);
/* The line that shows a byte of the part. */
size_t browse_item_line(const struct browse_item *item, size_t at);

#endif
