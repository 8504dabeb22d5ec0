/*
 * regex_literals - texts that every match of a regular expression holds.
 *
 * They are found as clauses. A clause is a set of texts, and every match holds one of them, so that
 * a text without any of them has no match. The expression is read in PCRE2's syntax
 * (pcre2pattern(3)), but only what people type often: characters, classes, groups, alternatives,
 * quantifiers, and assertions. In an expression with anything else nothing is found.
 */
#ifndef CHATHIST_SEARCH_REGEX_LITERALS_H
#define CHATHIST_SEARCH_REGEX_LITERALS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"

#define LITERAL_BYTES ((size_t)48)
#define LITERAL_SET ((size_t)16)
#define LITERAL_CLAUSES ((size_t)4)

struct literal_text {
    size_t n;
    char bytes[LITERAL_BYTES];
};

struct literal_set {
    size_t count;
    struct literal_text at[LITERAL_SET];
};

struct regex_literals {
    struct literal_set clause[LITERAL_CLAUSES]; /* the best one first */
    size_t count;                               /* 0: nothing is known */
    bool all; /* a text has a match if and only if it holds one of the first clause */
};

/* Finds the clauses of an expression that PCRE2 accepts, in valid UTF-8. */
void regex_literals_find(struct regex_literals *l, struct str expression);

#endif
