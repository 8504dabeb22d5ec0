/*
 * browse_pane_hits - the panel of messages goes from one hit of the search to another.
 */
#ifndef CHATHIST_TUI_BROWSE_PANE_HITS_H
#define CHATHIST_TUI_BROWSE_PANE_HITS_H

#include <stdbool.h>

#include "tui/browse_pane.h"

/* To the next hit, or the one before: false when there is none; the other end follows the last one. */
bool browse_pane_next_hit(struct browse_pane *p, bool on);
/* Shows a message, and of it the hit nearest to that place of its content. false: it is not there. */
bool browse_pane_show(struct browse_pane *p, struct str message, size_t at);

#endif
