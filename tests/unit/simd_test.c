#include "chathist/base/simd.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "draw.h"

static bool is_plain(int c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Where a string ends, or the next text begins that is not plain. */
static const char *special(const char *p, const char *end)
{
    while (p < end && (is_plain((unsigned char)*p) || *p == '\\')) {
        if (*p == '\\' && (end - p < 2 || p[1] == '\0' || !strchr("\"\\/bfnrt", p[1])))
            break;
        p += *p == '\\' ? 2 : 1;
    }
    return p;
}

/* The texts end where their memory does, so that a sanitizer sees one byte more. */
TEST(special_bytes_and_newlines_are_found_at_every_offset)
{
    for (size_t n = 0; n < 150; n++) {
        char *text = malloc(n ? n : 1);

        memset(text, 'x', n);
        CHECK(simd_special(text, text + n) == text + n);
        CHECK(simd_all_plain(text, n));
        CHECK_INT(simd_after_newline(text, n), 0);
        for (size_t i = 0; i < n; i++) {
            for (int c = 0; c < 256; c++) {
                text[i] = (char)c;
                CHECK(simd_special(text, text + n) == special(text, text + n));
                CHECK_INT(simd_all_plain(text, n), is_plain(c));
                CHECK_INT(simd_after_newline(text, n), c == '\n' ? i + 1 : 0);
            }
            text[i] = 'x';
        }
        free(text);
    }
}

TEST(letters_become_small_up_to_a_byte_beyond_ascii)
{
    for (size_t n = 0; n < 50; n++) {
        char *text = malloc(n ? n : 1), *to = malloc(n ? n : 1);

        for (int c = 0; c < 256; c++) {
            memset(text, 'X', n);
            for (size_t i = 0; i < n; i++) {
                text[i] = (char)c;
                CHECK_INT(simd_lower(to, text, n), c < 0x80 ? n : i);
                CHECK(i == 0 || (to[0] == 'x' && to[i - 1] == 'x'));
                CHECK(c >= 0x80 || to[i] == (c >= 'A' && c <= 'Z' ? c + 32 : c));
                text[i] = 'X';
            }
        }
        free(text);
        free(to);
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
        CHECK(simd_special(text, text + n) == special(text, text + n));
        free(text);
    }
}

TEST(a_backslash_at_the_end_escapes_nothing)
{
    for (size_t n = 1; n < 200; n++) {
        for (size_t escapes = 0; 2 * escapes < n; escapes++) {
            char *text = malloc(n);

            memset(text, 'x', n);
            for (size_t i = 0; i < escapes; i++)
                memcpy(text + 2 * i, "\\\"", 2);
            text[n - 1] = '\\';
            CHECK(simd_special(text, text + n) == special(text, text + n));
            free(text);
        }
    }
}

TEST(a_sum_of_products_is_that_of_the_numbers)
{
    for (size_t n = 0; n <= 1 << 17; n = n ? n * 2 : SIMD_DOT) {
        int8_t *a = malloc(n + 1), *b = malloc(n + 1);
        int64_t sum = 0;

        for (size_t i = 0; i < n; i++) {
            a[i] = (int8_t)(n == 1 << 17 ? 127 : (int)draw(255) - 127);
            b[i] = (int8_t)(n == 1 << 17 ? 127 : (int)draw(255) - 127);
            sum += a[i] * b[i];
        }
        CHECK(simd_dot(a, b, n) == sum);
        free(a);
        free(b);
    }
}
