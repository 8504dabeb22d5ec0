/*
 * browse_areas - where on the screen the parts of hist-browse are.
 */
#ifndef CHATHIST_TUI_BROWSE_AREAS_H
#define CHATHIST_TUI_BROWSE_AREAS_H

#include <stdbool.h>
#include <stddef.h>

struct browse_rect {
    size_t row, column, rows, columns;
};
struct browse_areas {
    bool stacked; /* the list above the messages */
    struct browse_rect box, list, text, foot;
    size_t rule; /* the column between them, or the row */
};

struct browse_areas browse_areas_of(size_t rows, size_t columns);

#endif
