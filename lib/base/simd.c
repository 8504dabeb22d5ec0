/*
 * A variant is one function. It passes over blocks of 128 bytes as fast as it can, with a single
 * branch for each block, up to the first block in which a place passes, and returns the bits of that
 * block's places. The variants share one text, except for two operations on vectors for which C has
 * no operator.
 */
#include "chathist/base/simd.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* ---- portable ---- */

static bool passes(const struct simd_test *t, const char *x)
{
    return ((unsigned char)x[t->distance] & t->mask) == t->byte;
}

static bool passes_any(const struct simd_probes *f, const char *x)
{
    bool any = false;

    for (size_t k = 0; k < f->pair_count; k++)
        any = any || ((unsigned char)*x == f->pairs[k].first && passes(&f->pairs[k].second, x));
    for (size_t k = 0; k < f->triple_count; k++) {
        const struct simd_test *t = f->triples[k].test;

        any = any || (passes(&t[0], x) && passes(&t[1], x) && passes(&t[2], x));
    }
    return any;
}

static const char *block_portable(const struct simd_probes *f, const char *p, const char *last,
                                  uint64_t bits[2])
{
    for (; p <= last; p += SIMD_BLOCK) {
        bits[0] = bits[1] = 0;
        for (size_t i = 0; i < SIMD_BLOCK; i++)
            bits[i / 64] |= (uint64_t)passes_any(f, p + i) << i % 64;
        if (bits[0] | bits[1])
            break;
    }
    return p;
}

/* ---- vectors ---- */

/* The number of probes is then a constant, and their bytes stay in registers. */
#define INLINE static inline __attribute__((always_inline))

/* Goes before a loop: by itself gcc does not unroll even one of two rounds. */
#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#define CASE(kind, pairs, triples)                                                                 \
    case (pairs) * (SIMD_PROBES + 1) + (triples):                                                  \
        return pass_over_##kind(f, p, last, bits, pairs, triples)

/*
 * Defines the variant for a kind of vectors. It needs two functions:
 *     kind##_any(v)   returns whether any byte of v is set
 *     kind##_bits(v)  returns one bit for each byte of the vectors that make up 64 bytes, each 0 or 255
 * pass_##kind returns the places of one vector that pass; it reads up to the largest distance after
 * the vector. One literal is a pair and a triple.
 */
#define VARIANT(kind, attributes)                                                                  \
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
            if (kind##_any(any)) {                                                                 \
                bits[0] = kind##_bits(r);                                                          \
                bits[1] = kind##_bits(r + 64 / sizeof(kind));                                      \
                break;                                                                             \
            }                                                                                      \
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

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

typedef unsigned char avx2 __attribute__((vector_size(32)));

AVX2 INLINE bool avx2_any(avx2 v)
{
    return !_mm256_testz_si256((__m256i)v, (__m256i)v);
}

AVX2 INLINE uint64_t avx2_bits(const avx2 *v)
{
    return (uint32_t)_mm256_movemask_epi8((__m256i)v[0]) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8((__m256i)v[1]) << 32;
}

typedef unsigned char sse2 __attribute__((vector_size(16)));

INLINE bool sse2_any(sse2 v)
{
    return _mm_movemask_epi8((__m128i)v);
}

INLINE uint64_t sse2_bits(const sse2 *v)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < 4; i++)
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8((__m128i)v[i]) << i * 16;
    return bits;
}

VARIANT(avx2, AVX2)
VARIANT(sse2, )

#elif defined(__aarch64__)

typedef uint8x16_t neon;

INLINE bool neon_any(neon v)
{
    return vmaxvq_u8(v);
}

INLINE uint64_t neon_bits(const neon *v)
{
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t weight = vld1q_u8(weights);
    uint8x16_t low = vpaddq_u8(vandq_u8(v[0], weight), vandq_u8(v[1], weight));
    uint8x16_t high = vpaddq_u8(vandq_u8(v[2], weight), vandq_u8(v[3], weight));
    uint8x16_t sum = vpaddq_u8(low, high);

    sum = vpaddq_u8(sum, sum);
    return vgetq_lane_u64(vreinterpretq_u64_u8(sum), 0);
}

VARIANT(neon, )

#endif

/* ---- which of them ---- */

bool simd_can(enum simd with)
{
    switch (with) {
    case SIMD_PORTABLE:
        return true;
#if defined(__x86_64__)
    case SIMD_SSE2:
        return true;
    case SIMD_AVX2:
        return __builtin_cpu_supports("avx2");
#elif defined(__aarch64__)
    case SIMD_NEON:
        return true;
#endif
    default:
        return false;
    }
}

enum simd simd_best(void)
{
    static const enum simd fastest[] = {SIMD_AVX2, SIMD_SSE2, SIMD_NEON};

    for (size_t i = 0; i < sizeof(fastest) / sizeof(fastest[0]); i++) {
        if (simd_can(fastest[i]))
            return fastest[i];
    }
    return SIMD_PORTABLE;
}

simd_block *simd_block_of(enum simd with)
{
#if defined(__x86_64__)
    if (with == SIMD_SSE2)
        return block_sse2;
    if (with == SIMD_AVX2)
        return block_avx2;
#elif defined(__aarch64__)
    if (with == SIMD_NEON)
        return block_neon;
#endif
    (void)with;
    return block_portable;
}
