/*
 * browse_view - hist-browse on the terminal, /dev/tty: draws the state, reads keys and the mouse.
 * The only user of ncurses.
 *
 * Standard output stays free for what is chosen.
 */
#ifndef CHATHIST_BROWSE_VIEW_H
#define CHATHIST_BROWSE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "browse/model.h"

struct browse_view;

enum browse_input_kind { BROWSE_KEY, BROWSE_PASTED, BROWSE_CLICK, BROWSE_WHEEL };
struct browse_input {
    enum browse_input_kind kind;
    int32_t key;        /* of BROWSE_PASTED a character of a paste */
    size_t row, column; /* of the mouse */
    long lines;         /* that the wheel was turned by */
};

/* Takes the terminal over. NULL: there is none, or it cannot move its cursor: ERR_USAGE. */
struct browse_view *browse_view_open(bool color, struct err *e);
/* Gives it back as it was. */
void browse_view_close(struct browse_view *v);
/* The same for another program, and back again. */
void browse_view_leave(struct browse_view *v);
void browse_view_return(struct browse_view *v);

/* To be polled for keys. */
int browse_view_fd(const struct browse_view *v);
/* The next key or click: false when there is none now. */
bool browse_view_input(struct browse_view *v, struct browse_input *input);
/* The size of the terminal has changed, or the screen was spoiled. */
void browse_view_measure(struct browse_view *v, size_t *rows, size_t *columns);
void browse_view_spoilt(struct browse_view *v);
/* `now` (µs) is the time of day. */
void browse_view_draw(struct browse_view *v, struct browse *b, int64_t now);

/*
 * browse_words - what hist-browse says round its panels: titles, counts, the foot; names of files.
 */

/* Each adds a line made safe to show. Beside the box: which line of how many is chosen, the role
 * and the scope, when they are not the usual ones. Above the list, above the messages. At the foot:
 * a question, what there is to say, or the hints. */
void browse_title_box(struct buf *out, const struct browse *b);
void browse_title_list(struct buf *out, const struct browse *b);
void browse_title_text(struct buf *out, const struct browse *b);
void browse_foot(struct buf *out, const struct browse *b);
/* Adds the usual name of a file to which the session that was asked about is exported. */
void browse_add_file_name(struct buf *out, const struct browse *b);

#endif
