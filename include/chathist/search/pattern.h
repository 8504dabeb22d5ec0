/*
 * pattern - what is looked for in a text: one or more fixed strings or regular expressions.
 *
 * Case does not count, by Unicode simple case folding (base/fold), unless `case_sensitive`. Places
 * are offsets in the text itself, although folding changes lengths. Of the matches that several
 * patterns have, the first in the text counts, of those the longest, as in grep. Texts are UTF-8;
 * a pattern is repaired to be.
 */
#ifndef CHATHIST_SEARCH_PATTERN_H
#define CHATHIST_SEARCH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/search/needle.h"
#include "chathist/search/skip.h"

struct pattern_needle;

struct pattern {
    bool case_sensitive; /* set before the first pattern_add, as are these two */
    bool words;          /* only what has no character of a word right before and behind it */
    bool regex;          /* regular expressions (base/regex) */
    /* private */
    struct pattern_needle *needles;
    size_t count, cap;
    struct str text;
    struct buf folded; /* the text, once a needle has asked for it */
    bool is_folded;
    size_t from; /* where the next match begins, or later */
    bool ended;
};

/* Then the first three may be set. */
void pattern_init(struct pattern *p);
void pattern_release(struct pattern *p);
/* One more. -1: ERR_USAGE, it is no regular expression. */
int pattern_add(struct pattern *p, struct str text, struct err *e);

/* The same fixed strings once more, for another thread. `to` is to be released, not initialised. */
void pattern_copy(struct pattern *to, const struct pattern *from);
/* Adds its texts to n, so that their places are found fast, and to q, so that what cannot hold them
 * is not read. false: that cannot be done, for there is a regular expression, an empty text or none
 * among them, or there are too many. */
bool pattern_needles(const struct pattern *p, struct needles *n, struct skip_query *q);

/* The first match in a text, which may be empty: 1 and where, in bytes; 0; -1: ERR_FAILURE, a
 * regular expression took too many steps in this text. Without any pattern there is none. */
int pattern_find(struct pattern *p, struct str text, size_t *at, size_t *len, struct err *e);
/* One match after the other, none of them empty, none overlapping: pattern_start, then pattern_next
 * until it gives 0 or -1. The text is borrowed until then. */
void pattern_start(struct pattern *p, struct str text);
int pattern_next(struct pattern *p, size_t *at, size_t *len, struct err *e);

#endif
