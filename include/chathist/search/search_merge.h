/*
 * search_merge - the hits of several searches, each of another history, in one order: the newest
 * first, and of the same time, that of the search that was added first.
 *
 * A search reads nothing until its history can have the next hit.
 */
#ifndef CHATHIST_SEARCH_SEARCH_MERGE_H
#define CHATHIST_SEARCH_SEARCH_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/search/search.h"

/* Initialise with zeros. */
struct search_merge {
    /* private */
    struct search_source *sources; /* the one with the next hit first */
    size_t count, cap;
};

/* Adds a search, which is borrowed. `number` is returned with its hits; it is greater than that of
 * the search before. Returns 0, or -1 with *e set. */
int search_merge_add(struct search_merge *m, size_t number, struct search *s, struct err *e);
void search_merge_release(struct search_merge *m);
/* Like search_next, for all searches; *number is that of the search. After an error, the next call
 * continues with the other searches. */
int search_merge_next(struct search_merge *m, size_t *number, struct hit *h, struct err *e);

#endif
