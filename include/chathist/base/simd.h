/*
 * simd - looks for two or three bytes at fixed distances at many places of a text at a time.
 *
 * Only this module and base/simd_text use instructions of particular processors. The code that
 * reads whole histories has a variant for each kind of processor, chosen at run time; all variants
 * give the same results, and the portable one runs everywhere.
 */
#ifndef CHATHIST_BASE_SIMD_H
#define CHATHIST_BASE_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum simd { SIMD_PORTABLE, SIMD_SSE2, SIMD_AVX2, SIMD_NEON, SIMD_COUNT };

/* Returns whether this build on this processor can use the variant; SIMD_PORTABLE always can. */
bool simd_can(enum simd with);
/* Returns the fastest variant that can be used. */
enum simd simd_best(void);

/* Returns the number of the lowest bit that is set; at least one must be. */
static inline size_t simd_lowest(uint64_t bits)
{
    return (size_t)__builtin_ctzll(bits);
}

/* ---- probes ---- */

/* A place x passes if (x[distance] & mask) == byte. */
struct simd_test {
    size_t distance; /* SIMD_DISTANCE at most */
    unsigned char mask, byte;
};

/* A place x passes if x[0] == first and it passes the second test. */
struct simd_pair {
    unsigned char first;
    struct simd_test second;
};

/* A place passes if it passes all three tests. A test of zeros always passes. */
struct simd_triple {
    struct simd_test test[3];
};

#define SIMD_PROBES ((size_t)8) /* the most pairs and triples together */
#define SIMD_DISTANCE ((size_t)63)
#define SIMD_BLOCK ((size_t)128)

/* A place passes the probes if it passes any of them. */
struct simd_probes {
    struct simd_pair pairs[SIMD_PROBES];
    size_t pair_count;
    struct simd_triple triples[SIMD_PROBES];
    size_t triple_count;
};

/* Passes over blocks from p on, as long as they begin at or before `last`, up to the first block in
 * which a place passes. Returns that block and the bits of its places, or a pointer after `last`.
 * Reads as many bytes after a block as the largest distance of a probe. */
typedef const char *simd_block(const struct simd_probes *probes, const char *p, const char *last,
                               uint64_t bits[2]);
/* Returns the function of a variant that simd_can accepts. */
simd_block *simd_block_of(enum simd with);

#endif
