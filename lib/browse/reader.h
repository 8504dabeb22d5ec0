/*
 * reader - reads what the state of the browser wants: sessions and messages at once, and the hits
 * of a search in slices, so that keys are answered in between.
 */
#ifndef CHATHIST_BROWSE_READER_H
#define CHATHIST_BROWSE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/history/location.h"
#include "browse/model.h"

struct browse_reader;

/* The histories are borrowed. */
struct browse_reader *browse_reader_new(const struct history *histories, size_t count);
/* Also writes what the searches have learned to the skip indexes, unless a signal has come. */
void browse_reader_free(struct browse_reader *r);

/* Reads what b->wants says, and clears it: the lists of the histories that have changed since they
 * were read last, the messages for the panel, and nothing yet of a search, which takes the place of
 * the one before. Returns whether a history has changed. */
bool browse_read(struct browse_reader *r, struct browse *b);
/* Returns whether browse_search_on has something to do. */
bool browse_is_busy(const struct browse_reader *r, const struct browse *b);
/* Continues the search for some milliseconds, until it has b->hits_wanted hits; then counts all of
 * them. Returns whether it has passed something to the state. */
bool browse_search_on(struct browse_reader *r, struct browse *b);

#endif
