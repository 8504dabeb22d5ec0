#include "chathist/search/find.h"

#include <string.h>

void find_init(struct find *f, enum simd with)
{
    *f = (struct find){.block = simd_block_of(with)};
}

static bool is_full(const struct find *f)
{
    return f->probes.pair_count + f->probes.triple_count == SIMD_PROBES;
}

static void reach(struct find *f, const struct simd_test *t)
{
    if (t->distance > f->reach)
        f->reach = t->distance;
}

bool find_add_pair(struct find *f, struct simd_pair pair)
{
    if (is_full(f))
        return false;
    f->probes.pairs[f->probes.pair_count++] = pair;
    reach(f, &pair.second);
    return true;
}

bool find_add_triple(struct find *f, struct simd_triple triple)
{
    if (is_full(f))
        return false;
    f->probes.triples[f->probes.triple_count++] = triple;
    for (size_t i = 0; i < 3; i++)
        reach(f, &triple.test[i]);
    return true;
}

/* Tells the places of a block that begins at `block` in the text, from *from on and before `end`,
 * and moves *from. false: no more. */
static bool tell(const char *block, const uint64_t bits[2], const char **from, const char *end,
                 find_seen *seen, void *ctx)
{
    for (size_t half = 0; half < 2; half++) {
        const char *start = block + half * 64;

        while (*from < start + 64) {
            uint64_t left = bits[half] & ~UINT64_C(0) << (*from > start ? *from - start : 0);

            if (!left)
                break;

            const char *place = start + simd_lowest(left);

            if (place >= end)
                return false;
            *from = seen(ctx, place);
            if (!*from)
                return false;
        }
    }
    if (*from < block + SIMD_BLOCK)
        *from = block + SIMD_BLOCK;
    return true;
}

void find_each(const struct find *f, const char *from, const char *end, find_seen *seen, void *ctx)
{
    size_t whole = SIMD_BLOCK + f->reach; /* so many bytes are read of a block */
    uint64_t bits[2];

    if (f->probes.pair_count + f->probes.triple_count == 0)
        return;
    while (from < end && (size_t)(end - from) >= whole) {
        const char *last = end - whole;
        const char *block = f->block(&f->probes, from, last, bits);

        if (block > last) {
            from = block;
            break;
        }
        from = block;
        if (!tell(block, bits, &from, end, seen, ctx))
            return;
    }

    /* What is left is shorter than a block and its reach: it is copied to where zeros follow. */
    while (from < end) {
        char rest[SIMD_BLOCK + SIMD_DISTANCE + 1] = {0};
        size_t n = (size_t)(end - from);

        memcpy(rest, from, n < sizeof(rest) ? n : sizeof(rest));

        const char *block = from;

        if (f->block(&f->probes, rest, rest, bits) > rest)
            from += SIMD_BLOCK;
        else if (!tell(block, bits, &from, end, seen, ctx))
            return;
    }
}
