/*
 * browse_parts - the messages of a thread cut into parts, so that the panel lays out no more than
 * it shows, however long a message is.
 *
 * A part is as a text of its own: it ends with a line where there is one, and knows in which state
 * of its Markdown it begins. Made beside the keyboard, for a long message is decoded for it.
 */
#ifndef CHATHIST_BROWSE_BROWSE_PARTS_H
#define CHATHIST_BROWSE_BROWSE_PARTS_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/chat/markdown.h"
#include "chathist/history/thread.h"

/* So many bytes at the most, but for what would be left over. */
#define BROWSE_PART ((size_t)16 << 10)

struct browse_part {
    size_t message;
    size_t at, n;          /* of its content; SIZE_MAX: all of it */
    struct markdown state; /* without fn and arg */
};

/* Zero-initialise. */
struct browse_parts {
    struct browse_part *at;
    size_t count, cap;
    size_t *first; /* for each message, and behind the last one: its first part */
    /* private: for each message that is long, its content, and the memory behind it unless that is
     * its line */
    struct str *contents;
    struct buf *texts;
    size_t messages;
};

/* Of a thread, which is to stay while they are used. */
void browse_parts_make(struct browse_parts *p, const struct thread *t);
void browse_parts_release(struct browse_parts *p);
/* The part of a message that has a byte of its content, and the last one. */
size_t browse_parts_find(const struct browse_parts *p, size_t message, size_t at);
size_t browse_parts_last(const struct browse_parts *p, size_t message);
/* The content of a message, borrowed from the parts, from the line or from scratch (BUF_LINE). What
 * is decoded into scratch is short. */
struct str browse_parts_text(const struct browse_parts *p, const struct thread *t, size_t message,
                             struct buf *scratch);

#endif
