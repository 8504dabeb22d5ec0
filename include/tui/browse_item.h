/*
 * browse_item - one message of the panel laid out: a header, its text, its tool calls; what a tool was
 * asked for and what it said is one line each unless it is unfolded.
 */
#ifndef CHATHIST_TUI_BROWSE_ITEM_H
#define CHATHIST_TUI_BROWSE_ITEM_H

#include <stdbool.h>
#include <stddef.h>

#include "hist/message.h"
#include "hist/pattern.h"
#include "tui/browse_text.h"

/* So many bytes of one message are laid out. */
#define BROWSE_SHOWN ((size_t)256 << 10)

struct browse_item {
    bool unfolded;
    bool laid; /* `lines` is right */
    struct browse_lines lines;
    size_t body; /* the first line of the content */
    bool looked; /* `hits` is right */
    struct browse_place *hits;
    size_t hit_count, hit_cap;
    size_t from; /* of the content, what is laid out begins here */
};

struct browse_item_view {
    size_t width;
    struct pattern *pattern; /* whose matches are marked; NULL: none */
    size_t hit;              /* the one that is looked at, SIZE_MAX: none */
};

/* Fills item->lines, which was released, and what belongs to them. */
void browse_item_lay(struct browse_item *item, const struct message *m,
                     const struct browse_item_view *view);
/* Fills item->hits, unless that was done. */
void browse_item_look(struct browse_item *item, const struct message *m, struct pattern *pattern);
/* The line that shows a byte of the content. */
size_t browse_item_line(const struct browse_item *item, size_t at);

#endif
