/*
 * browse_wait - a command that waits until what it is for has been read.
 */
#ifndef CHATHIST_TUI_BROWSE_WAIT_H
#define CHATHIST_TUI_BROWSE_WAIT_H

#include <stdbool.h>

#include "tui/browse_keys.h"
#include "tui/browse_model.h"
#include "tui/browse_target.h"

struct browse_wait {
    enum browse_command command; /* BROWSE_NOTHING: none waits */
    struct browse_target of;     /* private: the session that was chosen; no id: it was not known */
};

void browse_wait_init(struct browse_wait *w);
void browse_wait_release(struct browse_wait *w);
/* Gives up what waits. */
void browse_wait_end(struct browse_wait *w);
/* The command, to be tried again, which waits no longer. When by now another session is chosen, for
 * the one is gone or a new one came, it is given up, and the foot says so. */
enum browse_command browse_wait_next(struct browse_wait *w, struct browse *b);

#endif
