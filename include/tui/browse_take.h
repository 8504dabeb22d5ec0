/*
 * browse_take - results of what was done beside the keyboard (tui/browse_work) go into the state.
 */
#ifndef CHATHIST_TUI_BROWSE_TAKE_H
#define CHATHIST_TUI_BROWSE_TAKE_H

#include <stdbool.h>

#include "base/buf.h"
#include "tui/browse_model.h"
#include "tui/browse_result.h"

/* What the result holds is taken out of it. true: a program has been at work on a history. */
bool browse_take(struct browse *b, struct browse_result *r);
/* Has a program not done what it was asked for? Adds why. */
bool browse_take_failure(struct buf *out, const struct browse_result *r);

#endif
