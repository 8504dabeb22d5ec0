/*
 * find - bytes looked for many at a time: pairs of bytes, the plain text of a JSON string, newlines.
 *
 * The only file with instructions of a processor's own. The search for pairs, which reads whole
 * histories, has a variant for each of them, chosen at run time; all give the same, the portable one
 * too. What is smaller uses what every processor of the architecture has.
 */
#ifndef CHATHIST_BASE_FIND_H
#define CHATHIST_BASE_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum find_with { FIND_PORTABLE, FIND_SSE2, FIND_AVX2, FIND_NEON, FIND_WITHS };

/* Can this build on this processor use it? FIND_PORTABLE always. */
bool find_can(enum find_with with);
/* The fastest that it can use. */
enum find_with find_best(void);

/* A place x passes when (x[0] & mask[0]) == byte[0] and (x[distance] & mask[1]) == byte[1]. */
struct find_pair {
    size_t distance; /* FIND_DISTANCE at most */
    unsigned char mask[2], byte[2];
};

#define FIND_PAIRS ((size_t)8)
#define FIND_DISTANCE ((size_t)63)

struct find {
    struct find_pair pairs[FIND_PAIRS]; /* any of them will do */
    size_t count;
    /* private */
    size_t reach; /* the largest distance */
    const char *(*block)(const struct find *, const char *, const char *, uint64_t[2]);
};

/* Without pairs yet, of which nothing passes. */
void find_init(struct find *f, enum find_with with);
/* false when there are FIND_PAIRS already. */
bool find_add(struct find *f, struct find_pair pair);

/* Is told a place that passes; gives the place from which to go on, behind it, or NULL to end. */
typedef const char *find_seen(void *ctx, const char *place);
/* Calls seen for each place from `from` on and before `end` that passes, in their order. A byte at
 * `end` or behind it counts as 0. */
void find_each(const struct find *f, const char *from, const char *end, find_seen *seen, void *ctx);

/* From p on inside a JSON string, the first byte that is neither plain nor of an escape of two
 * characters: the closing quote, the backslash of \uXXXX or of what is no escape, a control
 * character, one beyond ASCII; `end` when there is none. */
const char *find_special(const char *p, const char *end);
/* The offset behind the last newline of n bytes, 0 when there is none. */
size_t find_behind_newline(const char *p, size_t n);

#endif
