/*
 * list - the rows of the list: sessions, or hits of a search. How they are read, kept and drawn.
 *
 * Rows are copies that own their texts, so that the worker can make them in another thread.
 */
#ifndef CHATHIST_BROWSE_LIST_H
#define CHATHIST_BROWSE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/session_list.h"
#include "chathist/search/search.h"
#include "browse/text.h"

struct browse_session {
    size_t history; /* index of its history */
    struct str id, preview;
    int64_t used; /* time of last use in µs since 1970; 0: unreadable */
    uint64_t count;
    off_t last_line;  /* offset of its newest line */
    off_t first, end; /* in a partial list: range of the file with its lines */
    char *own;
};

/* A session requested by its id. */
#define BROWSE_ANY_HISTORY SIZE_MAX
struct browse_sought {
    size_t history;
    struct buf id; /* empty: no session */
    size_t place;  /* in the list; SIZE_MAX: not found */
    uint64_t count;
    off_t last_line;
};

/* A part of the list. Initialise with zeros. */
struct browse_sessions {
    size_t total;              /* length of the whole list */
    size_t first;              /* place of at[0] in the list */
    struct browse_session *at; /* newest first */
    size_t count, cap;
    unsigned number;    /* version of the list; places differ between versions; 0: none yet */
    uint64_t bad_lines; /* in the first history */
    bool partial;       /* read from a part of the file: counts and previews are unknown */
    /* The session to keep chosen, and the one whose messages are shown. */
    struct browse_sought keep, shown;
};

/* The part of the list to read. */
struct browse_wish {
    bool all;
    /* Places in version `number` of the list; in another version, the places around `keep`. */
    size_t first, count;
    unsigned number;
    struct browse_sought keep, shown;
};

void browse_sought_set(struct browse_sought *s, size_t history, struct str id);
void browse_wish_release(struct browse_wish *w);

void browse_sessions_add(struct browse_sessions *s, size_t history, const struct session *from);
void browse_sessions_release(struct browse_sessions *s);
/* Returns the session at a place of the list, or NULL if it is not in this part. */
const struct browse_session *browse_sessions_at(const struct browse_sessions *s, size_t place);
/* Returns the place of a session, or SIZE_MAX if it is not in this part. */
size_t browse_sessions_find(const struct browse_sessions *s, size_t history, struct str id);
/* Gets the place in the whole list. Returns false if this part cannot say. */
bool browse_sessions_tell(const struct browse_sessions *s, size_t history, struct str id,
                          size_t *place);

struct browse_hit {
    size_t history;
    struct str session, message, role, snippet; /* in `own` */
    struct browse_place mark;                   /* in the snippet */
    size_t at;                                  /* offset of the match in the content */
    char *own;
};

/* Zero-initialise. */
struct browse_hits {
    struct browse_hit *at;
    size_t count, cap;
};

void browse_hits_add(struct browse_hits *h, size_t history, const struct hit *hit);
/* Moves the hits of `from` to the end of `to`. */
void browse_hits_move(struct browse_hits *to, struct browse_hits *from);
void browse_hits_release(struct browse_hits *h);
/* Returns the place of a hit in this message of this session, or SIZE_MAX. `history` is an index or
 * BROWSE_ANY_HISTORY; a copied history has the same ids. */
size_t browse_hits_find(const struct browse_hits *h, size_t history, struct str session,
                        struct str message);
/* Returns true if a repeated search has found as many hits as before, including the one that was at
 * this place. A hit after very many new ones, or one that is gone, is not required. */
bool browse_hits_caught_up(const struct browse_hits *again, const struct browse_hits *had,
                           size_t at);

/* Each appends one line of `columns` columns. For a session: last use, number of messages, preview. For
 * a hit: end of the session id, role, and the snippet with the match marked. */
void browse_row_session(struct browse_lines *l, const struct browse_session *s, bool partial,
                        size_t columns, int64_t now);
void browse_row_hit(struct browse_lines *l, const struct browse_hit *h, size_t columns);

/* ---- detecting changes of a history ----
 *
 * A change shows in the inode, the size, or the time of the last status change, which programs cannot
 * set. Only then is the file read, to see whether its former content is still at its beginning. */

/* The state of a file. Initialise with zeros, which means that it does not exist. Private. */
struct browse_watch {
    bool exists;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed;
    uint64_t sample; /* checksum of its beginning and end */
};

enum browse_change {
    BROWSE_SAME,
    BROWSE_GROWN, /* lines were appended, as far as samples of the former content can show */
    BROWSE_OTHER, /* any other change */
};

/* Compares the file with *w and updates *w. A file that cannot be examined counts as absent. */
enum browse_change browse_watch_look(struct browse_watch *w, const char *path);

/* ---- reading the list: the sessions of one or several histories, merged by last use ---- */

/* A session of the merged list. */
struct browse_entry {
    size_t history;
    const struct session *session;
};

struct browse_source {
    const struct history *histories;
    size_t count;
    /* private */
    struct session_list *lists;   /* one for each history */
    struct browse_watch *watches; /* the states in which the histories were read */
    bool *open;                   /* which lists were read */
    size_t scope;                 /* how many of the histories are in the merged list */
    struct browse_entry *merged;
    size_t total;
    unsigned number;
};

/* The histories are borrowed. */
void browse_source_init(struct browse_source *s, const struct history *histories, size_t count);
void browse_source_release(struct browse_source *s);
/* Reads the sessions of `wish` into `out`, which is initialised with zeros; histories that have not
 * changed are not read again. Returns 0, or -1 with *e set and an empty list; the kind is ERR_SIGNAL
 * if history.cancel stopped it. */
int browse_source_read(struct browse_source *s, const struct browse_wish *wish,
                       struct browse_sessions *out, struct err *e);

#endif
