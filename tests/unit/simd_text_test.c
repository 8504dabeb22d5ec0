#include "chathist/base/simd_text.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/utf8.h"
#include "test.h"
#include "draw.h"

/* Where a string ends, or what is wrong with it begins. */
static const char *special(const char *p, const char *end)
{
    while (p < end && *p != '"' && (unsigned char)*p >= 0x20) {
        size_t n = 1;

        if (*p == '\\') {
            if (end - p < 2 || p[1] == '\0' || !strchr("\"\\/bfnrt", p[1]))
                break;
            n = 2;
        } else if ((unsigned char)*p >= 0x80) {
            int32_t cp;

            n = utf8_decode((struct str){p, (size_t)(end - p)}, &cp);
            if (n == 0 || cp < 0)
                break;
        }
        p += n;
    }
    return p;
}

/* Of a variant: at the end of what is beyond ASCII it is asked again, as the caller of it does. */
static void check_with(enum simd with, const char *p, const char *end)
{
    const char *expected = special(p, end);

    for (;;) {
        p = simd_special_with(with, p, end);
        if (p >= expected || (unsigned char)*p < 0x80)
            break;

        size_t n = utf8_valid_beyond_ascii((struct str){p, (size_t)(end - p)});

        if (!CHECK(n > 0))
            return;
        p += n;
    }
    CHECK(p == expected);
}

/* Of every variant. */
static void check_special(const char *p, const char *end)
{
    CHECK(simd_special(p, end) == simd_special_with(simd_best(), p, end));
    for (int with = 0; with < SIMD_COUNT; with++)
        if (simd_can((enum simd)with))
            check_with((enum simd)with, p, end);
}

TEST(special_bytes_and_newlines_are_found_at_every_offset)
{
    for (size_t n = 0; n < 150; n++) {
        char *text = malloc(n + 1);

        memset(text, 'x', n);
        check_special(text, text + n);
        CHECK_INT(simd_after_newline(text, n), 0);
        for (size_t i = 0; i < n; i++) {
            for (int c = 0; c < 256; c++) {
                text[i] = (char)c;
                check_special(text, text + n);
                CHECK_INT(simd_after_newline(text, n), c == '\n' ? i + 1 : 0);
            }
            text[i] = 'x';
        }
        free(text);
    }
}

TEST(escapes_of_two_characters_are_passed_over)
{
    for (int round = 0; round < 20000 && !test_failed; round++) {
        size_t n = draw(300);
        char *text = malloc(n ? n : 1);
        bool right = draw(2); /* most that breaks off does so at once */

        for (size_t i = 0; i < n; i++) {
            text[i] = draw(8) ? 'x' : "\\\\\\\\\\\\nt/\\bfru"[draw(14)];
            if (right && text[i] == '\\' && ++i < n)
                text[i] = "\\nt/\"bfr"[draw(8)];
        }
        if (n && draw(2))
            text[draw((uint32_t)n)] = "\"\x1f\xc3\\"[draw(4)];
        check_special(text, text + n);
        free(text);
    }
}

/* The text is all that may be read: the sanitizers see one byte more. */
TEST(a_backslash_at_the_end_escapes_nothing)
{
    for (size_t n = 1; n < 200; n++) {
        for (size_t escapes = 0; 2 * escapes < n; escapes++) {
            char *text = malloc(n + 1);

            memset(text, 'x', n);
            for (size_t i = 0; i < escapes; i++)
                memcpy(text + 2 * i, "\\\"", 2);
            text[n - 1] = '\\';
            text[n] = '"';
            check_special(text, text + n);
            text = realloc(text, n);
            check_special(text, text + n);
            free(text);
        }
    }
}

TEST(plain_text_is_told_from_any_other)
{
    for (size_t n = 0; n < 70; n++) {
        char *text = malloc(n + 1);

        memset(text, 'x', n);
        CHECK(simd_all_plain(text, n));
        for (size_t i = 0; i < n; i++) {
            for (int c = 0; c < 256; c++) {
                text[i] = (char)c;
                CHECK(simd_all_plain(text, n) == (c >= 0x20 && c < 0x80 && c != '"' && c != '\\'));
            }
            text[i] = 'x';
        }
        free(text);
    }
}

/* Puts a code point, or what is none, at a place of a text. */
static size_t put_some(char *to, size_t room)
{
    static const char *const some[] = {
        "\xc2\x80",
        "\xd0\xb6",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xe2\x82\xac",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf0\x9f\x98\x80",
        "\xf4\x8f\xbf\xbf",
        "\xe6\xbc\xa2",
        "a",
        " ",
        "\\n",
    };
    static const char *const none[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xe0\x9f\xbf",
        "\xe2\x82",
        "\xe2",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x9f\x98",
        "\xf0\x9f",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3\xa4\xa4",
        "\xf0\x9f\x98\x80\x80",
        "\\\xc3\xa4",
        "\\\x80",
        "\x1f",
        "\"",
        "\\u00e4",
    };
    bool wrong = draw(60) == 0;
    const char *text =
        wrong ? none[draw(sizeof none / sizeof *none)] : some[draw(sizeof some / sizeof *some)];
    size_t n = strlen(text);

    n = n < room ? n : room;
    memcpy(to, text, n);
    return n;
}

TEST(what_is_utf8_is_passed_over_and_what_is_not_is_found)
{
    for (int round = 0; round < 60000 && !test_failed; round++) {
        size_t n = draw(300), i = 0;
        char *text = malloc(n ? n : 1);
        bool many = draw(2);

        while (i < n) {
            if (many || draw(20) == 0)
                i += put_some(text + i, n - i);
            else
                text[i++] = 'x';
        }
        check_special(text, text + n);
        free(text);
    }
}

/* All that can stand in three bytes is too much for the time that a test has: many of it. */
TEST(many_beginnings_of_three_bytes_at_the_edge_of_a_block)
{
    static const unsigned char fourth[] = {'x', 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc2, '"'};
    char *text = malloc(200);

    for (uint32_t three = 0; three < 1U << 24 && !test_failed; three += 1 + draw(40)) {
        size_t at = 60 + draw(70);

        memset(text, 'x', 200);
        text[at] = (char)(three >> 16);
        text[at + 1] = (char)(three >> 8);
        text[at + 2] = (char)three;
        text[at + 3] = (char)fourth[draw(sizeof fourth)];
        check_special(text, text + at + 4 + draw((uint32_t)(197 - at)));
    }
    free(text);
}

TEST(a_code_point_that_breaks_off_is_seen_at_every_offset)
{
    static const char *const cut[] = {"\xd0", "\xe2",     "\xe2\x82",
                                      "\xf0", "\xf0\x9f", "\xf0\x9f\x98"};

    for (size_t n = 4; n < 200; n++) {
        char *text = malloc(n);

        for (size_t at = 0; at + 4 < n; at++) {
            for (size_t k = 0; k < sizeof cut / sizeof *cut; k++) {
                memset(text, 'x', n);
                memcpy(text + at, cut[k], strlen(cut[k]));
                check_special(text, text + n);
            }
        }
        free(text);
    }
}

#if defined(__x86_64__)
/* Otherwise all of the above would hold of a variant that stops at each. */
TEST(utf8_is_passed_over_in_one_go)
{
    char text[1000];

    for (size_t i = 0; i < sizeof text; i += 4)
        memcpy(text + i,
               i % 12 == 0   ? "\xf0\x9f\x98\x80"
               : i % 12 == 4 ? "\xd0\xb6\xd0\xb6"
                             : "\xe2\x82\xac ",
               4);
    if (simd_can(SIMD_AVX2))
        CHECK(simd_special_with(SIMD_AVX2, text, text + sizeof text) - text > 930);
}
#endif
