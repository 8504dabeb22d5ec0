/*
 * simd - looks at many bytes of a text at a time: for the ends of strings and lines, and for places
 * that have certain bytes at fixed distances.
 *
 * The code uses the vectors of the compiler (vector_size), which every processor can run. Only the
 * search for places has a second form, for x86-64 with AVX2, chosen at run time. Both give the same
 * results.
 */
#ifndef CHATHIST_BASE_SIMD_H
#define CHATHIST_BASE_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- strings and lines ---- */

/* Passes over text inside a JSON string, from p, where a code point begins. Returns the first byte
 * that is neither plain ASCII nor part of an escape of two characters: the closing quote, the
 * backslash of \uXXXX or of an invalid escape, a control character, a byte beyond ASCII, which the
 * caller then checks; or `end`. */
const char *simd_special(const char *p, const char *end);
/* Returns whether n bytes of a JSON string stand for themselves: ASCII without quotes, backslashes
 * and control characters. */
bool simd_all_plain(const char *p, size_t n);
/* Copies a text, ASCII letters in lower case, up to the first byte beyond ASCII. `to` has room for
 * n bytes. Returns how many were copied. */
size_t simd_lower(char *to, const char *p, size_t n);
/* Returns the offset after the last newline of n bytes, or 0 without one. */
size_t simd_after_newline(const char *p, size_t n);

/* ---- numbers ---- */

/* Returns the sum of the products of n pairs of numbers, none of which is -128. n is a multiple of
 * SIMD_DOT, and at most 2^17. */
#define SIMD_DOT ((size_t)16)
int32_t simd_dot(const int8_t *a, const int8_t *b, size_t n);

/* ---- places ---- */

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
/* Returns whether this processor has vectors of 32 bytes. */
bool simd_wide(void);
/* Returns the function for vectors of 32 bytes if `wide`, which simd_wide must allow, else of
 * 16. */
simd_block *simd_block_of(bool wide);

#endif
