#include "chathist/search/needle.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/fold.h"
#include "chathist/base/json.h"
#include "chathist/base/mem.h"
#include "chathist/base/utf8.h"
#include "search/byte_test.h"

#define FORMS (FOLD_SAME + 1)

/* What is compared at one glance. */
#define GLANCE sizeof(uint64_t)

/* How one character may be written, but for \uXXXX. */
struct unit {
    size_t count; /* 0: only so */
    struct form {
        size_t n;
        char bytes[4];
    } form[FORMS];
    struct byte_test test[4]; /* of the bytes of the forms that are as long as the first */
};

struct needle {
    struct unit *units;
    size_t count, cap;
    /* The first byte of its triple: where it is. Without a triple (count of a unit is 0) there is
     * nothing to be compared. */
    bool has_triple;
    size_t unit, offset;
    struct simd_triple triple;
    struct simd_pair odd[2]; /* the beginnings of forms that would change the distance */
    size_t odd_count;
    /* What the bytes round it have in common, however they are written. */
    size_t before; /* so far in front of the triple's first byte they begin */
    unsigned char mask[GLANCE], bytes[GLANCE];
    bool whole; /* there is no more to the needle */
};

static bool is_pair(const struct simd_pair *pair, const char *p)
{
    return (unsigned char)p[0] == pair->first && (unsigned char)p[1] == pair->second.byte;
}

void needles_init(struct needles *n, enum simd with)
{
    *n = (struct needles){0};
    find_init(&n->find, with);
}

void needles_release(struct needles *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->at[i].units);
    free(n->at);
    free(n->characters);
    *n = (struct needles){0};
}

/* ---- characters ---- */

static void add_form(struct unit *u, const char *bytes, size_t n)
{
    struct form *f = &u->form[u->count++];

    f->n = n;
    memcpy(f->bytes, bytes, n);
}

static void add_character(struct needles *n, struct unit *u, int32_t cp)
{
    static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *short_name = cp < 0x80 ? memchr(special, cp, sizeof(special) - 1) : NULL;
    char bytes[4];

    n->characters =
        mem_grow(n->characters, &n->character_cap, n->character_count + 1, sizeof *n->characters);
    n->characters[n->character_count++] = cp;
    if (short_name) {
        bytes[0] = '\\';
        bytes[1] = names[short_name - special];
        add_form(u, bytes, 2);
    } else if (cp >= 0x20) {
        add_form(u, bytes, utf8_encode(cp, bytes));
    }
    if (cp == '/')
        add_form(u, "\\/", 2);
}

void needles_add(struct needles *n, struct str text, bool exact)
{
    struct needle needle = {0};

    while (text.n > 0) {
        struct unit u = {0};
        int32_t same[FOLD_SAME], cp;
        size_t bytes = utf8_decode(text, &cp);
        size_t count = 1;

        same[0] = cp;
        if (!exact)
            count = fold_same(cp, same);
        for (size_t i = 0; i < count; i++)
            add_character(n, &u, same[i]);
        needle.units = mem_grow(needle.units, &needle.cap, needle.count + 1, sizeof u);
        needle.units[needle.count++] = u;
        text.p += bytes;
        text.n -= bytes;
    }
    n->at = mem_grow(n->at, &n->cap, n->count + 1, sizeof *n->at);
    n->at[n->count++] = needle;
}

/* ---- the triple ---- */

/* What one more pair costs, in candidates per million bytes that take as long. */
#define PAIR_COST ((uint64_t)800)

static struct byte_test test_of(const struct unit *u, size_t offset)
{
    char bytes[FORMS];
    size_t n = 0;

    for (size_t i = 0; i < u->count; i++) {
        if (u->form[i].n == u->form[0].n)
            bytes[n++] = u->form[i].bytes[offset];
    }
    return byte_test_of((struct str){bytes, n});
}

/* Adds the beginnings of a unit's forms of another length: false when they become too many. */
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

/* The rarest bytes behind the first one, by now. */
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

/* The best triple whose first byte is in this unit, when it costs less than *best. */
static void choose_from(struct needle *n, size_t unit, size_t offset, uint64_t *best)
{
    const struct byte_test *first = &n->units[unit].test[offset];
    struct rarest r = {.test = {BYTE_TEST_ANY, BYTE_TEST_ANY}};
    struct simd_pair odd[2];
    size_t odd_count = 0;
    size_t distance = 0; /* of the unit that is looked at */

    for (size_t i = unit; i < n->count && distance <= offset + SIMD_DISTANCE; i++) {
        const struct unit *u = &n->units[i];
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
        n->has_triple = true;
        n->unit = unit;
        n->offset = offset;
        n->triple =
            (struct simd_triple){{simd_test_of(first, 0), simd_test_of(&r.test[0], r.distance[0]),
                                  simd_test_of(&r.test[1], r.distance[1])}};
        n->odd_count = odd_count;
        memcpy(n->odd, odd, sizeof(odd));
    }
}

/* So many characters of a long needle are enough to choose from. */
#define ENOUGH ((size_t)256)

static void choose(struct needle *n)
{
    uint64_t best = UINT64_MAX;

    /* With a character that is always \uXXXX it is found by that alone. */
    for (size_t i = 0; i < n->count; i++) {
        if (n->units[i].count == 0)
            return;
        for (size_t k = 0; k < n->units[i].form[0].n; k++)
            n->units[i].test[k] = test_of(&n->units[i], k);
    }
    for (size_t i = 0; i < n->count && i < ENOUGH; i++) {
        for (size_t k = 0; k < n->units[i].form[0].n; k++)
            choose_from(n, i, k, &best);
    }
}

/* ---- the glance ---- */

/* The length of all forms of a character, 0 when they differ. */
static size_t length_of(const struct unit *u)
{
    for (size_t i = 1; i < u->count; i++) {
        if (u->form[i].n != u->form[0].n)
            return 0;
    }
    return u->count ? u->form[0].n : 0;
}

/* From the needle's beginning on when that is near the triple, else from its first character on; up
 * to a character whose length is not known, or that does not fit. */
static void make_glance(struct needle *n)
{
    size_t first = n->unit, at = 0, i;

    n->before = n->offset;
    while (first > 0 && length_of(&n->units[first - 1]) &&
           n->before + length_of(&n->units[first - 1]) < GLANCE)
        n->before += length_of(&n->units[--first]);
    n->whole = first == 0;
    for (i = first; i < n->count; i++) {
        const struct unit *u = &n->units[i];
        size_t passing = 1; /* texts that pass the tests */

        if (!length_of(u) || at + length_of(u) > GLANCE)
            break;
        for (size_t k = 0; k < length_of(u); k++, at++) {
            n->mask[at] = u->test[k].mask;
            n->bytes[at] = u->test[k].byte;
            passing <<= __builtin_popcount((unsigned char)~u->test[k].mask);
        }
        n->whole = n->whole && passing == u->count;
    }
    n->whole = n->whole && i == n->count;
}

/* ---- escapes ---- */

#define REPLACEMENT 0xfffd

static int by_value(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The first \uXXXX of a character. */
static int32_t first_unit(int32_t cp)
{
    return cp < 0x10000 ? cp : 0xd800 + ((cp - 0x10000) >> 10);
}

/*
 * The test for an escape of any of the characters: a backslash, and one of the four digits, that
 * which tells most; else the `u`.
 */
static struct simd_pair escape_pair(const struct needles *n)
{
    /* The second tells ASCII from most scripts. */
    static const unsigned order[] = {1, 0, 2, 3};
    static const char digits[] = "0123456789abcdef";
    struct simd_pair best = {'\\', {1, 0xff, 'u'}};
    int fewest = 3; /* bits that may be either */

    /* An unpaired surrogate stands for U+FFFD. */
    for (size_t i = 0; i < n->character_count; i++) {
        if (n->characters[i] == REPLACEMENT)
            return best;
    }
    for (size_t i = 0; i < 4; i++) {
        unsigned k = order[i];
        unsigned char all = 0xff, any = 0;

        for (size_t c = 0; c < n->character_count; c++) {
            char digit = digits[first_unit(n->characters[c]) >> (12 - 4 * k) & 15];
            unsigned char either = digit >= 'a' ? 0x20 : 0; /* a capital */

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

static bool has(const struct needles *n, int32_t cp)
{
    return bsearch(&cp, n->characters, n->character_count, sizeof *n->characters, by_value);
}

/* Is the \uXXXX at p, which may be none, of one of the characters? A pair of surrogates is looked
 * at only as far as its first half. */
static bool escape_matters(const struct needles *n, const char *p, const char *end)
{
    int32_t unit = json_hex4(p + 2, end);

    if (!json_is_surrogate(unit))
        return has(n, unit);
    if (has(n, REPLACEMENT))
        return true;
    for (size_t i = n->character_count; i-- > 0 && n->characters[i] >= 0x10000;) {
        if (first_unit(n->characters[i]) == unit)
            return true;
    }
    return false;
}

bool needles_ready(struct needles *n)
{
    bool fits = true;

    qsort(n->characters, n->character_count, sizeof *n->characters, by_value);
    fits = find_add_pair(&n->find, escape_pair(n));
    for (size_t i = 0; i < n->count && fits; i++) {
        struct needle *one = &n->at[i];

        choose(one);
        if (one->has_triple) {
            make_glance(one);
            fits = find_add_triple(&n->find, one->triple);
        }
        for (size_t k = 0; k < one->odd_count; k++)
            fits = fits && find_add_pair(&n->find, one->odd[k]);
    }
    return fits;
}

/* ---- comparing ---- */

/* Forms are too short for a call of memcmp. */
static bool same(const char *p, const struct form *f)
{
    size_t i = 0;

    while (i < f->n && p[i] == f->bytes[i])
        i++;
    return i == f->n;
}

/* The length of the unit's form that begins at p, 0 when none does. */
static size_t form_at(const struct unit *u, const char *p, const char *end)
{
    for (size_t i = 0; i < u->count; i++) {
        const struct form *f = &u->form[i];

        if ((size_t)(end - p) >= f->n && same(p, f))
            return f->n;
    }
    return 0;
}

/* So many backslashes are counted at the most. */
#define BACKSLASHES ((size_t)64)
#define UNKNOWN SIZE_MAX

/* The length of the unit's form that ends at p, 0 when none does. `/` behind a backslash is the
 * escape when that is no escaped backslash itself; UNKNOWN when there are too many to tell. */
static size_t form_before(const struct unit *u, const char *begin, const char *p)
{
    size_t count = 0;

    if (u->form[0].bytes[0] == '/' && p > begin && p[-1] == '/') {
        const char *slash = p - 1;

        while (count < BACKSLASHES && slash - count > begin && *(slash - count - 1) == '\\')
            count++;
        return count == BACKSLASHES ? UNKNOWN : 1 + count % 2;
    }
    for (size_t i = 0; i < u->count; i++) {
        const struct form *f = &u->form[i];

        if ((size_t)(p - begin) >= f->n && same(p - f->n, f))
            return f->n;
    }
    return 0;
}

/* Does the needle stand there? *at as in the header. */
static bool stands_at(const struct needle *n, const char *place, const char *begin, const char *end,
                      const char **at)
{
    const char *p = place - n->offset;

    if ((size_t)(place - begin) < n->offset)
        return false;
    for (size_t i = n->unit; i < n->count; i++) {
        size_t length = form_at(&n->units[i], p, end);

        if (length == 0)
            return false;
        p += length;
    }
    p = place - n->offset;
    for (size_t i = n->unit; i-- > 0;) {
        size_t length = form_before(&n->units[i], begin, p);

        if (length == 0 || length == UNKNOWN)
            return length == UNKNOWN;
        p -= length;
    }
    *at = p;
    return true;
}

/* The same, told by a glance when that is enough. */
static bool is_at(const struct needle *n, const char *place, const char *begin, const char *end,
                  const char **at)
{
    uint64_t w, mask, bytes;

    if ((size_t)(place - begin) < n->before || (size_t)(end - place) + n->before < GLANCE)
        return stands_at(n, place, begin, end, at);
    memcpy(&w, place - n->before, GLANCE);
    memcpy(&mask, n->mask, GLANCE);
    memcpy(&bytes, n->bytes, GLANCE);
    if ((w & mask) != bytes)
        return false;
    if (!n->whole)
        return stands_at(n, place, begin, end, at);
    *at = place - n->before;
    return true;
}

static bool is_odd(const struct needle *n, const char *place, const char *end)
{
    for (size_t i = 0; i < n->odd_count && end - place > 1; i++) {
        if (is_pair(&n->odd[i], place))
            return true;
    }
    return false;
}

bool needles_may_match(const struct needles *n, const char *place, const char *begin,
                       const char *end, const char **at)
{
    *at = NULL;
    if (end - place > 1 && place[0] == '\\' && place[1] == 'u' && escape_matters(n, place, end))
        return true;
    for (size_t i = 0; i < n->count; i++) {
        const struct needle *one = &n->at[i];

        if (one->has_triple && (is_odd(one, place, end) || is_at(one, place, begin, end, at)))
            return true;
    }
    return false;
}
