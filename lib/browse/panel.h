/*
 * panel - the messages of one session: which lines are visible, where the hits of a search are, and
 * which messages are folded.
 *
 * A position is a part of a message (browse/text) and a line of that part. Only parts near the
 * visible lines are laid out, so that sessions and messages may have any length.
 */
#ifndef CHATHIST_BROWSE_PANEL_H
#define CHATHIST_BROWSE_PANEL_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/history/thread.h"
#include "chathist/search/pattern.h"
#include "browse/text.h"

/* A position in a thread that may be read again meanwhile. */
struct browse_position {
    struct str top;    /* id of the message at the top of the panel */
    size_t part, line; /* which part of this message, counted from 0, and which line of the part */
    struct str at;     /* id of the current message */
};

struct browse_pane {
    struct thread thread;
    struct browse_parts parts;
    bool *open; /* for each message: whether it is unfolded */
    size_t width, height;
    size_t top, top_line; /* part and line at the top of the panel */
    size_t at;            /* the current message, on which commands act; it is visible */
    size_t unseen;        /* messages that were added below the visible ones */
    bool unfolded;        /* the state of messages that were not folded or unfolded singly */
    const char *role;     /* only messages of this role are shown; NULL: all. Borrowed */
    /* private */
    struct pattern pattern;
    bool searched;              /* `pattern` holds a text */
    bool has_hit;               /* there is a current hit: */
    size_t hit;                 /* its message */
    struct browse_place hit_at; /* its range in the content; at SIZE_MAX: it is in the calls */
    size_t *hits;               /* number of hits that begin in each part */
    size_t counted;             /* for how many parts that is known */
    size_t laid;                /* number of parts that are laid out */
};

void browse_pane_init(struct browse_pane *p);
void browse_pane_release(struct browse_pane *p);
/* Takes ownership of a thread and its parts. `same`: it is the session already shown, read again,
 * and the position is kept. */
void browse_pane_set(struct browse_pane *p, struct thread *t, struct browse_parts *parts,
                     bool same);
void browse_pane_resize(struct browse_pane *p, size_t width, size_t height);
/* Marks the matches of a text, or the words of a query (search/query.h); an empty text and a
 * malformed query match nothing. */
void browse_pane_search(struct browse_pane *p, struct str text, bool is_query);
void browse_pane_set_role(struct browse_pane *p, const char *role);

/* Returns whether there is a current message. */
bool browse_pane_has(const struct browse_pane *p);
void browse_pane_scroll(struct browse_pane *p, long lines);
void browse_pane_first(struct browse_pane *p);
void browse_pane_last(struct browse_pane *p);
/* Moves to the next message, or to the previous one. */
void browse_pane_step(struct browse_pane *p, bool on);
/* Gets the position in the panel; the ids are borrowed from the thread. Returns false if the panel
 * is empty. */
bool browse_pane_position(const struct browse_pane *p, struct browse_position *at);
/* Restores a position as far as its messages are there. */
void browse_pane_return(struct browse_pane *p, const struct browse_position *at);
/* Folds or unfolds the current message, or all messages. */
void browse_pane_fold(struct browse_pane *p, bool all);
/* Makes the message in row `row` of the panel the current one. */
void browse_pane_point(struct browse_pane *p, size_t row);

/* Gets row `row` of the panel: line *line of *lines. *current is set if it belongs to the current
 * message. Returns false below the last line. *lines stays valid until a function other than
 * browse_pane_line is called. */
bool browse_pane_line(struct browse_pane *p, size_t row, const struct browse_lines **lines,
                      size_t *line, bool *current);

/* Returns the index of the message with this id, or SIZE_MAX. */
size_t browse_find_message(const struct thread *t, struct str id);

/* Counts hits in some more parts, as long as browse_pane_is_counting: keys are answered in
 * between. */
#define BROWSE_COUNT_PARTS 16
void browse_pane_count(struct browse_pane *p);
bool browse_pane_is_counting(const struct browse_pane *p);
/* Moves to the next hit, or to the previous one, when all are counted; after the last hit comes the
 * first, and *wrapped is set. Returns false without any hit. */
bool browse_pane_next_hit(struct browse_pane *p, bool on, bool *wrapped);
/* Gets the number of the current hit, from 1, and of all hits. Returns false without a current
 * hit, or if not all were counted. */
bool browse_pane_hit_number(struct browse_pane *p, size_t *number, size_t *total);
/* Shows the message with this id and makes the hit at offset `at` of its content the current one.
 * Returns false without such a message. */
bool browse_pane_show(struct browse_pane *p, struct str message, size_t at);

#endif
