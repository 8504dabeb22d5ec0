#include "chathist/base/utf8.h"

#include "test.h"

static void check_decode(struct str s, size_t want_length, int32_t want)
{
    int32_t cp = 4711;

    if (!CHECK_INT(utf8_decode(s, &cp), want_length) || !CHECK_INT(cp, want))
        test_print_bytes("of  ", s.p, s.n);
}

#define DECODE(s, length, cp) check_decode(STR(s), (length), (cp))

TEST(decode_well_formed)
{
    DECODE("a", 1, 'a');
    DECODE("\0", 1, 0);
    DECODE("\x7f\xff", 1, 0x7f);
    DECODE("\xc2\x80", 2, 0x80);
    DECODE("\xdf\xbf", 2, 0x7ff);
    DECODE("\xe0\xa0\x80", 3, 0x800);
    DECODE("\xed\x9f\xbf", 3, 0xd7ff);
    DECODE("\xee\x80\x80", 3, 0xe000);
    DECODE("\xef\xbf\xbf", 3, 0xffff);
    DECODE("\xf0\x90\x80\x80", 4, 0x10000);
    DECODE("\xf4\x8f\xbf\xbf", 4, 0x10ffff);
    DECODE("\xe2\x82\xacxyz", 3, 0x20ac);
}

/* The lengths are those of maximal subparts: Unicode table 3-8 has the first row of them. */
TEST(decode_ill_formed)
{
    DECODE("\x80", 1, -1);
    DECODE("\xbf", 1, -1);
    DECODE("\xc0\x80", 1, -1);
    DECODE("\xc1\xbf", 1, -1);
    DECODE("\xe0\x9f\xbf", 1, -1);
    DECODE("\xed\xa0\x80", 1, -1);
    DECODE("\xf0\x8f\xbf\xbf", 1, -1);
    DECODE("\xf4\x90\x80\x80", 1, -1);
    DECODE("\xf5\x80\x80\x80", 1, -1);
    DECODE("\xfe", 1, -1);
    DECODE("\xff", 1, -1);
    DECODE("\xc3x", 1, -1);
    DECODE("\xe2\x82x", 2, -1);
    DECODE("\xf0\x9f\x98x", 3, -1);
    DECODE("\xf0\x9f\xc3\xa4", 2, -1);
}

TEST(decode_cut_off)
{
    DECODE("\xc3", 0, -1);
    DECODE("\xe2", 0, -1);
    DECODE("\xe2\x82", 0, -1);
    DECODE("\xf0", 0, -1);
    DECODE("\xf0\x9f", 0, -1);
    DECODE("\xf0\x9f\x98", 0, -1);
}

TEST(encode_is_the_reverse)
{
    bool same = true;

    for (int32_t cp = 0; cp <= 0x10ffff; cp++) {
        char bytes[4];
        int32_t back;

        if (cp == 0xd800)
            cp = 0xe000;

        size_t n = utf8_encode(cp, bytes);

        same = same && utf8_decode((struct str){bytes, n}, &back) == n && back == cp;
    }
    CHECK(same);
}

TEST(valid_prefix)
{
    CHECK_INT(utf8_valid(STR_NONE), 0);
    CHECK_INT(utf8_valid(STR("")), 0);
    CHECK_INT(utf8_valid(STR("abc")), 3);
    CHECK_INT(utf8_valid(STR("\xc3\xa4 and \xf0\x9f\x98\x80.")), 12);
    CHECK_INT(utf8_valid(STR("a\xff"
                             "b")),
              1);
    CHECK_INT(utf8_valid(STR("\xc3\xa4\xe2\x82")), 2);
    CHECK_INT(utf8_valid(STR("\xed\xa0\x80")), 0);

    char long_text[40];

    for (size_t i = 0; i < sizeof(long_text); i++) {
        memset(long_text, 'a', sizeof(long_text));
        long_text[i] = '\x80';
        CHECK_INT(utf8_valid((struct str){long_text, sizeof(long_text)}), i);
    }
}

TEST(valid_prefix_beyond_ascii)
{
    CHECK_INT(utf8_valid_beyond_ascii(STR_NONE), 0);
    CHECK_INT(utf8_valid_beyond_ascii(STR("a\xc3\xa4")), 0);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z\xff")), 9);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xc3\xa4\xff")), 2);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xc3\xa4\xe2\x82")), 2);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xe0\x80\x80")), 0);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xed\xa0\x80")), 0);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xed\x9f\xbf\xc2\x80")), 5);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xc1\xbf")), 0);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xe2\x82x")), 0);
    CHECK_INT(utf8_valid_beyond_ascii(STR("\xc3x")), 0);
}

/* Every pair and triple of bytes from a lead on, against decoding one by one. */
TEST(valid_agrees_with_decode)
{
    bool same = true;

    for (uint32_t i = 0x800000; i < 0x1000000; i++) {
        char bytes[] = {(char)(i >> 16), (char)(i >> 8), (char)i};
        struct str s = {bytes, sizeof(bytes)};
        size_t want = 0;
        int32_t cp;

        while (want < s.n) {
            size_t n = utf8_decode((struct str){bytes + want, s.n - want}, &cp);

            if (cp < 0)
                break;
            want += n;
        }
        same = same && utf8_valid(s) == want;
    }
    CHECK(same);
}

static void check_repaired(struct str s, struct str want)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    utf8_add_repaired(&b, s);
    CHECK_MEM(buf_c(&b), b.len, want.p, want.n);
    buf_release(&b);
}

#define REPAIR(s, want) check_repaired(STR(s), STR(want))
#define R UTF8_REPLACEMENT

TEST(repair_replaces_maximal_subparts)
{
    REPAIR("", "");
    REPAIR("ab\0\xc3\xa4", "ab\0\xc3\xa4");
    REPAIR("\xff", R);
    REPAIR("a\xff\xfe"
           "b",
           "a" R R "b");
    REPAIR("\xe2\x82", R);
    REPAIR("\xe2\x82x", R "x");
    REPAIR("\xf0\x9f\x98", R);
    REPAIR("\xc0\xaf", R R);
    REPAIR("\xed\xa0\x80", R R R);
    REPAIR("\xf0\x9f\xe2\x82\xac", R "\xe2\x82\xac");
    /* Unicode 15, section 3.9, table 3-11. */
    REPAIR("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "\x41");
    check_repaired(STR_NONE, STR(""));
}

TEST(first_and_count)
{
    struct str s = STR("a\xc3\xa4\xff\xe2\x82\xacz\xf0\x9f");

    CHECK_INT(utf8_count(s), 6);
    CHECK_INT(utf8_count(STR_NONE), 0);
    CHECK_INT(utf8_first(s, 0).n, 0);
    CHECK_INT(utf8_first(s, 1).n, 1);
    CHECK_INT(utf8_first(s, 2).n, 3);
    CHECK_INT(utf8_first(s, 3).n, 4);
    CHECK_INT(utf8_first(s, 4).n, 7);
    CHECK_INT(utf8_first(s, 6).n, s.n);
    CHECK_INT(utf8_first(s, 7).n, s.n);
    CHECK(utf8_first(s, 2).p == s.p);
    CHECK_INT(utf8_first(STR_NONE, 5).n, 0);
}

TEST(fold_text)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    utf8_add_folded(&b, STR("Gr\xc3\x9c\xc3\x9f"
                            "E\0\xff\xe2\x84\xaa\xe2\x82"));
    CHECK_MEM(b.data, b.len,
              "gr\xc3\xbc\xc3\x9f"
              "e\0\xffk\xe2\x82",
              12);
    utf8_add_folded(&b, STR_NONE);
    CHECK_INT(b.len, 12);
    buf_release(&b);
}

TEST(folding_changes_lengths)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    utf8_add_folded(&b, STR("\xc8\xba\xc5\xbf\xe1\xba\x9e\xe4\xb8\xad\xd0\x96\xd0\xb6X"));
    CHECK_STR(buf_c(&b), "\xe2\xb1\xa5s\xc3\x9f\xe4\xb8\xad\xd0\xb6\xd0\xb6x");
    buf_release(&b);
}

TEST(widths)
{
    CHECK_INT(utf8_width('a'), 1);
    CHECK_INT(utf8_width(' '), 1);
    CHECK_INT(utf8_width('~'), 1);
    CHECK_INT(utf8_width('\n'), 0);
    CHECK_INT(utf8_width(0), 0);
    CHECK_INT(utf8_width(0x1b), 0);
    CHECK_INT(utf8_width(0x7f), 0);
    CHECK_INT(utf8_width(0x9b), 0);
    CHECK_INT(utf8_width(0xa0), 1);
    CHECK_INT(utf8_width(0xe4), 1);
    CHECK_INT(utf8_width(0x301), 0);
    CHECK_INT(utf8_width(0x200d), 0);
    CHECK_INT(utf8_width(0x4e2d), 2);
    CHECK_INT(utf8_width(0xac00), 2);
    CHECK_INT(utf8_width(0xff21), 2);
    CHECK_INT(utf8_width(0x1f600), 2);
}

TEST(characters_that_join)
{
    CHECK(utf8_joins(0x200d, false) && utf8_joins(0xfe0f, false) && utf8_joins(0xe0100, false));
    CHECK(utf8_joins(0x1f3fb, true) && !utf8_joins(0x1f3fb, false));
    CHECK(!utf8_joins('a', true) && !utf8_joins(0x301, true) && !utf8_joins(0x1f600, true));
}

/* One of each kind, by UTS #18. */
TEST(characters_of_words)
{
    static const int32_t yes[] = {'a',     'Z',   '0',    '_',    0xe9,   0x3c3,  0x4e2d,
                                  0x301,   0x660, 0x2160, 0x203f, 0x200c, 0x200d, 0x24d0,
                                  0x1f130, 0x1c5, 0x2b0,  0x903,  0x20dd, 0x10400};
    static const int32_t no[] = {' ',    '-',    '.',     '@',      '[',   '`',    '{',    '\n',
                                 0x7f,   0xa0,   0xb2,    0xd7,     0xbd,  0x2028, 0x20ac, 0x3000,
                                 0x200b, 0xfffd, 0x1f600, 0x10ffff, 0x378, 0xad};

    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        if (!CHECK(utf8_is_word(yes[i])))
            fprintf(stderr, "    of   U+%04X\n", (unsigned)yes[i]);
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (!CHECK(!utf8_is_word(no[i])))
            fprintf(stderr, "    of   U+%04X\n", (unsigned)no[i]);
}

/* The common code points are taken several at a time. */
TEST(what_is_valid_beyond_ascii_does_not_depend_on_its_neighbours)
{
    static const char *const pieces[] = {
        "\xc3\xa4",     "\xd0\x96",
        "\xdf\xbf",     "\xe6\xbc\xa2",
        "\xe1\x80\x80", "\xf0\x9f\x98\x80",
        "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xc0\x80",     "\xc1\xbf",
        "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xff",         "\xc3",
        "\xe6\xbc",     "a",
    };
    uint32_t state = 7;

    for (int round = 0; round < 50000 && !test_failed; round++) {
        char text[64];
        size_t n = 0, valid = 0, length;
        int32_t cp;

        for (int i = 0; i < 10; i++) {
            state = state * 1664525 + 1013904223;
            /* One in eight is of the second half, which is wrong or the end. */
            size_t pick = (state >> 8) % 8 + (state >> 29 ? 0 : 8);

            memcpy(text + n, pieces[pick], strlen(pieces[pick]));
            n += strlen(pieces[pick]);
        }
        while (valid < n && (unsigned char)text[valid] >= 0x80 &&
               (length = utf8_decode((struct str){text + valid, n - valid}, &cp)) && cp >= 0)
            valid += length;
        CHECK_INT(utf8_valid_beyond_ascii((struct str){text, n}), valid);
    }
}

TEST(a_place_may_be_inside_a_character)
{
    static const bool inside[] = {false, false, true, false, true, true, false, false};
    struct str text = STR("a\303\244\346\274\242");

    for (size_t at = 0; at < sizeof(inside) / sizeof(*inside); at++)
        CHECK_INT(utf8_inside(text, at), inside[at]);
}
