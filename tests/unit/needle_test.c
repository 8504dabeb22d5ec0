#include "chathist/search/needle.h"

#include <ctype.h>
#include <stdlib.h>

#include "test.h"
#include "draw.h"

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
    const struct needles *needles;
    struct str text;
    size_t at[64];
    size_t count;
};

static const char *see(void *ctx, const char *place)
{
    struct hits *h = ctx;
    const char *at;

    if (needles_may_match(h->needles, place, h->text.p, h->text.p + h->text.n, &at))
        h->at[h->count++] = at ? (size_t)(at - h->text.p) : SIZE_MAX;
    return place + 1;
}

/* The text ends where its memory does, so that a sanitizer sees a byte too many. */
TEST(a_needle_is_told_wherever_it_stands_and_nowhere_else)
{
    for (int round = 0; round < 20000 && !test_failed; round++) {
        char word[12];
        struct str needle = {word, 1 + draw(sizeof(word))};
        size_t n = draw(60), from = 0, count = 0;
        char *text = malloc(n ? n : 1);
        struct needles needles;
        struct hits hits = {.needles = &needles, .text = {text, n}};

        fill(word, needle.n);
        fill(text, n);
        if (n > needle.n && draw(2)) {
            from = draw(2) ? n - needle.n : draw((uint32_t)(n - needle.n));
            memcpy(text + from, word, needle.n);
        }
        needles_init(&needles, simd_best());
        needles_add(&needles, needle, false);
        CHECK(needles_ready(&needles));
        find_each(&needles.find, text, text + n, see, &hits);
        for (size_t i = 0; i < n; i++) {
            if (stands(needle, text + i, text + n) && CHECK(count < hits.count))
                CHECK_INT(hits.at[count++], i);
        }
        CHECK_INT(hits.count, count);
        needles_release(&needles);
        free(text);
    }
}
