/*
 * simd - pairs of bytes looked for at many places at a time.
 *
 * This and base/simd_text alone have instructions of a processor's own. What reads whole histories
 * has a variant for each kind of processor, chosen at run time; all give the same, the portable one
 * too.
 */
#ifndef CHATHIST_BASE_SIMD_H
#define CHATHIST_BASE_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum simd { SIMD_PORTABLE, SIMD_SSE2, SIMD_AVX2, SIMD_NEON, SIMD_COUNT };

/* Can this build on this processor use it? SIMD_PORTABLE always. */
bool simd_can(enum simd with);
/* The fastest that it can use. */
enum simd simd_best(void);

/* The number of the lowest bit that is set; some is. */
static inline size_t simd_lowest(uint64_t bits)
{
    return (size_t)__builtin_ctzll(bits);
}

/* ---- pairs of bytes ---- */

/* A place x passes when (x[0] & mask[0]) == byte[0] and (x[distance] & mask[1]) == byte[1]. */
struct simd_pair {
    size_t distance; /* SIMD_DISTANCE at most */
    unsigned char mask[2], byte[2];
};

#define SIMD_PAIRS ((size_t)8)
#define SIMD_DISTANCE ((size_t)63)
#define SIMD_BLOCK ((size_t)128)

struct simd_pairs {
    struct simd_pair at[SIMD_PAIRS]; /* any of them will do */
    size_t count;
};

/* Passes over blocks from p on, as long as one begins at `last` at the latest, up to the first in
 * which some place passes. Gives that block and the bits of its places, or a place behind `last`.
 * The largest distance of bytes behind a block are read. */
typedef const char *simd_block(const struct simd_pairs *pairs, const char *p, const char *last,
                               uint64_t bits[2]);
/* One that simd_can use. */
simd_block *simd_block_of(enum simd with);

#endif
