/*
 * text - lays out the text of messages in lines: wraps it at words, shows light Markdown and marks
 * the hits of a search.
 *
 * A line is a row of cells. A cell is a character with its combining marks, 1 or 2 columns wide,
 * and contains nothing that a terminal obeys or joins: characters for which vis_unsafe is true, and
 * bytes that are not valid UTF-8, are shown in their visible form (base/utf8). How texts of several
 * lines are laid out, and what is dropped, says terminal/markdown_layout.
 */
#ifndef CHATHIST_BROWSE_TEXT_H
#define CHATHIST_BROWSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/terminal/markdown.h"
#include "chathist/history/message.h"
#include "chathist/history/thread.h"
#include "chathist/search/pattern.h"

/* Styles; a set of bits. The first ones are those of Markdown. */
enum {
    BROWSE_BOLD = MARKDOWN_BOLD,
    BROWSE_ITALIC = MARKDOWN_ITALIC,
    BROWSE_CODE = MARKDOWN_CODE,
    BROWSE_DIM = MARKDOWN_MARK,
    BROWSE_HIT = MARKDOWN_FREE,
    BROWSE_HEAD = 2 * MARKDOWN_FREE,  /* a message's header */
    BROWSE_TOOL = 4 * MARKDOWN_FREE,  /* a tool call or result */
    BROWSE_HERE = 8 * MARKDOWN_FREE,  /* the current hit */
    BROWSE_USER = 16 * MARKDOWN_FREE, /* of the user, with BROWSE_HEAD */
};

struct browse_line {
    size_t at, n; /* in `text` */
    size_t from;  /* offset in the source text of the first byte of the line that is in it */
};

/* Laid out lines. Initialise with zeros; browse_lines_release frees it. */
struct browse_lines {
    struct buf text;
    unsigned *styles; /* of each byte of `text`; those of a cell are equal */
    size_t styles_cap;
    struct browse_line *at;
    size_t count, cap;
};

/* A range of a text, in bytes. */
struct browse_place {
    size_t at, n;
};

struct browse_layout {
    size_t width; /* columns; at least 2 */
    bool markdown;
    const struct markdown *state;    /* state at the start of the text; NULL: the initial state */
    const struct browse_place *hits; /* ascending, not overlapping */
    size_t hit_count;
    bool has_here; /* the hit that begins at `here` is shown as the current one */
    size_t here;
    unsigned styles; /* added to the whole text */
};

/* Returns the styles in which the name of a role is shown. */
unsigned browse_role_styles(enum role role);

void browse_lines_release(struct browse_lines *l);
/* Adds the lines of a text. An empty text adds no line; a newline at the end adds no empty line. */
void browse_lines_add(struct browse_lines *l, struct str text, const struct browse_layout *how);
/* Adds the text as one line: white space becomes blanks, and a text that is too wide ends with
 * `…`. */
void browse_lines_add_one(struct browse_lines *l, struct str text, const struct browse_layout *how);
/* Appends the text to the last line, shortened in the same way. */
void browse_lines_append(struct browse_lines *l, struct str text, const struct browse_layout *how);
/* Appends a text that is safe to show and fits to the last line. */
void browse_lines_put(struct browse_lines *l, struct str text, unsigned styles);
/* Returns the width of line i in columns. */
size_t browse_line_columns(const struct browse_lines *l, size_t i);

/* ---- parts: messages divided, so that the panel lays out only what it shows ----
 *
 * A part is laid out like a complete text. It ends at a line end if possible, and records the
 * Markdown state at its start. To make the parts decodes long messages, once. */

/* Maximum size of a part in bytes; a short remainder is added to the last one. */
#define BROWSE_PART ((size_t)16 << 10)

struct browse_part {
    size_t message;
    size_t at, n;          /* range of its content; n SIZE_MAX: all of it */
    struct markdown state; /* at the start of the part; fn and arg are not set */
    bool laid;             /* `lines` is up to date */
    struct browse_lines lines;
    size_t body; /* the first line of the content */
    size_t call; /* the first line with a match in the tool calls; 0: none */
};

/* Initialise with zeros. */
struct browse_parts {
    struct browse_part *at;
    size_t count, cap;
    size_t *first; /* index of the first part of each message; first[messages] is `count` */
    /* private: the content of each long message, and its memory unless it points into the line */
    struct str *contents;
    struct buf *texts;
    size_t messages;
};

/* Divides the messages of a thread, which must outlive the parts. */
void browse_parts_make(struct browse_parts *p, const struct thread *t);
void browse_parts_release(struct browse_parts *p);
/* Return the index of the part that contains byte `at` of a message, and of its last part. */
size_t browse_parts_find(const struct browse_parts *p, size_t message, size_t at);
size_t browse_parts_last(const struct browse_parts *p, size_t message);
/* Returns the content of a message, borrowed from the parts, from the line, or from scratch (set up
 * with BUF_LINE). Only short messages are decoded into scratch. */
struct str browse_parts_text(const struct browse_parts *p, const struct thread *t, size_t message,
                             struct buf *scratch);

/* ---- layout of a part ----
 *
 * The first part of a message also holds its header, the last one its tool calls. The arguments and
 * the result of a tool take one line each unless they are unfolded. */

/* At most this many bytes of the arguments of a call are laid out. */
#define BROWSE_SHOWN ((size_t)32 << 10)
/* A hit may extend over the end of its part by at most this many bytes. */
#define BROWSE_OVERLAP ((size_t)512)

struct browse_part_view {
    size_t width;
    bool first, last; /* whether it is the first or last part of its message */
    bool unfolded;
    struct str tool;          /* the name of the tool whose result it is */
    struct pattern *pattern;  /* its matches are marked; NULL: none */
    struct browse_place here; /* the current hit, a range of the content; n 0: none */
};

/* Lays out a part of a message. `text` is the whole content of the message. */
void browse_part_lay(struct browse_part *part, const struct message *m, struct str text,
                     const struct browse_part_view *view);
/* Appends the name of the tool whose result a message is. An earlier message has the call. */
void browse_add_tool_name(struct buf *out, const struct thread *t, size_t message);
/* Returns whether the name or the arguments of a tool call of the message match. */
bool browse_calls_match(const struct message *m, struct pattern *pattern);
void browse_part_unlay(struct browse_part *part);
/* Returns the line that shows byte `at` of the part. */
size_t browse_part_line(const struct browse_part *part, size_t at);

#endif
