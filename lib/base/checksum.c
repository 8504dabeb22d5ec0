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

#define LANES 4
#define STRIDE (LANES * sizeof(uint64_t))

uint64_t checksum_long(struct str bytes, uint64_t before)
{
    uint64_t sums[LANES];
    size_t i = 0;

    if (bytes.n < STRIDE)
        return checksum(bytes, before);
    for (size_t k = 0; k < LANES; k++)
        sums[k] = k + 1;
    for (; bytes.n - i >= STRIDE; i += STRIDE)
        for (size_t k = 0; k < LANES; k++)
            sums[k] = mix(sums[k], le_get(bytes.p + i + k * sizeof(uint64_t)));
    return checksum((struct str){bytes.p + i, bytes.n - i}, checksum_words(sums, LANES, before));
}

uint64_t checksum_words(const uint64_t *words, size_t n, uint64_t before)
{
    uint64_t sum = sum_begin(n, before);

    for (size_t i = 0; i < n; i++)
        sum = mix(sum, words[i]);
    return sum_end(sum);
}
