/*
 * view - draws the state on the terminal (/dev/tty) and reads keys and the mouse, with ncurses.
 *
 * Standard output is not used, so that it can carry the user's choice.
 */
#ifndef CHATHIST_BROWSE_VIEW_H
#define CHATHIST_BROWSE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "browse/model.h"

struct browse_view;

enum browse_input_kind { BROWSE_KEY, BROWSE_PASTED, BROWSE_CLICK, BROWSE_WHEEL };
struct browse_input {
    enum browse_input_kind kind;
    int32_t key;        /* for BROWSE_PASTED: a character of the paste */
    size_t row, column; /* of the mouse */
    long lines;         /* by which the wheel was turned */
};

/* Sets the terminal up; `mouse`: its mouse is used, too. Returns NULL with *e (ERR_USAGE) if no
 * terminal exists or it is too simple. */
struct browse_view *browse_view_open(bool color, bool mouse, struct err *e);
/* Restores the terminal and frees the view. */
void browse_view_close(struct browse_view *v);
/* Restore the terminal for another program, and set it up again afterwards. */
void browse_view_leave(struct browse_view *v);
void browse_view_return(struct browse_view *v);

/* Returns the descriptor to poll for keys. */
int browse_view_fd(const struct browse_view *v);
/* Gets the next key or click. Returns false if none has arrived. */
bool browse_view_input(struct browse_view *v, struct browse_input *input);
/* Measures the terminal; makes the next drawing repaint the whole screen. */
void browse_view_measure(struct browse_view *v, size_t *rows, size_t *columns);
void browse_view_spoilt(void);
/* Draws the state. */
void browse_view_draw(struct browse_view *v, struct browse *b);

/* Each of these appends one line that is safe to show: beside the search box (chosen line, number
 * of lines, role and scope unless they are the defaults), above the list, above the messages, and
 * at the foot (a question, a report, or hints). */
void browse_title_box(struct buf *out, const struct browse *b);
void browse_title_list(struct buf *out, const struct browse *b);
void browse_title_text(struct buf *out, struct browse *b);
void browse_foot(struct buf *out, const struct browse *b);
/* Append the lines of a text in place of an empty list, or of messages of which none has the wanted
 * role; nothing if there is something to list or show. */
void browse_advice_list(struct buf *out, const struct browse *b);
void browse_advice_text(struct buf *out, const struct browse *b);

#endif
