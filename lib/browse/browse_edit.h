/*
 * browse_edit - a line of text that is edited: the search box of hist-browse, the name of a file.
 */
#ifndef CHATHIST_BROWSE_BROWSE_EDIT_H
#define CHATHIST_BROWSE_BROWSE_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

struct browse_edit {
    struct buf text; /* UTF-8, one line without control characters */
    size_t at;       /* the cursor stands before this byte */
    bool chosen;     /* what is typed next replaces it all */
};

void browse_edit_init(struct browse_edit *e);
void browse_edit_release(struct browse_edit *e);
/* Replaces the text, made one line; the cursor stands behind it. */
void browse_edit_set(struct browse_edit *e, struct str text);
/* A key (tui/browse_keys): has the text changed? A key that edits nothing changes nothing. */
bool browse_edit_key(struct browse_edit *e, int32_t key);
/* What of the text to show in so many columns, so that the cursor is in it; *column is the
 * cursor's. */
struct str browse_edit_window(const struct browse_edit *e, size_t columns, size_t *column);

#endif
