/*
 * line_words - what could stand at the cursor of a line (cli/line): words to choose from.
 */
#ifndef CHATHIST_CHAT_LINE_WORDS_H
#define CHATHIST_CHAT_LINE_WORDS_H

#include <stddef.h>

#include "chathist/base/buf.h"

/* Zero-initialise. */
struct line_words {
    size_t from; /* where in the text before the cursor they would begin, in bytes */
    char **at;
    size_t count, cap;
};

void line_offer(struct line_words *w, struct str word);
/* What all of them begin with, whole code points of one borrowed; there is one at least. */
struct str line_words_common(const struct line_words *w);
/* Adds them side by side, made safe, in lines of at most so many columns (but for a word that is
 * longer), each ended by CR LF. */
void line_words_add_table(struct buf *out, const struct line_words *w, size_t columns);
void line_words_release(struct line_words *w);

#endif
