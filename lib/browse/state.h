/*
 * state - saves the position of the browser for each history in `${state_home}/chathist/browse`:
 * the search with its role and scope, the chosen line, and both scroll positions.
 *
 * The file has one JSON object on each line, the most recent one last, and at most BROWSE_KEPT
 * lines. If two browsers close at the same moment, the position of one of them may be lost.
 */
#ifndef CHATHIST_BROWSE_STATE_H
#define CHATHIST_BROWSE_STATE_H

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "browse/model.h"

#define BROWSE_KEPT 100

/* Applies the line for a history to a new state. Returns 0, also if the file has no such line, or
 * -1 with *e set. */
int browse_state_load(struct browse *b, const char *path, struct str history, struct err *e);
/* Replaces the line for a history. Returns 0, or -1 with *e set. */
int browse_state_save(const struct browse *b, const char *path, struct str history, struct err *e);

#endif
