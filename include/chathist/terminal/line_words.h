/*
 * line_words - a list of words, such as those that could complete a text.
 */
#ifndef CHATHIST_TERMINAL_LINE_WORDS_H
#define CHATHIST_TERMINAL_LINE_WORDS_H

#include <stddef.h>

#include "chathist/base/buf.h"

/* A list of words, as those that could complete the text before the cursor. Zero-initialise. */
struct line_words {
    size_t from; /* where in that text the words begin, in bytes */
    char **at;   /* ends with NULL, or is NULL */
    size_t count, cap;
};

/* Adds a copy of a word. */
void line_offer(struct line_words *w, struct str word);
/* Adds it if it begins with `typed`. */
void line_offer_if(struct line_words *w, struct str typed, struct str word);
/* Empties the list. */
void line_words_release(struct line_words *w);
/* Returns the longest common beginning of the words in whole code points, borrowed from them. There
 * is at least one word. */
struct str line_words_common(const struct line_words *w);
/* Adds the words as a table: made visible, in lines of at most `columns` columns unless a word is
 * longer, each line ended by CR LF. */
void line_words_add_table(struct buf *out, const struct line_words *w, size_t columns);

#endif
