/*
 * pattern - what a search looks for: fixed strings or regular expressions.
 *
 * Case is ignored by Unicode simple case folding (base/utf8) unless `case_sensitive` is set.
 * Offsets count bytes of the text itself. If several patterns match, the first match in the text
 * counts, and of those the longest, as in grep. Texts are UTF-8; a pattern that is not is repaired.
 *
 * The strings and expressions are alternatives, in one group or in several: a message that is
 * searched must have a match of each group, in any of its texts.
 */
#ifndef CHATHIST_SEARCH_PATTERN_H
#define CHATHIST_SEARCH_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/search/searched_text.h"

struct literal_scan;
struct skip_query;
struct pattern_needle;

struct pattern {
    bool case_sensitive; /* set these three before the first pattern_add */
    bool words;          /* no word character may stand directly before or after a match */
    bool regex;          /* the patterns are regular expressions (base/regex) */
    /* For the skip index: each match holds this when its marks are removed (utf8_add_unmarked);
     * borrowed. Empty: nothing is known. */
    struct str bare;
    /* private */
    struct pattern_needle *needles;
    size_t count, cap;
    unsigned group; /* the current one, from 0 */
    struct str text;
    struct buf folded; /* the text, folded, if is_folded */
    bool is_folded;
    size_t from; /* the next match begins here or later */
    bool ended;
};

/* Makes an empty pattern, which matches nothing. */
void pattern_init(struct pattern *p);
void pattern_release(struct pattern *p);
/* At most this many groups are possible. */
#define PATTERN_GROUPS 64
/* Begins the next group; the first one needs no call. Returns 0, or -1 with *e set (ERR_USAGE) if
 * there are too many. */
int pattern_next_group(struct pattern *p, struct err *e);
/* Adds one more alternative to the current group. Returns 0, or -1 with *e set (ERR_USAGE) if it is
 * not a valid regular expression, or is too long. */
int pattern_add(struct pattern *p, struct str text, struct err *e);

/* Makes `to`, an uninitialised pattern, a copy for another thread; the caller releases it before
 * the original. */
void pattern_copy(struct pattern *to, const struct pattern *from);
/* Finds texts of which each message that matches holds one: they are taken from the fixed strings
 * and out of the expressions (search/regex_literals). Makes *s the scan for those that are found
 * fastest, and adds all to a query of the skip index. If it finds no text, or too many for a scan,
 * *s is empty and it returns false. Texts are borrowed from the pattern for the call. */
bool pattern_literals(const struct pattern *p, bool wide, struct literal_scan *s,
                      struct skip_query *q);
/* Returns whether that scan alone decides: a text matches exactly when it contains one of its
 * texts. */
bool pattern_is_literal(const struct pattern *p);

/* Finds the first match in a text; it may be empty. Returns 1 and where it is, in bytes; 0 if there
 * is no match; -1 with *e set (ERR_FAILURE) if a regular expression took too many steps. */
int pattern_find(struct pattern *p, struct str text, size_t *at, size_t *len, struct err *e);
/* The same for one of the texts of a message. *missing has a bit for each group without a match so
 * far: pattern_all_groups before the first text, 0 when the message is a hit. */
int pattern_find_groups(struct pattern *p, struct str text, uint64_t *missing, size_t *at,
                        size_t *len, struct err *e);
uint64_t pattern_all_groups(const struct pattern *p);

/* Where the first match is in a message. */
struct text_match {
    size_t number;   /* of the text with the first match, from 0; SIZE_MAX: none */
    size_t at, len;  /* the match in that text */
    size_t count;    /* texts that were looked at */
    struct str text; /* the last of them, borrowed from searched_text_next */
};
/* Looks in the texts of a message, from searched_text_begin on, for a match of each group, up to
 * the last text that is needed. Returns 1 if all groups have one, 0 if not, or -1 with *e set as
 * pattern_find does. */
int pattern_find_message(struct pattern *p, struct searched_text *t, struct text_match *m,
                         struct err *e);

/* Returns 1 if one of the texts, from searched_text_begin on, has a match, 0 if not, or -1 with *e
 * set as pattern_find does. */
int pattern_find_any(struct pattern *p, struct searched_text *t, struct err *e);

/* Find one match after the other; none is empty, none overlap. Call pattern_start, then
 * pattern_next until it returns 0 or -1. The text is borrowed until then. */
void pattern_start(struct pattern *p, struct str text);
int pattern_next(struct pattern *p, size_t *at, size_t *len, struct err *e);

#endif
