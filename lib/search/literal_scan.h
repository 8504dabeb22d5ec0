/*
 * literal_scan - finds the places in raw history lines where a fixed string may stand, without
 * decoding JSON.
 *
 * The scan misses no place, but not every place that it reports is a match: the caller then decodes
 * the content of that line and asks the pattern.
 *
 * Most characters stand for themselves, in any case that folds to the same character. The scan
 * looks for three bytes of such characters at fixed distances, the rarest that the string has. Any
 * of them can also be written `\uXXXX`, so such an escape of one of them is reported as well, and
 * so is a form whose length differs from the others (U+212A for k) among the three bytes. A quote,
 * a backslash, a slash, a newline and the like have other escapes, and only the decoded content
 * decides about them.
 */
#ifndef CHATHIST_SEARCH_LITERAL_SCAN_H
#define CHATHIST_SEARCH_LITERAL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/simd.h"

struct literal;

struct literal_scan {
    /* private */
    struct simd_probes probes;
    size_t reach; /* the largest distance in the probes */
    simd_block *block;
    struct literal *literals;
    size_t count, cap;
    int32_t *characters; /* of all literals, ascending */
    size_t character_count, character_cap;
    uint64_t cost; /* by literal_scan_ready: grows with the time that the scan will take */
};

/* Makes a scan that finds nothing yet. `wide`: by vectors of 32 bytes, see simd_block_of. */
void literal_scan_init(struct literal_scan *s, bool wide);
void literal_scan_release(struct literal_scan *s);
/* Adds a text to look for: not empty, valid UTF-8. Case is folded unless `exact`. The bytes are
 * copied. */
void literal_scan_add(struct literal_scan *s, struct str text, bool exact);
/* Prepares the scan after the last literal_scan_add. Returns false if the texts are too many to be
 * looked for at once, or one has nothing but characters with escapes. */
bool literal_scan_ready(struct literal_scan *s);

/* Called for each place that passes the probes. Returns where to resume (after the place), or NULL
 * to stop. */
typedef const char *literal_seen(void *ctx, const char *place);
/* Calls `seen` in order for each place at or after `from` and before `end` that passes the probes.
 * Bytes at and after `end` count as 0 and are not read. */
void literal_scan_each(const struct literal_scan *s, const char *from, const char *end,
                       literal_seen *seen, void *ctx);
/* Returns whether the line of a place that passed the probes must be looked at. No match begins
 * before `begin` or reaches past `end`. *at is set to where a text begins all of whose bytes are
 * there, or to NULL if only the decoded content can decide. */
bool literal_scan_may_match(const struct literal_scan *s, const char *place, const char *begin,
                            const char *end, const char **at);

/* Adds one probe. Returns false if there are SIMD_PROBES already. Public for the tests. */
bool literal_scan_add_pair(struct literal_scan *s, struct simd_pair pair);
bool literal_scan_add_triple(struct literal_scan *s, struct simd_triple triple);

#endif
