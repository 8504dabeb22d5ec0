/*
 * list - the rows of the list: sessions, or hits of a search. How they are kept and drawn. Both own
 * their texts.
 */
#ifndef CHATHIST_BROWSE_LIST_H
#define CHATHIST_BROWSE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/hash_map.h"
#include "chathist/cli/session_rows.h"
#include "chathist/history/location.h"
#include "chathist/search/search.h"
#include "browse/marks.h"
#include "browse/text.h"

/* The orders of the sessions. */
enum browse_order { BROWSE_NEWEST, BROWSE_OLDEST, BROWSE_LONGEST, BROWSE_BY_TITLE, BROWSE_ORDERS };
const char *browse_order_name(enum browse_order order);

#define BROWSE_ANY_HISTORY SIZE_MAX

/* Replaces the list of a history in r->lists, moving it out of *list (NULL: none is replaced), and
 * puts the sessions of the first `scope` histories in order. */
void browse_sessions_put(struct session_rows *r, size_t history, struct session_list *list,
                         size_t scope, enum browse_order order);
/* Returns the place of a session, or SIZE_MAX. `history` is an index or BROWSE_ANY_HISTORY; a
 * copied history has the same ids. */
size_t browse_sessions_find(const struct session_rows *r, size_t history, struct str id);

struct browse_hit {
    size_t history, group; /* group: number of its session among those with hits */
    int64_t time;          /* in microseconds since 1970; 0: unreadable */
    struct str session, message, role, snippet; /* in `own` */
    struct browse_place mark;                   /* in the snippet */
    size_t at; /* offset of the match in the content; 0: in a call */
    char *own;
};

/* A row of the list: a hit, or several results of tools that are folded. */
struct browse_hit_row {
    size_t hit;    /* in `at`; of folded ones the first */
    size_t folded; /* how many; 0: none */
};

/* Hits: those of one session stand together, the newest first, but after the first one results of
 * tools are the last; the sessions stand in the order of their first hits, or the session with the
 * most hits is first. Zero-initialise. */
struct browse_hits {
    struct browse_hit *at;
    size_t count, cap;
    struct hash_map groups;      /* numbers of sessions */
    struct browse_hit_row *rows; /* made by browse_hits_move and the functions below it */
    size_t row_count, row_cap;
    struct hash_map turned; /* the sessions that are not folded, or with `unfolded` those that are;
                             * by the same names as in `groups` */
    bool unfolded;
};

void browse_hits_add(struct browse_hits *h, size_t history, const struct hit *hit);
/* Moves the hits of `from` to the end of `to`, or to the end of their session there. `most`: the
 * session with the most hits is the first; `to` has this order already. */
void browse_hits_move(struct browse_hits *to, struct browse_hits *from, bool most);
/* Returns whether a row is one of the results that can be folded. */
bool browse_hits_folds(const struct browse_hits *h, size_t row);
/* Folds or unfolds the results of the session of a row, or of `all`. Returns the row that has its
 * hit then. */
size_t browse_hits_fold(struct browse_hits *h, size_t row, bool all);
/* Empties *h, but keeps which rows are folded. Returns what it had, without that. */
struct browse_hits browse_hits_restart(struct browse_hits *h);
/* Changes the order. */
void browse_hits_sort(struct browse_hits *h, bool most);
void browse_hits_release(struct browse_hits *h);
/* Returns the row that has a hit in this message of this session, or SIZE_MAX. The history is
 * chosen as by browse_sessions_find. */
size_t browse_hits_find(const struct browse_hits *h, size_t history, struct str session,
                        struct str message);
/* How the rows of a list are drawn. */
struct browse_rows {
    size_t columns;
    int64_t now;                  /* in microseconds since 1970 */
    const struct history *places; /* the name of its history is in each row; NULL: it is not */
    size_t places_count;
    const struct browse_marks *marks; /* may be NULL */
};

/* Each appends one line. For a session: last use, number of messages, history, title or preview.
 * For a hit: time, role, history, and the snippet with the match marked; `follows`: it stands below
 * a hit of the same session, and leaves out time and history. If any session is marked or to be
 * deleted, each row begins with two columns for `*` and `D`. */
void browse_row_session(struct browse_lines *l, const struct row *r, const struct browse_rows *how);
void browse_row_hit(struct browse_lines *l, const struct browse_hit *h, bool follows,
                    const struct browse_rows *how);
/* Appends the line of `count` results that are folded. */
void browse_row_folded(struct browse_lines *l, const struct browse_hit *first, size_t count,
                       const struct browse_rows *how);

#endif
