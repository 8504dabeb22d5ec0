/*
 * browse_item - a part of a message laid out for the panel: the first one has a header, the last
 * one the tool calls. What a tool was asked for and what it said is one line each unless it is
 * unfolded.
 */
#ifndef CHATHIST_BROWSE_BROWSE_ITEM_H
#define CHATHIST_BROWSE_BROWSE_ITEM_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/history/message.h"
#include "chathist/search/pattern.h"
#include "browse/browse_parts.h"
#include "browse/browse_text.h"

/* So many bytes of the arguments of a call are laid out. */
#define BROWSE_SHOWN ((size_t)32 << 10)
/* A hit begins in one part and may end in the next one, so many bytes behind. */
#define BROWSE_OVERLAP ((size_t)512)

struct browse_item {
    bool laid; /* `lines` is right */
    struct browse_lines lines;
    size_t body; /* the first line of the content */
};

struct browse_item_view {
    size_t width;
    bool first, last; /* of the message's parts */
    bool unfolded;
    struct pattern *pattern;  /* whose matches are marked; NULL: none */
    struct browse_place here; /* of the content, the hit that is looked at; n 0: none */
};

/* Fills item->lines, which was released, with a part of a message. `text` is its whole content. */
void browse_item_lay(struct browse_item *item, const struct message *m, struct str text,
                     const struct browse_part *part, const struct browse_item_view *view);
/* The line that shows a byte of the part. */
size_t browse_item_line(const struct browse_item *item, size_t at);

#endif
