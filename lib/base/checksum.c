#include "chathist/base/checksum.h"

#include <string.h>

static uint64_t turn(uint64_t n)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    n = __builtin_bswap64(n);
#endif
    return n;
}

uint64_t le_get(const char *p)
{
    uint64_t n;

    memcpy(&n, p, sizeof(n));
    return turn(n);
}

void le_put(char *p, uint64_t n)
{
    n = turn(n);
    memcpy(p, &n, sizeof(n));
}

void le_get_all(uint64_t *to, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = le_get(p + i * sizeof(*to));
}

/* Each step can be undone, so that a change of one word is never lost. */
static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return sum ^ sum >> 32;
}

static uint64_t sum_begin(size_t n, uint64_t before)
{
    return mix(before ^ UINT64_C(0x9e3779b97f4a7c15), n);
}

static uint64_t sum_end(uint64_t sum)
{
    return mix(sum, 1);
}

uint64_t checksum(struct str bytes, uint64_t before)
{
    uint64_t sum = sum_begin(bytes.n, before);
    char rest[8] = {0};
    size_t i = 0;

    for (; bytes.n - i >= sizeof(rest); i += sizeof(rest))
        sum = mix(sum, le_get(bytes.p + i));
    if (i < bytes.n)
        memcpy(rest, bytes.p + i, bytes.n - i);
    return sum_end(mix(sum, le_get(rest)));
}

uint64_t checksum_words(const uint64_t *words, size_t n, uint64_t before)
{
    uint64_t sum = sum_begin(n, before);

    for (size_t i = 0; i < n; i++)
        sum = mix(sum, words[i]);
    return sum_end(sum);
}

/* ---- XXH64 ---- */

#define P1 UINT64_C(0x9e3779b185ebca87)
#define P2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define P3 UINT64_C(0x165667b19e3779f9)
#define P4 UINT64_C(0x85ebca77c2b2ae63)
#define P5 UINT64_C(0x27d4eb2f165667c5)
#define LANES 4

static uint64_t rotate(uint64_t n, unsigned bits)
{
    return n << bits | n >> (64 - bits);
}

static uint64_t round_of(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * P2, 31) * P1;
}

/* Hashes the blocks of 32 bytes at *p, and moves it past them. */
static uint64_t hash_blocks(const char **p, size_t blocks, uint64_t seed)
{
    uint64_t lane[LANES] = {seed + P1 + P2, seed + P2, seed, seed - P1}, h;

    for (; blocks > 0; blocks--, *p += LANES * 8)
        for (size_t k = 0; k < LANES; k++)
            lane[k] = round_of(lane[k], le_get(*p + k * 8));
    h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (size_t k = 0; k < LANES; k++)
        h = (h ^ round_of(0, lane[k])) * P1 + P4;
    return h;
}

uint64_t hash64(struct str bytes, uint64_t seed)
{
    const char *p = bytes.p;
    size_t blocks = bytes.n / (LANES * 8), rest = bytes.n % (LANES * 8);
    uint64_t h = (blocks > 0 ? hash_blocks(&p, blocks, seed) : seed + P5) + bytes.n;

    for (; rest >= 8; rest -= 8, p += 8)
        h = rotate(h ^ round_of(0, le_get(p)), 27) * P1 + P4;
    if (rest >= 4) {
        char word[8] = {0};

        memcpy(word, p, 4);
        h = rotate(h ^ le_get(word) * P1, 23) * P2 + P3;
        rest -= 4;
        p += 4;
    }
    for (; rest > 0; rest--)
        h = rotate(h ^ (unsigned char)*p++ * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

uint64_t hash_fnv(struct str bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < bytes.n; i++)
        h = (h ^ (unsigned char)bytes.p[i]) * UINT64_C(0x100000001b3);
    /* This makes the last byte change all bits. */
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 33;
}
