/*
 * browse_pane - the messages of one session in a panel: what of them is to be seen, where the hits of
 * a search are, what is folded.
 *
 * Positions are a message and a line of it, and only what is near is laid out, so that a session may be
 * of any length. Of a message up to BROWSE_SHOWN bytes are laid out, those round the hit that is
 * looked at; the rest is said to be there.
 */
#ifndef CHATHIST_TUI_BROWSE_PANE_H
#define CHATHIST_TUI_BROWSE_PANE_H

#include <stdbool.h>
#include <stddef.h>

#include "hist/pattern.h"
#include "hist/thread.h"
#include "tui/browse_item.h"

struct browse_pane {
    struct thread thread;
    struct browse_item *items; /* one for each message */
    size_t width, height;
    size_t top, top_line; /* the first line that is seen */
    size_t at;            /* the message that is acted on; it is seen */
    bool unfolded;        /* all of them, unless told otherwise */
    const char *role;     /* only its messages; NULL: all. Borrowed */
    /* private */
    struct pattern pattern;
    bool searched;         /* there is something to be looked for */
    bool has_hit;          /* one is looked at: */
    size_t hit, hit_index; /* its message, and which of its hits */
    size_t laid;           /* how many items are */
};

void browse_pane_init(struct browse_pane *p);
void browse_pane_release(struct browse_pane *p);
/* Takes the thread over. `same`: it is the one that was there, read again: the place stays. */
void browse_pane_take(struct browse_pane *p, struct thread *t, bool same);
void browse_pane_resize(struct browse_pane *p, size_t width, size_t height);
/* Marks the hits of a text; an empty one has none. */
void browse_pane_search(struct browse_pane *p, struct str text);
void browse_pane_set_role(struct browse_pane *p, const char *role);

/* Is there a message to be acted on? */
bool browse_pane_has(const struct browse_pane *p);
void browse_pane_scroll(struct browse_pane *p, long lines);
void browse_pane_first(struct browse_pane *p);
void browse_pane_last(struct browse_pane *p);
/* To the next message, or the one before. */
void browse_pane_step(struct browse_pane *p, bool on);
/* Goes back to a place that was seen before. */
void browse_pane_return(struct browse_pane *p, struct str top, size_t line, struct str message);
void browse_pane_fold(struct browse_pane *p);
void browse_pane_fold_all(struct browse_pane *p);
/* The message that a line of the panel belongs to is acted on. */
void browse_pane_point(struct browse_pane *p, size_t row);

/* Line `row` of the panel: false below the last one. *lines is borrowed until the next call that is no
 * browse_pane_line; *current: it is a line of the message that is acted on. */
bool browse_pane_line(struct browse_pane *p, size_t row, const struct browse_lines **lines,
                      size_t *line, bool *current);

/* ---- for tui/browse_pane_hits ---- */

/* Is it let through by the role? */
bool browse_pane_shows(const struct browse_pane *p, size_t i);
/* The place of a message, SIZE_MAX: none. */
size_t browse_pane_find(const struct browse_pane *p, struct str message);
/* A message laid out; and to be laid out anew. */
struct browse_item *browse_pane_lay(struct browse_pane *p, size_t i);
void browse_pane_unlay(struct browse_pane *p, size_t i);
/* Brings a line of a message into view, so many lines below the top unless it is there. */
void browse_pane_bring(struct browse_pane *p, size_t i, size_t line, size_t above);

#endif
