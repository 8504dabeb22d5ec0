/*
 * browse_pane_shown - which messages and parts of them the panel shows: those of a role, and of a
 * result that is folded no more than a line.
 *
 * Of a session of any length no key looks at all of its messages: that is done when the role
 * changes.
 */
#ifndef CHATHIST_TUI_BROWSE_PANE_SHOWN_H
#define CHATHIST_TUI_BROWSE_PANE_SHOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/browse_pane.h"

/* The role, or what is in the panel, has changed. */
void browse_pane_filter(struct browse_pane *p);
/* Is the message let through by the role? */
bool browse_pane_shows(const struct browse_pane *p, size_t message);
/* Has the part nothing to show, for a result is folded? */
bool browse_pane_folded(const struct browse_pane *p, size_t part);
/* Is there such a part, and is it shown? */
bool browse_pane_has_part(const struct browse_pane *p, size_t part);
/* The next part that is shown, itself included, and the one before it; SIZE_MAX: none. */
size_t browse_pane_from(const struct browse_pane *p, size_t part);
size_t browse_pane_before(const struct browse_pane *p, size_t part);

#endif
