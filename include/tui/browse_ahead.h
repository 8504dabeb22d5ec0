/*
 * browse_ahead - what keys wanted of a list, or of messages, that are not there yet. So keys typed
 * ahead do the same, however long these are waited for.
 */
#ifndef CHATHIST_TUI_BROWSE_AHEAD_H
#define CHATHIST_TUI_BROWSE_AHEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/browse_keys.h"

/* So many lines on from where the list begins to be looked at, or from its last line.
 * Zero-initialise. */
struct browse_ahead {
    bool last;
    long lines;
};

bool browse_ahead_any(const struct browse_ahead *a);
/* `first`: the list begins to be looked at on its first line, and nothing is before that. */
void browse_ahead_move(struct browse_ahead *a, long lines, bool first);
/* The line of a list of so many where it is to be, seen from line `at`. What goes beyond a list
 * that is not `whole` is kept for the lines that come; else nothing is left. */
size_t browse_ahead_place(struct browse_ahead *a, size_t at, size_t count, bool whole);

/* Commands for the messages, in their order; of more than these the rest is lost.
 * Zero-initialise. */
#define BROWSE_AHEAD_MAX 64
struct browse_ahead_text {
    enum browse_command at[BROWSE_AHEAD_MAX];
    size_t count;
};

void browse_ahead_push(struct browse_ahead_text *a, enum browse_command command);
/* The first of them, which there must be; it is taken out. */
enum browse_command browse_ahead_pop(struct browse_ahead_text *a);

#endif
