#include "search/literal_scan.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"

/* ---- tests of bytes ---- */

/* A byte b passes if (b & mask) == byte. */
struct byte_test {
    unsigned char mask, byte;
    uint64_t frequency; /* how many of 100,000 bytes of a history pass */
};

/* Every byte passes. */
#define BYTE_TEST_ANY                                                                              \
    {                                                                                              \
        .frequency = 100000                                                                        \
    }

/* How many of 100,000 bytes have each value, in histories of English, code and some other
 * languages. */
static const uint16_t frequency[256] = {
    1,     1,    1,    1,    1,    1,    1,    1,    1,    1,    99,  1,   1,    1,    1,    1,
    1,     1,    1,    1,    1,    1,    1,    1,    1,    1,    1,   1,   1,    1,    1,    1,
    14543, 22,   2493, 22,   22,   22,   22,   59,   138,  138,  22,  128, 1323, 406,  1074, 133,
    1415,  880,  848,  747,  599,  466,  621,  625,  440,  409,  992, 44,  66,   102,  81,   120,
    22,    149,  55,   81,   59,   110,  75,   25,   32,   110,  27,  12,  50,   38,   65,   134,
    38,    7,    86,   89,   284,  35,   35,   63,   7,    39,   8,   51,  1370, 51,   14,   577,
    90,    4911, 948,  2195, 2139, 7334, 1914, 860,  2916, 4233, 214, 509, 2266, 1586, 5006, 5061,
    1301,  251,  3843, 3827, 6069, 2280, 567,  1040, 349,  1190, 190, 182, 15,   182,  7,    1,
    63,    102,  117,  59,   27,   12,   12,   43,   20,   16,   9,   32,  22,   20,   10,   35,
    11,    8,    7,    12,   24,   19,   17,   7,    21,   28,   21,  12,  36,   7,    13,   48,
    9,     15,   11,   7,    24,   15,   7,    10,   20,   7,    8,   7,   7,    11,   8,    40,
    101,   25,   52,   15,   24,   97,   52,   19,   94,   10,   67,  59,  90,   107,  147,  41,
    1,     1,    14,   125,  10,   10,   1,    1,    1,    1,    1,   1,   1,    1,    20,   20,
    761,   283,  10,   1,    1,    1,    1,    10,   10,   10,   1,   1,   1,    1,    1,    1,
    30,    10,   66,   129,  34,   85,   83,   37,   36,   16,   10,  10,  10,   10,   10,   10,
    19,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,   1,   1,    1,    1,    1,
};

/* ---- probes ---- */

void literal_scan_init(struct literal_scan *s, bool wide)
{
    *s = (struct literal_scan){.block = simd_block_of(wide)};
}

static bool has_all_probes(const struct literal_scan *s)
{
    return s->probes.pair_count + s->probes.triple_count == SIMD_PROBES;
}

static void widen_reach(struct literal_scan *s, const struct simd_test *t)
{
    if (t->distance > s->reach)
        s->reach = t->distance;
}

bool literal_scan_add_pair(struct literal_scan *s, struct simd_pair pair)
{
    for (size_t i = 0; i < s->probes.pair_count; i++) {
        const struct simd_pair *one = &s->probes.pairs[i];

        if (one->first == pair.first && one->second.distance == pair.second.distance &&
            one->second.mask == pair.second.mask && one->second.byte == pair.second.byte)
            return true;
    }
    if (has_all_probes(s))
        return false;
    s->probes.pairs[s->probes.pair_count++] = pair;
    widen_reach(s, &pair.second);
    return true;
}

bool literal_scan_add_triple(struct literal_scan *s, struct simd_triple triple)
{
    if (has_all_probes(s))
        return false;
    s->probes.triples[s->probes.triple_count++] = triple;
    for (size_t i = 0; i < 3; i++)
        widen_reach(s, &triple.test[i]);
    return true;
}

/* Reports the places of one block that are at or after *from and before `end`, and moves *from.
 * Returns false when the scan ends. */
static bool report_block(const char *block, const uint64_t bits[2], const char **from,
                         const char *end, literal_seen *seen, void *ctx)
{
    for (size_t half = 0; half < 2; half++) {
        const char *start = block + half * 64;

        while (*from < start + 64) {
            uint64_t left = bits[half] & ~UINT64_C(0) << (*from > start ? *from - start : 0);

            if (!left)
                break;

            const char *place = start + __builtin_ctzll(left);

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

void literal_scan_each(const struct literal_scan *s, const char *from, const char *end,
                       literal_seen *seen, void *ctx)
{
    size_t whole = SIMD_BLOCK + s->reach; /* the bytes that are read for one block */
    uint64_t bits[2];

    if (s->probes.pair_count + s->probes.triple_count == 0)
        return;
    while (from < end && (size_t)(end - from) >= whole) {
        const char *last = end - whole;
        const char *block = s->block(&s->probes, from, last, bits);

        if (block > last) {
            from = block;
            break;
        }
        from = block;
        if (!report_block(block, bits, &from, end, seen, ctx))
            return;
    }

    /* The rest is shorter than a block and its reach, so it is copied and zeros follow it. */
    while (from < end) {
        char rest[SIMD_BLOCK + SIMD_DISTANCE + 1] = {0};
        size_t n = (size_t)(end - from);

        memcpy(rest, from, n < sizeof(rest) ? n : sizeof(rest));

        const char *block = from;

        if (s->block(&s->probes, rest, rest, bits) > rest)
            from += SIMD_BLOCK;
        else if (!report_block(block, bits, &from, end, seen, ctx))
            return;
    }
}

/* ---- literals ---- */

/* The ways to write one character, without escapes. There are none if it has an escape of two
 * characters: then only the decoded content decides. */
struct unit {
    size_t count;
    struct form {
        size_t n;
        char bytes[4];
    } form[UTF8_FOLD_SAME];
    struct byte_test test[4]; /* for each byte of the forms as long as the first one */
};

struct literal {
    struct unit *units;
    size_t count, cap;
    size_t unit, offset; /* the triple begins at byte `offset` of units[unit] */
    struct simd_triple triple;
    struct simd_pair odd[2]; /* the first bytes of forms that change the distances */
    size_t odd_count;
};

static bool is_pair(const struct simd_pair *pair, const char *p)
{
    return (unsigned char)p[0] == pair->first && (unsigned char)p[1] == pair->second.byte;
}

void literal_scan_release(struct literal_scan *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->literals[i].units);
    free(s->literals);
    free(s->characters);
    *s = (struct literal_scan){0};
}

/* ---- characters ---- */

static void add_form(struct literal_scan *s, struct unit *u, int32_t cp)
{
    struct form *f = &u->form[u->count++];

    f->n = utf8_encode(cp, f->bytes);
    s->characters =
        mem_grow(s->characters, &s->character_cap, s->character_count + 1, sizeof *s->characters);
    s->characters[s->character_count++] = cp;
}

void literal_scan_add(struct literal_scan *s, struct str text, bool exact)
{
    struct literal literal = {0};

    while (text.n > 0) {
        struct unit u = {0};
        int32_t same[UTF8_FOLD_SAME], cp;
        size_t bytes = utf8_decode(text, &cp);
        /* JSON may write a quote, a backslash, a slash, a newline and the like as an escape of two
         * characters. */
        size_t count = cp < 0x20 || cp == '"' || cp == '\\' || cp == '/' ? 0 : 1;

        same[0] = cp;
        if (!exact && count > 0)
            count = utf8_fold_same(cp, same);
        for (size_t i = 0; i < count; i++)
            add_form(s, &u, same[i]);
        literal.units = mem_grow(literal.units, &literal.cap, literal.count + 1, sizeof u);
        literal.units[literal.count++] = u;
        text = str_skip(text, bytes);
    }
    s->literals = mem_grow(s->literals, &s->cap, s->count + 1, sizeof *s->literals);
    s->literals[s->count++] = literal;
}

/* ---- the triple ---- */

/* The cost of one more pair of probes, in candidates per million bytes that take as long. */
#define PAIR_COST ((uint64_t)800)

/* Returns the tightest test that the byte at `offset` passes in every form that is as long as the
 * first one. */
static struct byte_test test_of(const struct unit *u, size_t offset)
{
    unsigned char all = 0xff, any = 0;
    struct byte_test t = {0};

    for (size_t i = 0; i < u->count; i++) {
        if (u->form[i].n != u->form[0].n)
            continue;
        all &= (unsigned char)u->form[i].bytes[offset];
        any |= (unsigned char)u->form[i].bytes[offset];
    }
    t.mask = (unsigned char)~(any & ~all);
    t.byte = all;
    for (size_t b = 0; b < 256; b++) {
        if ((b & t.mask) == t.byte)
            t.frequency += frequency[b];
    }
    return t;
}

/* Adds the first bytes of the forms whose length differs. Returns false if there are too many. */
static bool add_odd(struct simd_pair odd[2], size_t *count, const struct unit *u)
{
    for (size_t i = 1; i < u->count; i++) {
        const struct form *f = &u->form[i];
        struct simd_pair p = {(unsigned char)f->bytes[0], {1, 0xff, (unsigned char)f->bytes[1]}};
        size_t k = 0;

        if (f->n == u->form[0].n)
            continue;
        while (k < *count && !is_pair(&odd[k], f->bytes))
            k++;
        if (k == 2)
            return false;
        if (k == *count)
            odd[(*count)++] = p;
    }
    return true;
}

/* The two rarest bytes found so far after the first one. */
struct rarest {
    struct byte_test test[2];
    size_t distance[2];
};

static void add_rare(struct rarest *r, const struct byte_test *t, size_t distance)
{
    size_t at = t->frequency < r->test[0].frequency ? 0 : 1;

    if (t->frequency >= r->test[1].frequency)
        return;
    r->test[1] = r->test[0];
    r->distance[1] = r->distance[0];
    r->test[at] = *t;
    r->distance[at] = distance;
}

static struct simd_test simd_test_of(const struct byte_test *t, size_t distance)
{
    return (struct simd_test){distance, t->mask, t->byte};
}

/* Sets the best triple whose first byte is in this unit if it costs less than *best. */
static void improve_triple(struct literal *l, size_t unit, size_t offset, uint64_t *best)
{
    const struct byte_test *first = &l->units[unit].test[offset];
    struct rarest r = {.test = {BYTE_TEST_ANY, BYTE_TEST_ANY}};
    struct simd_pair odd[2];
    size_t odd_count = 0;
    size_t distance = 0; /* bytes from the first unit to unit i */

    for (size_t i = unit; i < l->count && distance <= offset + SIMD_DISTANCE; i++) {
        const struct unit *u = &l->units[i];
        uint64_t cost;

        if (u->count == 0 || !add_odd(odd, &odd_count, u))
            return;
        for (size_t k = 0; k < u->form[0].n; k++) {
            if (distance + k > offset && distance + k - offset <= SIMD_DISTANCE)
                add_rare(&r, &u->test[k], distance + k - offset);
        }
        distance += u->form[0].n;
        cost = first->frequency * r.test[0].frequency * r.test[1].frequency / 1000000000 +
               odd_count * PAIR_COST;
        if (cost >= *best)
            continue;
        *best = cost;
        l->unit = unit;
        l->offset = offset;
        l->triple =
            (struct simd_triple){{simd_test_of(first, 0), simd_test_of(&r.test[0], r.distance[0]),
                                  simd_test_of(&r.test[1], r.distance[1])}};
        l->odd_count = odd_count;
        memcpy(l->odd, odd, sizeof(odd));
    }
}

/* The triple is chosen from this many characters of a long literal. */
#define ENOUGH ((size_t)256)

/* Chooses the triple, and returns its cost: UINT64_MAX if the literal has no place for one. */
static uint64_t choose_triple(struct literal *l)
{
    uint64_t best = UINT64_MAX;

    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; l->units[i].count > 0 && k < l->units[i].form[0].n; k++)
            l->units[i].test[k] = test_of(&l->units[i], k);
    for (size_t i = 0; i < l->count && i < ENOUGH; i++)
        for (size_t k = 0; l->units[i].count > 0 && k < l->units[i].form[0].n; k++)
            improve_triple(l, i, k, &best);
    return best;
}

/* ---- escapes ---- */

#define REPLACEMENT 0xfffd

static int by_value(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Returns the number in the first \uXXXX of a character. */
static int32_t first_unit(int32_t cp)
{
    return cp < 0x10000 ? cp : 0xd800 + ((cp - 0x10000) >> 10);
}

/*
 * Returns the probe for an escape of any of the characters: a backslash, and that one of the four
 * digits that excludes most other characters, or the `u`.
 */
static struct simd_pair escape_pair(const struct literal_scan *s)
{
    /* The second digit separates ASCII from most scripts. */
    static const unsigned order[] = {1, 0, 2, 3};
    static const char digits[] = "0123456789abcdef";
    struct simd_pair best = {'\\', {1, 0xff, 'u'}};
    int fewest = 3; /* bits that the test leaves open */

    /* An unpaired surrogate stands for U+FFFD. */
    for (size_t i = 0; i < s->character_count; i++) {
        if (s->characters[i] == REPLACEMENT)
            return best;
    }
    for (size_t i = 0; i < 4; i++) {
        unsigned k = order[i];
        unsigned char all = 0xff, any = 0;

        for (size_t c = 0; c < s->character_count; c++) {
            char digit = digits[first_unit(s->characters[c]) >> (12 - 4 * k) & 15];
            unsigned char either = digit >= 'a' ? 0x20 : 0; /* it may be a capital letter */

            all &= (unsigned char)(digit & ~either);
            any |= (unsigned char)digit;
        }

        unsigned char mask = (unsigned char)~(any & ~all);
        int bits = __builtin_popcount((unsigned char)~mask);

        if (bits < fewest) {
            fewest = bits;
            best.second = (struct simd_test){k + 2, mask, (unsigned char)(all & mask)};
        }
    }
    return best;
}

static bool has_character(const struct literal_scan *s, int32_t cp)
{
    return bsearch(&cp, s->characters, s->character_count, sizeof *s->characters, by_value);
}

/* Returns whether a \uXXXX at p stands for one of the characters. Only the first half of a pair of
 * surrogates is compared. */
static bool escape_matters(const struct literal_scan *s, const char *p, const char *end)
{
    int32_t unit = json_hex4(p + 2, end);

    if (!json_is_surrogate(unit))
        return has_character(s, unit);
    if (has_character(s, REPLACEMENT))
        return true;
    for (size_t i = s->character_count; i-- > 0 && s->characters[i] >= 0x10000;) {
        if (first_unit(s->characters[i]) == unit)
            return true;
    }
    return false;
}

bool literal_scan_ready(struct literal_scan *s)
{
    bool fits;

    if (s->character_count == 0)
        return false;
    qsort(s->characters, s->character_count, sizeof *s->characters, by_value);
    fits = literal_scan_add_pair(s, escape_pair(s));
    for (size_t i = 0; i < s->count && fits; i++) {
        struct literal *one = &s->literals[i];
        uint64_t cost = choose_triple(one);

        fits = cost < UINT64_MAX;
        if (!fits)
            break;
        s->cost += cost + PAIR_COST;
        fits = literal_scan_add_triple(s, one->triple);
        for (size_t k = 0; k < one->odd_count; k++)
            fits = fits && literal_scan_add_pair(s, one->odd[k]);
    }
    return fits;
}

/* ---- comparing ---- */

/* Compares one form; it is too short for a call of memcmp. */
static bool is_form(const char *p, const struct form *f)
{
    size_t i = 0;

    while (i < f->n && p[i] == f->bytes[i])
        i++;
    return i == f->n;
}

/* Returns the length of the form that begins at p, or 0. */
static size_t form_at(const struct unit *u, const char *p, const char *end)
{
    for (size_t i = 0; i < u->count; i++)
        if ((size_t)(end - p) >= u->form[i].n && is_form(p, &u->form[i]))
            return u->form[i].n;
    return 0;
}

/* Returns the length of the form that ends at p, or 0. */
static size_t form_before(const struct unit *u, const char *begin, const char *p)
{
    for (size_t i = 0; i < u->count; i++)
        if ((size_t)(p - begin) >= u->form[i].n && is_form(p - u->form[i].n, &u->form[i]))
            return u->form[i].n;
    return 0;
}

/* Returns whether the literal is there, or may be. *at is set as in the header. */
static bool is_literal_at(const struct literal *l, const char *place, const char *begin,
                          const char *end, const char **at)
{
    const char *p = place - l->offset;
    size_t i, length;

    if ((size_t)(place - begin) < l->offset)
        return false;
    for (i = l->unit; i < l->count && l->units[i].count > 0; i++, p += length) {
        length = form_at(&l->units[i], p, end);
        if (length == 0)
            return false;
    }
    p = place - l->offset;
    for (size_t k = l->unit; k > 0; k--, p -= length) {
        if (l->units[k - 1].count == 0)
            return true;
        length = form_before(&l->units[k - 1], begin, p);
        if (length == 0)
            return false;
    }
    if (i == l->count)
        *at = p;
    return true;
}

static bool is_odd(const struct literal *l, const char *place, const char *end)
{
    for (size_t i = 0; i < l->odd_count && end - place > 1; i++) {
        if (is_pair(&l->odd[i], place))
            return true;
    }
    return false;
}

bool literal_scan_may_match(const struct literal_scan *s, const char *place, const char *begin,
                            const char *end, const char **at)
{
    *at = NULL;
    if (end - place > 1 && place[0] == '\\' && place[1] == 'u' && escape_matters(s, place, end))
        return true;
    for (size_t i = 0; i < s->count; i++) {
        const struct literal *one = &s->literals[i];

        if (is_odd(one, place, end) || is_literal_at(one, place, begin, end, at))
            return true;
    }
    return false;
}
