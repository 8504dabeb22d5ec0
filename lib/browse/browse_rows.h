/*
 * browse_rows - what the list of hist-browse holds: sessions, or the hits of a search; and how one
 * of them is shown on a line.
 *
 * Both are copies that stand for themselves, so that another thread can make them.
 */
#ifndef CHATHIST_BROWSE_BROWSE_ROWS_H
#define CHATHIST_BROWSE_BROWSE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/search/search.h"
#include "chathist/history/session_list.h"
#include "browse/text.h"

struct browse_session {
    size_t history; /* which of those that are looked at */
    struct str id, preview;
    int64_t used; /* µs; 0: its time cannot be read */
    uint64_t count;
    off_t last_line;  /* where its newest line begins */
    off_t first, end; /* of a partial list: where its lines lie in the file */
    char *own;
};

/* A session that was asked for by its id. */
#define BROWSE_ANY_HISTORY SIZE_MAX
struct browse_sought {
    size_t history;
    struct buf id; /* empty: none */
    size_t place;  /* in the list; SIZE_MAX: there is none */
    uint64_t count;
    off_t last_line;
};

/* What is wanted of the list, or a part of it. Zero-initialise. */
struct browse_sessions {
    size_t total;              /* of the list */
    size_t first;              /* the place of at[0] */
    struct browse_session *at; /* newest first */
    size_t count, cap;
    unsigned number;    /* with another one places are others, too; 0: of no list yet */
    uint64_t bad_lines; /* of the first history */
    bool partial;       /* of a part of the file: counts and previews are not known yet */
    /* The one of the list that is to stay chosen, and that whose messages are shown. */
    struct browse_sought keep, shown;
};

/* What is to be read of the list. */
struct browse_wish {
    bool all;
    size_t first,
        count; /* the places in the list of that number; in another one, those round `keep` */
    unsigned number;
    struct browse_sought keep, shown;
};

void browse_sought_set(struct browse_sought *s, size_t history, struct str id);
void browse_wish_release(struct browse_wish *w);

void browse_sessions_add(struct browse_sessions *s, size_t history, const struct session *from);
void browse_sessions_release(struct browse_sessions *s);
/* The session at a place of the list; NULL: there is none, or it is not in this part. */
const struct browse_session *browse_sessions_at(const struct browse_sessions *s, size_t place);
/* Its place, SIZE_MAX: not in this part. */
size_t browse_sessions_find(const struct browse_sessions *s, size_t history, struct str id);
/* The same in the whole list: false when that is to be asked for. */
bool browse_sessions_tell(const struct browse_sessions *s, size_t history, struct str id,
                          size_t *place);

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
/* The place of a hit in a message, of a session of that id: SIZE_MAX: none. A copied history has
 * the same ids. `history`: one, or BROWSE_ANY_HISTORY. */
size_t browse_hits_find(const struct browse_hits *h, size_t history, struct str session,
                        struct str message);
/* Are hits that are read again as many as there were, with the one that was at a place? One that is
 * behind very many new ones, or gone, is not waited for. */
bool browse_hits_caught_up(const struct browse_hits *again, const struct browse_hits *had,
                           size_t at);

/* Each adds a line of so many columns: when it was used (the time of today, else the day), how many
 * messages, the preview; the end of the session's id, the role, the snippet with the match
 * marked. */
void browse_row_session(struct browse_lines *l, const struct browse_session *s, bool partial,
                        size_t columns, int64_t now);
void browse_row_hit(struct browse_lines *l, const struct browse_hit *h, size_t columns);

#endif
