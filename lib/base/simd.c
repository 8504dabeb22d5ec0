/*
 * A variant is one function that passes over blocks of 128 bytes as fast as it can, with a single
 * branch for each, up to the first in which some place passes, and gives the bits of that block's
 * places. All else is common to them.
 */
#include "base/simd.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Inlined with a constant number of pairs, whose bytes then stay in registers. */
#define INLINE static inline __attribute__((always_inline))

/* Before a loop over pairs: gcc unrolls not even one of two of itself. */
#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

/* For a variant PASS_OVER(f, p, last, bits, count): from p on, as long as a block begins at `last`
 * at the latest. Gives the block with its bits, or a place behind `last`. Up to `reach` bytes
 * behind a block are read. */
#define VARIANT(name, attributes, pass_over)                                                       \
    attributes static const char *name(const struct simd_pairs *f, const char *p,                  \
                                       const char *last, uint64_t bits[2])                         \
    {                                                                                              \
        switch (f->count) {                                                                        \
        case 1:                                                                                    \
            return pass_over(f, p, last, bits, 1);                                                 \
        case 2:                                                                                    \
            return pass_over(f, p, last, bits, 2);                                                 \
        case 3:                                                                                    \
            return pass_over(f, p, last, bits, 3);                                                 \
        default:                                                                                   \
            return pass_over(f, p, last, bits, f->count);                                          \
        }                                                                                          \
    }

/* ---- portable ---- */

static bool passes(const struct simd_pair *pair, const char *x)
{
    unsigned char first = (unsigned char)x[0], second = (unsigned char)x[pair->distance];

    return (first & pair->mask[0]) == pair->byte[0] && (second & pair->mask[1]) == pair->byte[1];
}

static const char *block_portable(const struct simd_pairs *f, const char *p, const char *last,
                                  uint64_t bits[2])
{
    for (; p <= last; p += SIMD_BLOCK) {
        bits[0] = bits[1] = 0;
        for (size_t k = 0; k < f->count; k++) {
            for (size_t i = 0; i < SIMD_BLOCK; i++)
                bits[i / 64] |= (uint64_t)passes(&f->at[k], p + i) << i % 64;
        }
        if (bits[0] | bits[1])
            break;
    }
    return p;
}

/* ---- x86-64 ---- */

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

AVX2 INLINE __m256i pass_avx2(const struct simd_pair *pair, const char *x)
{
    __m256i first = _mm256_loadu_si256((const __m256i_u *)x);
    __m256i second = _mm256_loadu_si256((const __m256i_u *)(x + pair->distance));

    first = _mm256_and_si256(first, _mm256_set1_epi8((char)pair->mask[0]));
    second = _mm256_and_si256(second, _mm256_set1_epi8((char)pair->mask[1]));
    return _mm256_and_si256(_mm256_cmpeq_epi8(first, _mm256_set1_epi8((char)pair->byte[0])),
                            _mm256_cmpeq_epi8(second, _mm256_set1_epi8((char)pair->byte[1])));
}

AVX2 INLINE uint64_t bits_avx2(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

AVX2 INLINE const char *pass_over_avx2(const struct simd_pairs *f, const char *p, const char *last,
                                       uint64_t bits[2], size_t count)
{
    const struct simd_pair *pairs = f->at;

    for (; p <= last; p += SIMD_BLOCK) {
        __m256i r0 = _mm256_setzero_si256(), r1 = r0, r2 = r0, r3 = r0;

        UNROLL
        for (size_t k = 0; k < count; k++) {
            r0 = _mm256_or_si256(r0, pass_avx2(&pairs[k], p));
            r1 = _mm256_or_si256(r1, pass_avx2(&pairs[k], p + 32));
            r2 = _mm256_or_si256(r2, pass_avx2(&pairs[k], p + 64));
            r3 = _mm256_or_si256(r3, pass_avx2(&pairs[k], p + 96));
        }

        __m256i any = _mm256_or_si256(_mm256_or_si256(r0, r1), _mm256_or_si256(r2, r3));

        if (!_mm256_testz_si256(any, any)) {
            bits[0] = bits_avx2(r0, r1);
            bits[1] = bits_avx2(r2, r3);
            break;
        }
    }
    return p;
}

INLINE __m128i pass_sse2(const struct simd_pair *pair, const char *x)
{
    __m128i first = _mm_loadu_si128((const __m128i_u *)x);
    __m128i second = _mm_loadu_si128((const __m128i_u *)(x + pair->distance));

    first = _mm_and_si128(first, _mm_set1_epi8((char)pair->mask[0]));
    second = _mm_and_si128(second, _mm_set1_epi8((char)pair->mask[1]));
    return _mm_and_si128(_mm_cmpeq_epi8(first, _mm_set1_epi8((char)pair->byte[0])),
                         _mm_cmpeq_epi8(second, _mm_set1_epi8((char)pair->byte[1])));
}

/* The places of 32 bytes that pass, as two vectors. */
INLINE __m128i two_sse2(const struct simd_pair *pairs, size_t count, const char *p, __m128i r[2])
{
    r[0] = r[1] = _mm_setzero_si128();
    UNROLL
    for (size_t k = 0; k < count; k++) {
        r[0] = _mm_or_si128(r[0], pass_sse2(&pairs[k], p));
        r[1] = _mm_or_si128(r[1], pass_sse2(&pairs[k], p + 16));
    }
    return _mm_or_si128(r[0], r[1]);
}

INLINE uint64_t bits_sse2(const __m128i r[2])
{
    return (uint64_t)_mm_movemask_epi8(r[0]) | (uint64_t)_mm_movemask_epi8(r[1]) << 16;
}

INLINE const char *pass_over_sse2(const struct simd_pairs *f, const char *p, const char *last,
                                  uint64_t bits[2], size_t count)
{
    const struct simd_pair *pairs = f->at;

    for (; p <= last; p += SIMD_BLOCK) {
        __m128i r0[2], r1[2], r2[2], r3[2];
        __m128i any = two_sse2(pairs, count, p, r0);

        any = _mm_or_si128(any, two_sse2(pairs, count, p + 32, r1));
        any = _mm_or_si128(any, two_sse2(pairs, count, p + 64, r2));
        any = _mm_or_si128(any, two_sse2(pairs, count, p + 96, r3));
        if (_mm_movemask_epi8(any)) {
            bits[0] = bits_sse2(r0) | bits_sse2(r1) << 32;
            bits[1] = bits_sse2(r2) | bits_sse2(r3) << 32;
            break;
        }
    }
    return p;
}

VARIANT(block_avx2, AVX2, pass_over_avx2)
VARIANT(block_sse2, , pass_over_sse2)

#endif

/* ---- aarch64 ---- */

#if defined(__aarch64__)

INLINE uint8x16_t pass_neon(const struct simd_pair *pair, const char *x)
{
    uint8x16_t first = vld1q_u8((const uint8_t *)x);
    uint8x16_t second = vld1q_u8((const uint8_t *)x + pair->distance);

    first = vandq_u8(first, vdupq_n_u8(pair->mask[0]));
    second = vandq_u8(second, vdupq_n_u8(pair->mask[1]));
    return vandq_u8(vceqq_u8(first, vdupq_n_u8(pair->byte[0])),
                    vceqq_u8(second, vdupq_n_u8(pair->byte[1])));
}

/* One bit for each byte of four vectors that hold 0 or 255 each. */
INLINE uint64_t bits_neon(const uint8x16_t r[4])
{
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t weight = vld1q_u8(weights);
    uint8x16_t low = vpaddq_u8(vandq_u8(r[0], weight), vandq_u8(r[1], weight));
    uint8x16_t high = vpaddq_u8(vandq_u8(r[2], weight), vandq_u8(r[3], weight));
    uint8x16_t sum = vpaddq_u8(low, high);

    sum = vpaddq_u8(sum, sum);
    return vgetq_lane_u64(vreinterpretq_u64_u8(sum), 0);
}

INLINE const char *pass_over_neon(const struct simd_pairs *f, const char *p, const char *last,
                                  uint64_t bits[2], size_t count)
{
    const struct simd_pair *pairs = f->at;

    for (; p <= last; p += SIMD_BLOCK) {
        uint8x16_t r[SIMD_BLOCK / 16], any = vdupq_n_u8(0);

        for (size_t i = 0; i < SIMD_BLOCK / 16; i++) {
            r[i] = vdupq_n_u8(0);
            UNROLL
            for (size_t k = 0; k < count; k++)
                r[i] = vorrq_u8(r[i], pass_neon(&pairs[k], p + i * 16));
            any = vorrq_u8(any, r[i]);
        }
        if (vmaxvq_u8(any)) {
            bits[0] = bits_neon(r);
            bits[1] = bits_neon(r + 4);
            break;
        }
    }
    return p;
}

VARIANT(block_neon, , pass_over_neon)

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
