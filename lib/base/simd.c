#include "chathist/base/simd.h"

#include <string.h>

#include "chathist/base/checksum.h"

/* Goes before a loop: by itself gcc does not unroll even one of two rounds. */
#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#define INLINE static inline __attribute__((always_inline))

typedef unsigned char vec16 __attribute__((vector_size(16)));
typedef signed char signed16 __attribute__((vector_size(16)));
typedef char chars16 __attribute__((vector_size(16)));

/* Returns the number of the lowest bit that is set; at least one must be. */
INLINE size_t lowest(uint64_t bits)
{
    return (size_t)__builtin_ctzll(bits);
}

/* Returns one bit for each of 16 bytes that are 0 or 255. C has no operator for this. */
INLINE uint64_t vec16_bits(vec16 v)
{
#if defined(__x86_64__)
    return (uint32_t)__builtin_ia32_pmovmskb128((chars16)v);
#else
    uint64_t bits = 0;
    char bytes[16];

    /* The product moves the lowest bit of byte i to bit 56 + i. */
    memcpy(bytes, &v, sizeof(v));
    for (size_t i = 0; i < 2; i++)
        bits |= ((le_get(bytes + i * 8) & UINT64_C(0x0101010101010101)) *
                 UINT64_C(0x0102040810204080)) >>
                56 << i * 8;
    return bits;
#endif
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

typedef unsigned char vec32 __attribute__((vector_size(32)));
typedef signed char signed32 __attribute__((vector_size(32)));
typedef char chars32 __attribute__((vector_size(32)));

AVX2 INLINE uint64_t vec32_bits(vec32 v)
{
    return (uint32_t)__builtin_ia32_pmovmskb256((chars32)v);
}

bool simd_wide(void)
{
    return __builtin_cpu_supports("avx2");
}

#else

bool simd_wide(void)
{
    return false;
}

#endif

/* ---- strings and lines ---- */

static bool is_plain_char(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* Returns whether a special byte at p is anything else than the backslash of a short escape. */
static bool stops(const char *p, const char *end)
{
    static const bool is_short_escape[256] = {
        ['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true,
        ['f'] = true, ['n'] = true,  ['r'] = true, ['t'] = true,
    };

    return *p != '\\' || end - p < 2 || !is_short_escape[(unsigned char)p[1]];
}

/* As signed numbers, bytes beyond ASCII are less than a blank too. */
#define SPECIAL(x) (((x) == '"') | ((x) == '\\') | ((x) < ' '))

/*
 * Defines a function that passes over blocks of `size` bytes with more bytes left, up to the first
 * with a byte that is special, but not the backslash of \n, by far the most frequent escape. Sets
 * *special to one bit for each such byte of that block, or to 0. The n of an escape can begin the
 * next vector, where it counts as plain.
 */
#define PASS_PLAIN(name, size, kind, text, attributes)                                             \
    attributes static const char *name(const char *p, const char *end, uint64_t *special)          \
    {                                                                                              \
        uint64_t bits = 0;                                                                         \
                                                                                                   \
        for (; end - p > (size); p += (size)) {                                                    \
            UNROLL                                                                                 \
            for (size_t i = 0; i < (size); i += sizeof(kind)) {                                    \
                text x, next;                                                                      \
                                                                                                   \
                memcpy(&x, p + i, sizeof(x));                                                      \
                memcpy(&next, p + i + 1, sizeof(next));                                            \
                bits |= kind##_bits((kind)(SPECIAL(x) & ~((x == '\\') & (next == 'n')))) << i;     \
            }                                                                                      \
            if (bits)                                                                              \
                break;                                                                             \
        }                                                                                          \
        *special = bits;                                                                           \
        return p;                                                                                  \
    }

PASS_PLAIN(pass_plain_16, 16, vec16, signed16, )
PASS_PLAIN(pass_plain_64, 64, vec16, signed16, )
#if defined(__x86_64__)
PASS_PLAIN(pass_plain_wide, 64, vec32, signed32, AVX2)
#endif

static const char *pass_plain(const char *p, const char *end, uint64_t *special)
{
    /* Keys and short values end within 16 bytes. */
    p = pass_plain_16(p, end - p > 17 ? p + 17 : end, special);
    if (*special)
        return p;
#if defined(__x86_64__)
    p = simd_wide() ? pass_plain_wide(p, end, special) : pass_plain_64(p, end, special);
#else
    p = pass_plain_64(p, end, special);
#endif
    return *special ? p : pass_plain_16(p, end, special);
}

const char *simd_special(const char *p, const char *end)
{
    uint64_t special;

    for (p = pass_plain(p, end, &special); special; p = pass_plain(p + 2, end, &special)) {
        p += lowest(special);
        if (stops(p, end))
            return p;
    }
    while (p < end && (is_plain_char(*p) || !stops(p, end)))
        p += is_plain_char(*p) ? 1 : 2;
    return p;
}

bool simd_all_plain(const char *p, size_t n)
{
    /* The last 16 bytes may be checked twice. */
    for (size_t i = 0; n >= 16 && i < n; i += 16) {
        signed16 x;

        memcpy(&x, p + (n - i < 16 ? n - 16 : i), sizeof(x));
        if (vec16_bits((vec16)SPECIAL(x)))
            return false;
    }
    for (size_t i = 0; n < 16 && i < n; i++) {
        if (!is_plain_char(p[i]))
            return false;
    }
    return true;
}

size_t simd_lower(char *to, const char *p, size_t n)
{
    size_t i = 0;

    for (; n - i >= sizeof(vec16); i += sizeof(vec16)) {
        vec16 x;

        memcpy(&x, p + i, sizeof(x));
        if (vec16_bits(x >= 0x80))
            break;
        x |= (vec16)((x >= 'A') & (x <= 'Z')) & 0x20;
        memcpy(to + i, &x, sizeof(x));
    }
    for (; i < n && (unsigned char)p[i] < 0x80; i++)
        to[i] = ascii_lower(p[i]);
    return i;
}

size_t simd_after_newline(const char *p, size_t n)
{
    for (; n >= 16; n -= 16) {
        uint64_t newlines;
        vec16 x;

        memcpy(&x, p + n - 16, sizeof(x));
        newlines = vec16_bits((vec16)(x == '\n'));
        if (newlines)
            return n + 48 - (size_t)__builtin_clzll(newlines);
    }
    while (n && p[n - 1] != '\n')
        n--;
    return n;
}

/* ---- places ----
 *
 * A form is one function. It passes over blocks of 128 bytes as fast as it can, with a single
 * branch for each block, up to the first block in which a place passes. */

/* The number of probes is then a constant, and their bytes stay in registers. */
#define CASE(kind, pairs, triples)                                                                 \
    case (pairs) * (SIMD_PROBES + 1) + (triples):                                                  \
        return pass_over_##kind(f, p, last, bits, pairs, triples)

/*
 * Defines the form for a kind of vectors, which needs the function kind##_bits. pass_##kind returns
 * the places of one vector that pass; it reads up to the largest distance after the vector. One
 * literal is a pair and a triple.
 */
#define FORM(kind, attributes)                                                                     \
    attributes INLINE kind test_##kind(const struct simd_test *t, const char *p)                   \
    {                                                                                              \
        kind x;                                                                                    \
                                                                                                   \
        memcpy(&x, p + t->distance, sizeof(x));                                                    \
        return (kind)((x & t->mask) == t->byte);                                                   \
    }                                                                                              \
                                                                                                   \
    attributes INLINE kind pass_##kind(const struct simd_probes *f, size_t pairs, size_t triples,  \
                                       const char *p)                                              \
    {                                                                                              \
        kind x, any = {0};                                                                         \
                                                                                                   \
        memcpy(&x, p, sizeof(x));                                                                  \
        UNROLL                                                                                     \
        for (size_t k = 0; k < pairs; k++)                                                         \
            any |= (kind)(x == f->pairs[k].first) & test_##kind(&f->pairs[k].second, p);           \
        UNROLL                                                                                     \
        for (size_t k = 0; k < triples; k++) {                                                     \
            const struct simd_test *t = f->triples[k].test;                                        \
                                                                                                   \
            any |= test_##kind(&t[0], p) & test_##kind(&t[1], p) & test_##kind(&t[2], p);          \
        }                                                                                          \
        return any;                                                                                \
    }                                                                                              \
                                                                                                   \
    attributes INLINE const char *pass_over_##kind(const struct simd_probes *f, const char *p,     \
                                                   const char *last, uint64_t bits[2],             \
                                                   size_t pairs, size_t triples)                   \
    {                                                                                              \
        for (; p <= last; p += SIMD_BLOCK) {                                                       \
            kind r[SIMD_BLOCK / sizeof(kind)], any = {0};                                          \
                                                                                                   \
            UNROLL                                                                                 \
            for (size_t i = 0; i < SIMD_BLOCK / sizeof(kind); i++) {                               \
                r[i] = pass_##kind(f, pairs, triples, p + i * sizeof(kind));                       \
                any |= r[i];                                                                       \
            }                                                                                      \
            if (!kind##_bits(any))                                                                 \
                continue;                                                                          \
            bits[0] = bits[1] = 0;                                                                 \
            UNROLL                                                                                 \
            for (size_t i = 0; i < SIMD_BLOCK / sizeof(kind); i++)                                 \
                bits[i * sizeof(kind) / 64] |= kind##_bits(r[i]) << i * sizeof(kind) % 64;         \
            break;                                                                                 \
        }                                                                                          \
        return p;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static attributes const char *block_##kind(const struct simd_probes *f, const char *p,         \
                                               const char *last, uint64_t bits[2])                 \
    {                                                                                              \
        switch (f->pair_count * (SIMD_PROBES + 1) + f->triple_count) {                             \
            CASE(kind, 1, 0);                                                                      \
            CASE(kind, 1, 1);                                                                      \
            CASE(kind, 1, 2);                                                                      \
            CASE(kind, 2, 1);                                                                      \
        default:                                                                                   \
            return pass_over_##kind(f, p, last, bits, f->pair_count, f->triple_count);             \
        }                                                                                          \
    }

FORM(vec16, )

#if defined(__x86_64__)

FORM(vec32, AVX2)

simd_block *simd_block_of(bool wide)
{
    return wide ? block_vec32 : block_vec16;
}

#else

simd_block *simd_block_of(bool wide)
{
    (void)wide;
    return block_vec16;
}

#endif

/* ---- numbers ---- */

int32_t simd_dot(const int8_t *a, const int8_t *b, size_t n)
{
    typedef int8_t bytes __attribute__((vector_size(16)));
    typedef int16_t products __attribute__((vector_size(32)));
    typedef int32_t sums __attribute__((vector_size(64)));
    sums sum = {0};
    int32_t all = 0;

    for (size_t i = 0; i < n; i += SIMD_DOT) {
        bytes x, y;

        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        sum += __builtin_convertvector(
            __builtin_convertvector(x, products) * __builtin_convertvector(y, products), sums);
    }
    for (size_t i = 0; i < SIMD_DOT; i++)
        all += sum[i];
    return all;
}
