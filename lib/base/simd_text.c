#include "chathist/base/simd_text.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define AVX2 __attribute__((target("avx2")))

#define EVERY(byte) (UINT64_C(0x0101010101010101) * (byte))

/*
 * Returns whether any of eight bytes is a quote, a backslash, a control character or not ASCII. With
 * h = 80 in each byte, (w - n) & ~w & h is non-zero exactly if some byte of w is below n.
 */
static bool has_special(uint64_t w)
{
    uint64_t quote = w ^ EVERY('"');
    uint64_t backslash = w ^ EVERY('\\');
    uint64_t below = (w - EVERY(0x20)) & ~w;

    quote = (quote - EVERY(1)) & ~quote;
    backslash = (backslash - EVERY(1)) & ~backslash;
    return ((quote | backslash | below | w) & EVERY(0x80)) != 0;
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* Returns whether the byte may follow a backslash, except for \uXXXX. */
static const bool is_short_escape[256] = {
    ['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true,
    ['f'] = true, ['n'] = true,  ['r'] = true, ['t'] = true,
};

static bool stops(const char *p, const char *end)
{
    return *p != '\\' || end - p < 2 || !is_short_escape[(unsigned char)p[1]];
}

#if defined(__x86_64__)

/* Returns one bit for each of 16 bytes that is neither plain nor the backslash of \n, by far the
 * most frequent escape. As signed numbers, bytes beyond ASCII are less than a blank too. Reads 17
 * bytes. */
INLINE uint64_t special_bits(const char *p)
{
    __m128i x = _mm_loadu_si128((const __m128i_u *)p);
    __m128i next = _mm_loadu_si128((const __m128i_u *)(p + 1));
    __m128i special = _mm_andnot_si128(_mm_cmpeq_epi8(next, _mm_set1_epi8('n')),
                                       _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));

    special = _mm_or_si128(special, _mm_cmpeq_epi8(x, _mm_set1_epi8('"')));
    special = _mm_or_si128(special, _mm_cmplt_epi8(x, _mm_set1_epi8(' ')));
    return (uint32_t)_mm_movemask_epi8(special);
}

/* Passes over plain bytes, block by block. *stop is set at a special byte. The n of an escape can
 * begin the next block, where it counts as plain. */
static const char *pass_plain_sse2(const char *p, const char *end, bool *stop)
{
    while (end - p > 16) {
        bool large = end - p > 64;
        uint64_t left = special_bits(p);

        if (large)
            left |= special_bits(p + 16) << 16 | special_bits(p + 32) << 32 |
                    special_bits(p + 48) << 48;
        if (!left) {
            p += large ? 64 : 16;
            continue;
        }
        p += simd_lowest(left);
        *stop = stops(p, end);
        if (*stop)
            break;
        p += 2;
    }
    return p;
}

/* The kinds of the 64 bytes of a block, one bit each. */
struct plain_bits {
    uint64_t backslash;
    uint64_t other;  /* a quote, a control character */
    uint64_t named;  /* it has a meaning after a backslash */
    uint64_t beyond; /* not ASCII */
};

/* Returns the sixteen bytes twice. */
#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* Returns the upper half of each byte. */
AVX2 INLINE __m256i high_halves(__m256i x)
{
    return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15));
}

/* Returns one bit for each of 64 bytes, which are 0 or 255. */
AVX2 INLINE uint64_t bits_avx2(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

AVX2 INLINE void plain_half_avx2(__m256i x, struct plain_bits *b, unsigned shift)
{
    /* The characters of is_short_escape are those whose two halves share a class: 2x is class 1,
     * 5x is 2, 6x is 4 and 7x is 8. */
    const __m256i low = TWICE(0, 0, 1 | 4 | 8, 0, 8, 0, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1);
    const __m256i high = TWICE(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i controls = _mm256_set1_epi8(0x1f);
    __m256i backslash = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\'));
    __m256i other = _mm256_or_si256(_mm256_cmpeq_epi8(x, _mm256_set1_epi8('"')),
                                    _mm256_cmpeq_epi8(_mm256_max_epu8(x, controls), controls));
    __m256i named =
        _mm256_and_si256(_mm256_shuffle_epi8(low, x), _mm256_shuffle_epi8(high, high_halves(x)));
    __m256i unnamed = _mm256_cmpeq_epi8(named, _mm256_setzero_si256());

    b->backslash |= (uint64_t)(uint32_t)_mm256_movemask_epi8(backslash) << shift;
    b->other |= (uint64_t)(uint32_t)_mm256_movemask_epi8(other) << shift;
    b->named |= (uint64_t)(uint32_t)~_mm256_movemask_epi8(unnamed) << shift;
    b->beyond |= (uint64_t)(uint32_t)_mm256_movemask_epi8(x) << shift;
}

AVX2 INLINE struct plain_bits plain_bits_avx2(const char *block)
{
    struct plain_bits b = {0};

    plain_half_avx2(_mm256_loadu_si256((const __m256i_u *)block), &b, 0);
    plain_half_avx2(_mm256_loadu_si256((const __m256i_u *)(block + 32)), &b, 32);
    return b;
}

/* Returns the bytes that an unescaped backslash escapes. *first says whether the first byte of the
 * block is one; it is set for the next block. Adding the beginning of a run of backslashes to the
 * run carries as far as the run goes, which separates runs that begin at odd bits from those at even
 * ones (the method of simdjson, arxiv.org/abs/1902.08318). */
INLINE uint64_t escaped_bits(uint64_t backslash, uint64_t *first)
{
    const uint64_t even = EVERY(0x55);
    uint64_t follows, sum;

    backslash &= ~*first;
    follows = backslash << 1 | *first;
    *first = __builtin_add_overflow(backslash & ~even & ~follows, backslash, &sum);
    return (even ^ sum << 1) & follows;
}

/* The ways in which two neighbouring bytes are not UTF-8. */
#define BAD_SHORT (1 << 0)      /* a lead without a continuation */
#define BAD_LONG (1 << 1)       /* ASCII, and a continuation */
#define BAD_PAIR (char)(1 << 7) /* two continuations: the second of three or four bytes, or wrong */
#define BAD_OVERLONG_2 (1 << 5) /* c0, c1 */
#define BAD_OVERLONG_3 (1 << 2) /* e0, and below a0 */
#define BAD_SURROGATE (1 << 4)  /* ed, and a0 or more */
#define BAD_LARGE (1 << 3)      /* f4, and 90 or more; f5 and more */
#define BAD_OVERLONG_4 (1 << 6) /* f0, and below 90; the second bit of f5 and more, and below 90 */
#define BAD_ANY (BAD_SHORT | BAD_LONG | BAD_PAIR)
#define BAD_BIG (BAD_ANY | BAD_LARGE | BAD_OVERLONG_4)

/* Returns the bytes of 32 at which an error in UTF-8 shows; the bytes before them are known. Three
 * tables, indexed by the two halves of the previous byte and the upper half of the byte itself, give
 * the possible errors, and an error that all three give is one. Two continuations, however, are
 * right exactly where a lead of three or four bytes is two bytes before, or a lead of four is three
 * bytes before (Keiser and Lemire, arxiv.org/abs/2010.03090). */
AVX2 INLINE uint32_t wrong_avx2(__m256i x, __m256i before)
{
    const __m256i lead_high =
        TWICE(BAD_LONG, BAD_LONG, BAD_LONG, BAD_LONG, BAD_LONG, BAD_LONG, BAD_LONG, BAD_LONG,
              BAD_PAIR, BAD_PAIR, BAD_PAIR, BAD_PAIR, BAD_SHORT | BAD_OVERLONG_2, BAD_SHORT,
              BAD_SHORT | BAD_OVERLONG_3 | BAD_SURROGATE, BAD_SHORT | BAD_LARGE | BAD_OVERLONG_4);
    const __m256i lead_low =
        TWICE(BAD_ANY | BAD_OVERLONG_2 | BAD_OVERLONG_3 | BAD_OVERLONG_4, BAD_ANY | BAD_OVERLONG_2,
              BAD_ANY, BAD_ANY, BAD_ANY | BAD_LARGE, BAD_BIG, BAD_BIG, BAD_BIG, BAD_BIG, BAD_BIG,
              BAD_BIG, BAD_BIG, BAD_BIG, BAD_BIG | BAD_SURROGATE, BAD_BIG, BAD_BIG);
    const __m256i next_high =
        TWICE(BAD_SHORT, BAD_SHORT, BAD_SHORT, BAD_SHORT, BAD_SHORT, BAD_SHORT, BAD_SHORT,
              BAD_SHORT, BAD_LONG | BAD_PAIR | BAD_OVERLONG_2 | BAD_OVERLONG_3 | BAD_OVERLONG_4,
              BAD_LONG | BAD_PAIR | BAD_OVERLONG_2 | BAD_OVERLONG_3 | BAD_LARGE,
              BAD_LONG | BAD_PAIR | BAD_OVERLONG_2 | BAD_SURROGATE | BAD_LARGE,
              BAD_LONG | BAD_PAIR | BAD_OVERLONG_2 | BAD_SURROGATE | BAD_LARGE, BAD_SHORT,
              BAD_SHORT, BAD_SHORT, BAD_SHORT);
    __m256i middle = _mm256_permute2x128_si256(before, x, 0x21);
    __m256i one = _mm256_alignr_epi8(x, middle, 15);
    __m256i two = _mm256_alignr_epi8(x, middle, 14);
    __m256i three = _mm256_alignr_epi8(x, middle, 13);
    __m256i wrong = _mm256_shuffle_epi8(lead_high, high_halves(one));
    __m256i third = _mm256_subs_epu8(two, _mm256_set1_epi8(0xe0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(three, _mm256_set1_epi8(0xf0 - 0x80));
    __m256i wanted = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(BAD_PAIR));

    wrong = _mm256_and_si256(
        wrong, _mm256_shuffle_epi8(lead_low, _mm256_and_si256(one, _mm256_set1_epi8(15))));
    wrong = _mm256_and_si256(wrong, _mm256_shuffle_epi8(next_high, high_halves(x)));
    wrong = _mm256_xor_si256(wrong, wanted);
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(wrong, _mm256_setzero_si256()));
}

/* Returns the lead byte of the last code point before p; that code point is not ASCII. */
static const char *last_lead(const char *begin, const char *p)
{
    p--;
    while (p > begin && ((unsigned char)*p & 0xc0) == 0x80)
        p--;
    return p;
}

/* The state of passing over text block by block. */
struct passing {
    const char *begin;
    uint64_t first;  /* of escaped_bits */
    uint64_t beyond; /* of the block before */
    __m256i
        before; /* the second half of the last block that is not ASCII; all bytes after it are ASCII */
};

/* Returns where plain text ends in a block of 64 bytes, of which those before `from` were passed,
 * or NULL. If it ends because of a possible error in UTF-8, the result is where a code point begins:
 * the one that reaches up to `from`, else the first one after it. */
AVX2 INLINE const char *stop_in(struct passing *s, const char *block, unsigned from)
{
    struct plain_bits b = plain_bits_avx2(block);
    uint64_t wrong = 0, behind = s->beyond >> 63; /* directly after a byte that is not ASCII */
    uint64_t escaped = escaped_bits(b.backslash >> from, &s->first);
    uint64_t stopping = (b.other >> from & ~escaped) | (escaped & ~(b.named >> from));
    ptrdiff_t stop = 64; /* counted from `from`, -1 for a backslash right before it */

    if (stopping) {
        stop = (ptrdiff_t)simd_lowest(stopping);
        stop -= (ptrdiff_t)(escaped >> stop & 1);
    }
    if (b.beyond | behind) {
        __m256i x = _mm256_loadu_si256((const __m256i_u *)block);
        __m256i y = _mm256_loadu_si256((const __m256i_u *)(block + 32));

        wrong = wrong_avx2(x, s->before) | (uint64_t)wrong_avx2(y, x) << 32;
        s->before = y;
    }
    /* The bytes before the last block are not known, and three of its bytes may belong to a code point
 * that ends after it. */
    if (from > 2)
        wrong = wrong >> from << from;
    else if (from > 0)
        wrong = (b.beyond >> from | behind) << from;
    s->beyond = b.beyond;
    if (wrong && (ptrdiff_t)simd_lowest(wrong) <= stop + (ptrdiff_t)from)
        return behind ? last_lead(s->begin, block + from)
                      : block + from + simd_lowest(b.beyond >> from);
    return stopping ? block + from + stop : NULL;
}

/* Does the same for the usual block, after ASCII only. *known is set to whether the block is such a
 * block; if it is not, nothing is changed. */
AVX2 INLINE const char *stop_in_usual(struct passing *s, const char *block, unsigned from,
                                      bool *known)
{
    /* Each character of is_short_escape by its lower half, except two that share their half. */
    const __m256i named = TWICE(-1, 0, '"', 0, 't', 0, 'f', 0, 0, 0, 0, 0, '\\', 0, 'n', '/');
    const __m256i slash = _mm256_set1_epi8('\\'), quote = _mm256_set1_epi8('"');
    const __m256i blank = _mm256_set1_epi8(' ');
    __m256i x = _mm256_loadu_si256((const __m256i_u *)block);
    __m256i y = _mm256_loadu_si256((const __m256i_u *)(block + 32));
    uint64_t slashes = bits_avx2(_mm256_cmpeq_epi8(x, slash), _mm256_cmpeq_epi8(y, slash));
    uint64_t names = bits_avx2(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(named, x), x),
                               _mm256_cmpeq_epi8(_mm256_shuffle_epi8(named, y), y));
    /* As signed numbers, bytes beyond ASCII are less than a blank too. */
    uint64_t others =
        bits_avx2(_mm256_or_si256(_mm256_cmpeq_epi8(x, quote), _mm256_cmpgt_epi8(blank, x)),
                  _mm256_or_si256(_mm256_cmpeq_epi8(y, quote), _mm256_cmpgt_epi8(blank, y)));
    uint64_t first = s->first;
    uint64_t escaped = escaped_bits(slashes >> from, &first);
    uint64_t stopping = (others >> from & ~escaped) | (escaped & ~(names >> from));
    const char *stop = stopping ? block + from + simd_lowest(stopping) : NULL;

    /* After a backslash at the end of the text it can be the end. */
    *known = !stop || (stop < block + 64 && *stop == '"');
    if (!stop)
        s->first = first;
    return stop;
}

AVX2 INLINE const char *stop_in_any(struct passing *s, const char *block, unsigned from)
{
    bool known = false;
    const char *stop = NULL;

    if (!s->beyond)
        stop = stop_in_usual(s, block, from, &known);
    return known ? stop : stop_in(s, block, from);
}

/* Like pass_plain_sse2, but with one branch for a block that has escapes and without a stop at
 * characters beyond ASCII. The last block is the 64 bytes before the end, which can be read, even if
 * some of them were passed already. */
AVX2 static const char *pass_plain_avx2(const char *p, const char *end)
{
    struct passing s = {.begin = p, .before = _mm256_setzero_si256()};
    const char *stop = NULL;

    for (; end - p >= 64; p += 64) {
        stop = stop_in_any(&s, p, 0);
        if (stop)
            return stop;
    }
    if (p < end) {
        s.before = _mm256_setzero_si256();
        stop = stop_in_any(&s, end - 64, (unsigned)(64 - (end - p)));
    }
    if (stop)
        return stop;
    return (unsigned char)end[-1] < 0x80 ? end - s.first : last_lead(s.begin, end);
}

#endif

const char *simd_special_with(enum simd with, const char *p, const char *end)
{
    uint64_t w;

#if defined(__x86_64__)
    bool stop = false;

    if (with == SIMD_AVX2 && end - p >= 64) {
        uint64_t near = special_bits(p); /* the end of a key or of a short value */

        p += near ? simd_lowest(near) : 0;
        return near && (unsigned char)*p < 0x80 && stops(p, end) ? p : pass_plain_avx2(p, end);
    }
    if (with != SIMD_PORTABLE)
        p = pass_plain_sse2(p, end, &stop);
    if (stop)
        return p;
#else
    (void)with;
#endif
    while (p < end) {
        for (; end - p >= (ptrdiff_t)sizeof(w); p += sizeof(w)) {
            memcpy(&w, p, sizeof(w));
            if (has_special(w))
                break;
        }
        while (p < end && is_plain(*p))
            p++;
        if (p == end || stops(p, end))
            break;
        p += 2;
    }
    return p;
}

const char *simd_special(const char *p, const char *end)
{
#if defined(__x86_64__)
    return simd_special_with(__builtin_cpu_supports("avx2") ? SIMD_AVX2 : SIMD_SSE2, p, end);
#else
    return simd_special_with(SIMD_PORTABLE, p, end);
#endif
}

bool simd_all_plain(const char *p, size_t n)
{
    uint64_t w;

#if defined(__x86_64__)
    /* The last 16 bytes may be checked twice. */
    for (size_t i = 0; n >= 16 && i < n; i += 16) {
        const char *at = p + (n - i < 16 ? n - 16 : i);
        __m128i x = _mm_loadu_si128((const __m128i_u *)at);
        __m128i special = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')),
                                       _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));

        if (_mm_movemask_epi8(_mm_or_si128(special, _mm_cmplt_epi8(x, _mm_set1_epi8(' ')))))
            return false;
    }
    if (n >= 16)
        return true;
#endif
    for (; n >= sizeof(w); n -= sizeof(w), p += sizeof(w)) {
        memcpy(&w, p, sizeof(w));
        if (has_special(w))
            return false;
    }
    for (; n && is_plain(*p); p++)
        n--;
    return n == 0;
}

#if defined(__x86_64__)

INLINE __m128i newlines(const char *p)
{
    return _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i_u *)p), _mm_set1_epi8('\n'));
}

INLINE bool some_newline(const char *p)
{
    __m128i low = _mm_or_si128(newlines(p), newlines(p + 16));
    __m128i high = _mm_or_si128(newlines(p + 32), newlines(p + 48));

    return _mm_movemask_epi8(_mm_or_si128(low, high));
}

/* Returns the offset after the last newline of 64 bytes. */
INLINE size_t behind_newline_64(const char *p)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < 64; i += 16)
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(newlines(p + i)) << i;
    return bits ? 64 - (size_t)__builtin_clzll(bits) : 0;
}

#endif

size_t simd_after_newline(const char *p, size_t n)
{
    uint64_t w;

#if defined(__x86_64__)
    if (n >= 64) {
        while (n > 64 && !some_newline(p + n - 64))
            n -= 64;
        /* The first 64 bytes are checked whole; those that were passed have no newline. */
        n = n > 64 ? n - 64 : 0;
        return n + behind_newline_64(p + n);
    }
#endif
    for (; n >= sizeof(w); n -= sizeof(w)) {
        memcpy(&w, p + n - sizeof(w), sizeof(w));
        w ^= EVERY('\n');
        if ((w - EVERY(1)) & ~w & EVERY(0x80))
            break;
    }
    while (n && p[n - 1] != '\n')
        n--;
    return n;
}
