/*
 * needle - fixed strings as they may stand in a history line, JSON's escapes and all.
 *
 * Tells places where the content of a message may hold one of them, without decoding anything. No
 * hit is missed; not every place is one: the line is then to be read and its decoded content asked
 * (hist/pattern).
 *
 * A character can be written in few ways. Most stand for themselves, in any case that folds to the
 * same; a quote, a backslash, a newline and the like have one escape of two characters, `/` may
 * have one. Of a string written so, three bytes at fixed distances are looked for, the rarest that
 * there are in it. Anything may also be written `\uXXXX`: such an escape of one of its characters
 * makes a line worth reading, and so does a character of another length (U+212A for k) among the
 * three bytes.
 */
#ifndef CHATHIST_SEARCH_NEEDLE_H
#define CHATHIST_SEARCH_NEEDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/search/find.h"

struct needle;

struct needles {
    struct find find; /* places to be asked about */
    /* private */
    struct needle *at;
    size_t count, cap;
    int32_t *characters; /* ascending */
    size_t character_count, character_cap;
};

void needles_init(struct needles *n, enum simd with);
void needles_release(struct needles *n);
/* One more text, not empty, valid UTF-8; folded unless `exact`. Borrowed bytes are not kept. */
void needles_add(struct needles *n, struct str text, bool exact);
/* When all are there. false: they are too many to be looked for at once. */
bool needles_ready(struct needles *n);
/* Asks about a place that passed n->find, in text up to `end`, in which no text of a needle begins
 * before `begin`: is its line worth reading? *at is where a text stands whose bytes are one of its
 * needles' in full; NULL when only the decoded content can tell. */
bool needles_may_match(const struct needles *n, const char *place, const char *begin,
                       const char *end, const char **at);

#endif
