/*
 * browse_state - what hist-browse finds again when it is opened: the search and its role and scope,
 * what was chosen, both scroll positions. For each history, in `${state_home}/chathist/browse`.
 *
 * One JSON object a line, the history that was closed last at the end, BROWSE_KEPT at most. Of two
 * browsers that close at the same moment one may be forgotten.
 */
#ifndef CHATHIST_BROWSE_STATE_H
#define CHATHIST_BROWSE_STATE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "browse/model.h"

#define BROWSE_KEPT 100

/* Adds the line, with its newline. */
void browse_state_add(struct buf *out, const struct browse *b, struct str history);
/* Has a state that was just begun be as a line says: false when it is of another history, or
 * none. */
bool browse_state_take(struct browse *b, struct str line, struct str history);

/* The same with the file. 0, also when there is nothing to be found; -1. */
int browse_state_load(struct browse *b, const char *path, struct str history, struct err *e);
int browse_state_save(const struct browse *b, const char *path, struct str history, struct err *e);

#endif
