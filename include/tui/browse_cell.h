/*
 * browse_cell - a text cut into what the cells of a terminal hold: a character with the marks on
 * it, as wide characters, which curses wants.
 */
#ifndef CHATHIST_TUI_BROWSE_CELL_H
#define CHATHIST_TUI_BROWSE_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#include "base/buf.h"

/* With its end. */
#define BROWSE_CELL 6

/* Takes the next cell off *text, which is not empty; gives its columns. What the C library takes
 * for wider than utf8_width does would move all that stands behind it, and becomes U+FFFD; without
 * `utf8` all beyond ASCII becomes `?`, or what comes near it. */
size_t browse_cell_next(struct str *text, bool utf8, wchar_t cell[BROWSE_CELL]);

#endif
