/*
 * simd - two or three bytes at fixed distances looked for at many places at a time.
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

/* ---- probes ---- */

/* A byte passes when (x[distance] & mask) == byte. */
struct simd_test {
    size_t distance; /* SIMD_DISTANCE at most */
    unsigned char mask, byte;
};

/* A place x passes when x[0] == first, and the second test. */
struct simd_pair {
    unsigned char first;
    struct simd_test second;
};

/* A place passes when all three tests do. One that is not needed is all zeros. */
struct simd_triple {
    struct simd_test test[3];
};

#define SIMD_PROBES ((size_t)8) /* of both kinds */
#define SIMD_DISTANCE ((size_t)63)
#define SIMD_BLOCK ((size_t)128)

/* Any of them will do. */
struct simd_probes {
    struct simd_pair pairs[SIMD_PROBES];
    size_t pair_count;
    struct simd_triple triples[SIMD_PROBES];
    size_t triple_count;
};

/* Passes over blocks from p on, as long as one begins at `last` at the latest, up to the first in
 * which some place passes. Gives that block and the bits of its places, or a place behind `last`.
 * Behind a block, as many bytes are read as the largest distance is. */
typedef const char *simd_block(const struct simd_probes *probes, const char *p, const char *last,
                               uint64_t bits[2]);
/* One that simd_can use. */
simd_block *simd_block_of(enum simd with);

#endif
