/*
 * browse_pane - the messages of one session in a panel: what of them is to be seen, where the hits
 * of a search are, what is folded.
 *
 * Positions are a part of a message (browse/text) and a line of it, and only what is near is
 * laid out, so that a session, and a message, may be of any length.
 */
#ifndef CHATHIST_BROWSE_PANEL_H
#define CHATHIST_BROWSE_PANEL_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/history/thread.h"
#include "chathist/search/pattern.h"
#include "browse/text.h"

struct browse_pane {
    struct thread thread;
    struct browse_parts parts;
    struct browse_item *items; /* one for each part */
    bool *open;                /* of each message: it is unfolded */
    size_t width, height;
    size_t top, top_line; /* the part and the line that are seen first */
    size_t at;            /* the message that is acted on; it is seen */
    bool unfolded;        /* all of them, unless told otherwise */
    const char *role;     /* only its messages; NULL: all. Borrowed */
    /* private */
    struct browse_shown {
        size_t from;   /* the next message that the role lets through, itself included */
        size_t before; /* the one before it */
    } * shown;         /* of each message; NULL: all are */
    struct pattern pattern;
    bool searched;              /* there is something to be looked for */
    bool has_hit;               /* one is looked at: */
    size_t hit;                 /* its message, */
    struct browse_place hit_at; /* and where in the content */
    size_t laid;                /* how many items are */
    struct browse_seek {        /* the next one is being looked for */
        bool going, on;         /* on, or back */
        size_t message, place;  /* where it goes on */
        size_t passed;          /* messages */
    } seek;
};

void browse_pane_init(struct browse_pane *p);
void browse_pane_release(struct browse_pane *p);
/* Takes a thread and its parts over. `same`: it is the one that was there, read again: the place
 * stays. */
void browse_pane_take(struct browse_pane *p, struct thread *t, struct browse_parts *parts,
                      bool same);
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
/* Goes back to a place that was seen before: a message, which of its parts, a line of it; what was
 * acted on. */
void browse_pane_return(struct browse_pane *p, struct str top, size_t part, size_t line,
                        struct str message);
/* Of its message's parts, which one is at the top. */
size_t browse_pane_top_part(const struct browse_pane *p);
void browse_pane_fold(struct browse_pane *p);
void browse_pane_fold_all(struct browse_pane *p);
/* The message that a line of the panel belongs to is acted on. */
void browse_pane_point(struct browse_pane *p, size_t row);

/* Line `row` of the panel: false below the last one. *lines is borrowed until the next call that is
 * no browse_pane_line; *current: it is a line of the message that is acted on. */
bool browse_pane_line(struct browse_pane *p, size_t row, const struct browse_lines **lines,
                      size_t *line, bool *current);

/* The place of a message, SIZE_MAX: none. */
size_t browse_pane_find(const struct browse_pane *p, struct str message);

/* A hit may be far away. It is looked for in slices of messages, this many bytes each, so that keys
 * do not wait; a message counts for some bytes. */
#define BROWSE_SLICE ((size_t)256 << 10)
#define BROWSE_SLICE_MESSAGE ((size_t)256)

enum browse_found { BROWSE_FOUND, BROWSE_NOT_FOUND, BROWSE_GOES_ON };

/* To the next hit, or the one before; the other end follows the last one. That it goes on means
 * that browse_pane_seek is to be called until it does not; nothing has moved until then. */
enum browse_found browse_pane_next_hit(struct browse_pane *p, bool on);
enum browse_found browse_pane_seek(struct browse_pane *p);
/* Shows a message, and of it the hit at that place of its content. false: it is not there. */
bool browse_pane_show(struct browse_pane *p, struct str message, size_t at);

#endif
