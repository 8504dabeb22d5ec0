/*
 * marks - the sessions that the user has marked in the list, and those that are to be deleted when
 * the browser is left.
 */
#ifndef CHATHIST_BROWSE_MARKS_H
#define CHATHIST_BROWSE_MARKS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/hash_map.h"

struct browse_mark {
    size_t history;
    struct str id; /* owned by the marks */
    bool marked;
    size_t deletion; /* the number of the command that is to delete it, from 1; 0: it stays */
};

/* Initialise with zeros. */
struct browse_marks {
    struct browse_mark *at; /* in the order in which they were marked first */
    size_t count, cap;
    size_t marked, deleted; /* how many of them are */
    size_t deletions;       /* the number of the last command that deletes */
    struct hash_map numbers;
};

void browse_marks_release(struct browse_marks *m);
/* Returns the entry of a session, or NULL. `m` may be NULL: nothing is known. */
const struct browse_mark *browse_marks_find(const struct browse_marks *m, size_t history,
                                            struct str id);
/* Sets whether the session is marked, or which command deletes it (0: none). */
void browse_marks_set(struct browse_marks *m, size_t history, struct str id, bool marked);
void browse_marks_delete(struct browse_marks *m, size_t history, struct str id, size_t deletion);
/* Deletes all that are marked, as one command, and unmarks them. */
void browse_marks_delete_marked(struct browse_marks *m);
/* Keeps the sessions of the last command that deletes. Returns one of them, or NULL if none is to
 * be deleted. */
const struct browse_mark *browse_marks_undo(struct browse_marks *m);
/* Keeps all. */
void browse_marks_keep(struct browse_marks *m);

#endif
