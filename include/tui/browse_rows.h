/*
 * browse_rows - what the list of hist-browse holds: sessions, or the hits of a search; and how one
 * of them is shown on a line.
 *
 * Both are copies that stand for themselves, so that another thread can make them.
 */
#ifndef CHATHIST_TUI_BROWSE_ROWS_H
#define CHATHIST_TUI_BROWSE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hist/search.h"
#include "hist/session.h"
#include "tui/browse_text.h"

struct browse_session {
    size_t history; /* which of those that are looked at */
    struct str id, preview;
    int64_t used; /* µs; 0: its time cannot be read */
    uint64_t count;
    off_t first, end; /* where its lines lie in the file */
};

/* Zero-initialise. */
struct browse_sessions {
    struct browse_session *at; /* newest first */
    size_t count;
    bool partial; /* of a part of the file: counts and previews are not known yet */
    struct buf text;
};

/* From the lists of so many histories. */
void browse_sessions_make(struct browse_sessions *s, const struct session_list *lists,
                          size_t histories, bool partial);
void browse_sessions_release(struct browse_sessions *s);
/* Its place, SIZE_MAX: none. */
size_t browse_sessions_find(const struct browse_sessions *s, size_t history, struct str id);

struct browse_hit {
    size_t history;
    struct str session, message, role, snippet; /* in `own` */
    struct browse_place mark;                   /* in the snippet */
    size_t at;                                  /* of the match, in the content */
    char *own;
};

/* Zero-initialise. */
struct browse_hits {
    struct browse_hit *at;
    size_t count, cap;
};

void browse_hits_add(struct browse_hits *h, size_t history, const struct hit *hit);
/* Moves what `from` holds behind what `to` holds. */
void browse_hits_move(struct browse_hits *to, struct browse_hits *from);
void browse_hits_release(struct browse_hits *h);

/* Each adds a line of so many columns: when it was used (the time of today, else the day), how many
 * messages, the preview; the end of the session's id, the role, the snippet with the match marked. */
void browse_row_session(struct browse_lines *l, const struct browse_session *s, bool partial,
                        size_t columns, int64_t now);
void browse_row_hit(struct browse_lines *l, const struct browse_hit *h, size_t columns);

#endif
