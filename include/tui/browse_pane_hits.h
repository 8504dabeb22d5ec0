/*
 * browse_pane_hits - the panel of messages goes from one hit of the search to another.
 *
 * A hit may be far away: it is looked for in slices, of which each takes no longer than a key may.
 */
#ifndef CHATHIST_TUI_BROWSE_PANE_HITS_H
#define CHATHIST_TUI_BROWSE_PANE_HITS_H

#include <stdbool.h>

#include "tui/browse_pane.h"

/* So many bytes of messages are looked through in a slice, and a message counts for some. */
#define BROWSE_SLICE ((size_t)256 << 10)
#define BROWSE_SLICE_MESSAGE ((size_t)256)

enum browse_found { BROWSE_FOUND, BROWSE_NOT_FOUND, BROWSE_GOES_ON };

/* To the next hit, or the one before; the other end follows the last one. That it goes on means
 * that browse_pane_seek is to be called until it does not; nothing has moved until then. */
enum browse_found browse_pane_next_hit(struct browse_pane *p, bool on);
enum browse_found browse_pane_seek(struct browse_pane *p);
/* Shows a message, and of it the hit at that place of its content. false: it is not there. */
bool browse_pane_show(struct browse_pane *p, struct str message, size_t at);

#endif
