#include "search/literal_scan.h"

#include <ctype.h>
#include <stdlib.h>

#include "test.h"
#include "draw.h"

#define TEXT ((size_t)700)

/* ---- places ---- */

/* Makes a text that ends where its memory does, so that a sanitizer notices a byte too many. */
static char *text_of(size_t n, uint32_t letters)
{
    char *text = malloc(n ? n : 1);

    for (size_t i = 0; i < n; i++)
        text[i] = letters == 256 ? (char)draw(256) : "ab\\u\n\"\x1f\xc3"[draw(letters)];
    return text;
}

struct seen {
    const char *text;
    size_t at[TEXT];
    size_t count;
    size_t step; /* from one place on to the next that is asked for */
    size_t most; /* places that are wanted */
};

static const char *see(void *ctx, const char *place)
{
    struct seen *s = ctx;

    s->at[s->count++] = (size_t)(place - s->text);
    return s->count == s->most ? NULL : place + s->step;
}

static unsigned char byte_at(const char *text, size_t n, size_t i)
{
    return i < n ? (unsigned char)text[i] : 0;
}

static bool test_passes(const struct simd_test *t, const char *text, size_t n, size_t i)
{
    return (byte_at(text, n, i + t->distance) & t->mask) == t->byte;
}

/* What the header says, word for word. */
static size_t expected(const struct literal_scan *f, const char *text, size_t n,
                       const struct seen *like, size_t from, size_t *at)
{
    size_t count = 0;

    for (size_t i = from; i < n && count < like->most;) {
        bool passes = false;

        for (size_t k = 0; k < f->probes.pair_count; k++) {
            const struct simd_pair *p = &f->probes.pairs[k];

            passes =
                passes || (byte_at(text, n, i) == p->first && test_passes(&p->second, text, n, i));
        }
        for (size_t k = 0; k < f->probes.triple_count; k++) {
            const struct simd_test *t = f->probes.triples[k].test;

            passes = passes || (test_passes(&t[0], text, n, i) && test_passes(&t[1], text, n, i) &&
                                test_passes(&t[2], text, n, i));
        }
        if (passes)
            at[count++] = i;
        i += passes ? like->step : 1;
    }
    return count;
}

static const unsigned char usual[] = {'a', 'b', '\\', 'u'};

static struct simd_test draw_test(bool rare)
{
    uint32_t byte = draw(2) ? draw(256) : usual[draw(4)];
    uint32_t mask = rare || draw(2) ? 0xff : draw(256);

    return (struct simd_test){.distance = draw(4) ? draw(8) : draw(SIMD_DISTANCE + 1),
                              .mask = (unsigned char)mask,
                              .byte = (unsigned char)(byte & mask)};
}

static void add_probes(struct literal_scan *f, size_t count, bool rare)
{
    for (size_t k = 0; k < count; k++) {
        struct simd_triple t = {{draw_test(rare), draw_test(rare), draw_test(rare)}};

        if (draw(2))
            literal_scan_add_pair(f, (struct simd_pair){usual[draw(4)], t.test[0]});
        else
            literal_scan_add_triple(f, t);
    }
}

static void compare(bool wide, const struct literal_scan *like, const char *text, size_t n,
                    size_t from, struct seen *s)
{
    static size_t at[TEXT];
    struct literal_scan f;
    size_t count = expected(like, text, n, s, from, at);

    literal_scan_init(&f, wide);
    for (size_t k = 0; k < like->probes.pair_count; k++)
        literal_scan_add_pair(&f, like->probes.pairs[k]);
    for (size_t k = 0; k < like->probes.triple_count; k++)
        literal_scan_add_triple(&f, like->probes.triples[k]);
    s->text = text;
    s->count = 0;
    literal_scan_each(&f, text + from, text + n, see, s);
    if (CHECK_INT(s->count, count) && count > 0)
        CHECK_MEM(s->at, count * sizeof *at, at, count * sizeof *at);
}

TEST(both_sizes_of_vectors_give_the_places_that_the_header_says)
{
    static struct seen s;

    for (int round = 0; round < 4000 && !test_failed; round++) {
        size_t n = draw(3) ? draw(300) : draw(TEXT);
        char *text = text_of(n, draw(2) ? 256 : 8);
        size_t from = n ? draw(4) ? 0 : draw((uint32_t)n) : 0;
        struct literal_scan like;

        literal_scan_init(&like, false);
        add_probes(&like, draw(4) ? 1 + draw(3) : draw(SIMD_PROBES + 1), draw(2));
        s.step = draw(2) ? 1 : 1 + draw(200);
        s.most = draw(2) ? TEXT : 1 + draw(5);
        for (int wide = 0; wide <= simd_wide(); wide++)
            compare(wide, &like, text, n, from, &s);
        free(text);
    }
}

TEST(a_place_is_found_at_every_offset_and_at_both_ends)
{
    static struct seen s = {.step = 1, .most = TEXT};

    for (size_t n = 1; n < 420 && !test_failed; n += n < 40 ? 1 : 13) {
        char *text = calloc(n, 1);

        for (size_t i = 0; i < n && !test_failed; i++) {
            struct literal_scan like;

            literal_scan_init(&like, false);
            literal_scan_add_triple(&like,
                                    (struct simd_triple){{{0, 0xdf, 'A'}, {i % 64, 0xff, 0}}});
            literal_scan_add_pair(&like, (struct simd_pair){'\\', {0}});
            literal_scan_add_triple(&like,
                                    (struct simd_triple){{{0, 0xdf, 'B'}, {0}, {i % 64, 0xff, 0}}});
            text[i] = "a\\b"[i % 3];
            for (int wide = 0; wide <= simd_wide(); wide++)
                compare(wide, &like, text, n, 0, &s);
            text[i] = 0;
        }
        free(text);
    }
}

TEST(no_probes_pass_nothing_and_too_many_are_refused)
{
    const char text[] = "abc";
    struct seen s = {.step = 1, .most = TEXT};
    struct simd_pair pair = {'x', {0, 0xff, 'x'}};
    struct simd_triple triple = {{pair.second}};
    struct literal_scan f;

    literal_scan_init(&f, simd_wide());
    literal_scan_each(&f, text, text + 3, see, &s);
    CHECK_INT(s.count, 0);
    for (size_t k = 0; k < SIMD_PROBES; k += 2) {
        pair.first++;
        CHECK(literal_scan_add_pair(&f, pair) && literal_scan_add_triple(&f, triple));
    }
    /* A pair that is there already needs no room. */
    CHECK(literal_scan_add_pair(&f, pair));
    pair.first++;
    CHECK(!literal_scan_add_pair(&f, pair));
    CHECK(!literal_scan_add_triple(&f, triple));
}

/* ---- literals ---- */

/* Letters of which each has two forms of one byte. */
static void fill(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        text[i] = "tThHeEx"[draw(7)];
}

static bool stands(struct str needle, const char *p, const char *end)
{
    if ((size_t)(end - p) < needle.n)
        return false;
    for (size_t i = 0; i < needle.n; i++) {
        if (tolower((unsigned char)p[i]) != tolower((unsigned char)needle.p[i]))
            return false;
    }
    return true;
}

struct hits {
    const struct literal_scan *scan;
    struct str text;
    size_t at[64];
    size_t count;
};

static const char *see_match(void *ctx, const char *place)
{
    struct hits *h = ctx;
    const char *at;

    if (literal_scan_may_match(h->scan, place, h->text.p, h->text.p + h->text.n, &at))
        h->at[h->count++] = at ? (size_t)(at - h->text.p) : SIZE_MAX;
    return place + 1;
}

/* The text ends where its memory does, so that a sanitizer sees a byte too many. */
TEST(a_literal_is_found_everywhere_it_is_and_nowhere_else)
{
    for (int round = 0; round < 20000 && !test_failed; round++) {
        char word[12];
        struct str needle = {word, 1 + draw(sizeof(word))};
        size_t n = draw(60), from = 0, count = 0;
        char *text = malloc(n ? n : 1);
        struct literal_scan scan;
        struct hits hits = {.scan = &scan, .text = {text, n}};

        fill(word, needle.n);
        fill(text, n);
        if (n > needle.n && draw(2)) {
            from = draw(2) ? n - needle.n : draw((uint32_t)(n - needle.n));
            memcpy(text + from, word, needle.n);
        }
        literal_scan_init(&scan, simd_wide());
        literal_scan_add(&scan, needle, false);
        CHECK(literal_scan_ready(&scan));
        literal_scan_each(&scan, text, text + n, see_match, &hits);
        for (size_t i = 0; i < n; i++) {
            if (stands(needle, text + i, text + n) && CHECK(count < hits.count))
                CHECK_INT(hits.at[count++], i);
        }
        CHECK_INT(hits.count, count);
        literal_scan_release(&scan);
        free(text);
    }
}

TEST(characters_with_escapes_alone_cannot_be_looked_for)
{
    static const char *const texts[] = {"/", "\n\"\\", "\x01"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct literal_scan scan;

        literal_scan_init(&scan, simd_wide());
        literal_scan_add(&scan, str_of(texts[i]), false);
        CHECK(!literal_scan_ready(&scan));
        literal_scan_release(&scan);
    }
}
