#include "chathist/base/buf.h"

#include <stdint.h>
#include <stdlib.h>

#include "test.h"

/* A function, so that `got` is evaluated once. */
static bool check_bytes(struct str got, struct str want, const char *what, int line)
{
    return test_check_mem(got.p, got.n, want.p, want.n, what, __FILE__, line);
}

#define CHECK_BYTES(got, want) check_bytes((got), STR(want), #got, __LINE__)

TEST(str_eq_compares_bytes)
{
    CHECK(str_eq(STR_NONE, STR_NONE));
    CHECK(str_eq(STR_NONE, STR("")));
    CHECK(str_eq(STR("a\0b"), STR("a\0b")));
    CHECK(!str_eq(STR("a\0b"), STR("a\0c")));
    CHECK(!str_eq(STR("a"), STR("ab")));
    CHECK(str_eq_c(STR("ab"), "ab"));
    CHECK(!str_eq_c(STR("ab\0"), "ab"));
    CHECK(!str_eq_c(STR("aB"), "ab"));
}

TEST(str_starts_and_ends)
{
    CHECK(str_starts(STR("abc"), STR("")));
    CHECK(str_starts(STR("abc"), STR_NONE));
    CHECK(str_starts(STR_NONE, STR("")));
    CHECK(str_starts(STR("abc"), STR("abc")));
    CHECK(!str_starts(STR("abc"), STR("abcd")));
    CHECK(!str_starts(STR("abc"), STR("b")));
    CHECK(str_ends(STR("abc"), STR("")));
    CHECK(str_ends(STR_NONE, STR_NONE));
    CHECK(str_ends(STR("abc"), STR("bc")));
    CHECK(str_ends(STR("abc"), STR("abc")));
    CHECK(!str_ends(STR("bc"), STR("abc")));
    CHECK(!str_ends(STR("abc"), STR("ab")));
}

TEST(str_trim_drops_both_ends)
{
    CHECK_BYTES(str_trim(STR(" \t\r\n a b \n")), "a b");
    CHECK_BYTES(str_trim(STR("a")), "a");
    CHECK_INT(str_trim(STR(" \n ")).n, 0);
    CHECK_INT(str_trim(STR("")).n, 0);
    CHECK_INT(str_trim(STR_NONE).n, 0);
    CHECK_BYTES(str_trim(STR("\v")), "\v");
}

static void check_find(struct str s, struct str part, long want)
{
    const char *at = str_find(s, part);

    CHECK_INT(at ? at - s.p : -1, want);
}

TEST(str_word_takes_words)
{
    struct str rest = STR(" one\t two\n");

    CHECK(str_eq_c(str_word(&rest), "one"));
    CHECK(str_eq_c(str_word(&rest), "two"));
    CHECK(!str_word(&rest).p);
    CHECK(!str_word(&rest).p);
    rest = STR("x");
    CHECK(str_eq_c(str_word(&rest), "x"));
    CHECK(!str_word(&rest).p);
}

TEST(str_find_tells_the_first_place)
{
    check_find(STR("abcabc"), STR("bc"), 1);
    check_find(STR("aaab"), STR("aab"), 1);
    check_find(STR("abc"), STR("abc"), 0);
    check_find(STR("abc"), STR("abcd"), -1);
    check_find(STR("abc"), STR("ca"), -1);
    check_find(STR("a\0b"), STR("\0b"), 1);
    check_find(STR("abc"), STR(""), 0);
    check_find(STR(""), STR("a"), -1);
    check_find(STR_NONE, STR("a"), -1);
    CHECK(str_find(STR_NONE, STR_NONE) == NULL);
}

TEST(str_cut_walks_over_parts)
{
    struct str rest = STR("a,,bc,");

    CHECK_BYTES(str_cut(&rest, ','), "a");
    CHECK_BYTES(str_cut(&rest, ','), "");
    CHECK_BYTES(str_cut(&rest, ','), "bc");
    CHECK(rest.p != NULL);
    CHECK_BYTES(str_cut(&rest, ','), "");
    CHECK(rest.p == NULL);
    CHECK(str_cut(&rest, ',').p == NULL);
    rest = STR("a\0b");
    CHECK_BYTES(str_cut(&rest, '\0'), "a");
    CHECK_BYTES(rest, "b");
}

TEST(an_empty_buf_is_an_empty_string)
{
    struct buf b = BUF_INIT(10);

    CHECK_STR(buf_c(&b), "");
    CHECK(buf_str(&b).p != NULL);
    CHECK_INT(buf_str(&b).n, 0);
    buf_truncate(&b, 0);
    buf_clear(&b);
    buf_consume(&b, 5);
    buf_add(&b, NULL, 0);
    CHECK_STR(buf_c(&b), "");
    buf_release(&b);
    buf_release(&b);
    CHECK_INT(b.max, 10);
}

TEST(the_maximum_is_exact)
{
    struct buf b = BUF_INIT(3);

    buf_add_c(&b, "abc");
    CHECK(!b.overflow);
    CHECK_STR(buf_c(&b), "abc");
    buf_add_byte(&b, 'd');
    CHECK(b.overflow);
    CHECK_STR(buf_c(&b), "abc");
    buf_release(&b);

    struct buf none = BUF_INIT(0);

    buf_add_c(&none, "");
    CHECK(!none.overflow);
    buf_add_c(&none, "a");
    CHECK(none.overflow);
    CHECK_STR(buf_c(&none), "");
    buf_release(&none);
}

TEST(after_an_overflow_nothing_is_added)
{
    struct buf b = BUF_INIT(4);

    buf_add_c(&b, "ab");
    buf_addf(&b, "%s", "cde");
    CHECK(b.overflow);
    buf_add_c(&b, "f");
    CHECK(buf_room(&b, 0) == NULL);
    CHECK_STR(buf_c(&b), "ab");
    buf_clear(&b);
    CHECK(!b.overflow);
    buf_add_c(&b, "wxyz");
    CHECK_STR(buf_c(&b), "wxyz");
    buf_release(&b);
    CHECK(!b.overflow);
}

TEST(numbers_are_decimal)
{
    struct buf b = BUF_INIT(24);

    buf_add_number(&b, 0);
    buf_add_byte(&b, ' ');
    buf_add_number(&b, UINT64_MAX);
    CHECK_STR(buf_c(&b), "0 18446744073709551615");
    buf_add_number(&b, 100);
    CHECK(b.overflow);
    CHECK_INT(b.len, 22);
    buf_release(&b);
}

TEST(numbers_for_people)
{
    static const struct {
        uint64_t n;
        const char *text;
    } rows[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1.0k"},
        {1049, "1.0k"},
        {1050, "1.1k"},
        {99949, "99.9k"},
        {99950, "100k"},
        {999499, "999k"},
        {999500, "1.0M"},
        {15747358, "15.7M"},
        {310400000, "310M"},
        {1200000000, "1.2G"},
        {UINT64_MAX, "18.4E"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b = BUF_INIT(BUF_SMALL);

        buf_add_scaled(&b, rows[i].n, "");
        CHECK_STR(buf_c(&b), rows[i].text);
        buf_release(&b);
    }
}

TEST(formats_fill_the_maximum)
{
    struct buf b = BUF_INIT(5);

    buf_addf(&b, "%d", 12345);
    CHECK_STR(buf_c(&b), "12345");
    CHECK(!b.overflow);
    buf_addf(&b, "%s", "");
    CHECK(!b.overflow);
    buf_release(&b);
}

TEST(room_and_grew)
{
    struct buf b = BUF_INIT(8);
    char *to = buf_room(&b, 8);

    if (!CHECK(to != NULL))
        return;
    memcpy(to, "abcdef", 6);
    buf_grew(&b, 6);
    CHECK_STR(buf_c(&b), "abcdef");
    CHECK(buf_room(&b, 2) == b.data + 6);
    CHECK(buf_room(&b, 3) == NULL);
    CHECK(b.overflow);
    CHECK_STR(buf_c(&b), "abcdef");
    buf_release(&b);
}

TEST(truncate_and_consume)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    buf_add_c(&b, "abcdef");
    buf_truncate(&b, 7);
    CHECK_STR(buf_c(&b), "abcdef");
    buf_truncate(&b, 5);
    CHECK_STR(buf_c(&b), "abcde");
    buf_consume(&b, 0);
    CHECK_STR(buf_c(&b), "abcde");
    buf_consume(&b, 2);
    CHECK_STR(buf_c(&b), "cde");
    buf_consume(&b, 3);
    CHECK_STR(buf_c(&b), "");
    buf_add_c(&b, "xy");
    buf_consume(&b, 100);
    CHECK_INT(b.len, 0);
    buf_release(&b);
}

TEST(detach_gives_the_bytes_away)
{
    struct buf b = BUF_INIT(10);
    char *s = buf_detach(&b);

    CHECK_STR(s, "");
    free(s);
    buf_add_c(&b, "abc");
    s = buf_detach(&b);
    CHECK_STR(s, "abc");
    CHECK_INT(b.len, 0);
    CHECK_INT(b.max, 10);
    buf_add_c(&b, "x");
    CHECK_STR(buf_c(&b), "x");
    CHECK_STR(s, "abc");
    free(s);
    buf_release(&b);
}

TEST(the_distance_of_names_is_the_number_of_changed_letters)
{
    CHECK_INT(str_distance(STR("before"), STR("before"), 2), 0);
    CHECK_INT(str_distance(STR("befor"), STR("before"), 2), 1);
    CHECK_INT(str_distance(STR("utnil"), STR("until"), 2), 1);
    CHECK_INT(str_distance(STR("sinse"), STR("since"), 2), 1);
    CHECK_INT(str_distance(STR("xsince"), STR("since"), 2), 1);
    CHECK_INT(str_distance(STR("mode"), STR("since"), 3), 3);
    CHECK_INT(str_distance(STR(""), STR("ab"), 9), 2);
}
