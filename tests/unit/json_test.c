#include "chathist/base/json.h"

#include <stdlib.h>

#include "test.h"
#include "chathist/base/utf8.h"

/* The value of a text that must be valid. */
static struct str value_of(struct str text)
{
    struct str value = STR_NONE;

    CHECK(json_check(text, &value, NULL));
    return value;
}

#define VALUE(text) value_of(STR(text))

static bool check_bytes(struct str got, struct str want, const char *what, int line)
{
    return test_check_mem(got.p, got.n, want.p, want.n, what, __FILE__, line);
}

#define CHECK_BYTES(got, want) check_bytes((got), STR(want), #got, __LINE__)

TEST(null_and_true)
{
    CHECK(json_is_null(STR_NONE));
    CHECK(json_is_null(VALUE("null")));
    CHECK(!json_is_null(VALUE("0")));
    CHECK(!json_is_null(VALUE("\"null\"")));
    CHECK(json_is_true(VALUE("true")));
    CHECK(!json_is_true(VALUE("false")));
    CHECK(!json_is_true(VALUE("\"true\"")));
    CHECK(!json_is_true(VALUE("1")));
    CHECK(!json_is_true(STR_NONE));
}

TEST(several_members_at_once)
{
    static const char *const keys[] = {"b", "none", "a", "b"};
    struct str got[4];

    json_pick(VALUE("{\"a\":1,\"b\":2,\"c\":{\"none\":3},\"\\u0062\":[4]}"), keys, got, 4);
    CHECK_BYTES(got[0], "[4]");
    CHECK_INT(json_type(got[1]), JSON_INVALID);
    CHECK_BYTES(got[2], "1");
    CHECK_BYTES(got[3], "[4]");
    json_pick(VALUE("[1]"), keys, got, 2);
    CHECK_INT(json_type(got[0]), JSON_INVALID);
    json_pick(STR_NONE, keys, got, 2);
    CHECK_INT(json_type(got[1]), JSON_INVALID);
}

TEST(iterating_over_an_object)
{
    struct json_iter it =
        json_iter(VALUE(" { \"a\" : 1 ,\n\"b\\n\":[1,{\"x\":\"]}\"}] , \"\": \"\"}"));

    CHECK(json_next(&it));
    CHECK_BYTES(it.key, "a");
    CHECK_BYTES(it.value, "1");
    CHECK(json_next(&it));
    CHECK_BYTES(it.key, "b\\n");
    CHECK_BYTES(it.value, "[1,{\"x\":\"]}\"}]");
    CHECK(json_next(&it));
    CHECK_BYTES(it.key, "");
    CHECK_BYTES(it.value, "\"\"");
    CHECK(!json_next(&it));
    CHECK(!json_next(&it));
}

TEST(iterating_over_an_array)
{
    struct json_iter it = json_iter(VALUE("[ -1.5e3 ,true,null , \"a\\\"]\\\\\" ,{}, [[]] ]"));

    CHECK(json_next(&it));
    CHECK_BYTES(it.value, "-1.5e3");
    CHECK(it.key.p == NULL);
    CHECK(json_next(&it));
    CHECK_BYTES(it.value, "true");
    CHECK(json_next(&it));
    CHECK_BYTES(it.value, "null");
    CHECK(json_next(&it));
    CHECK_BYTES(it.value, "\"a\\\"]\\\\\"");
    CHECK(json_next(&it));
    CHECK_BYTES(it.value, "{}");
    CHECK(json_next(&it));
    CHECK_BYTES(it.value, "[[]]");
    CHECK(!json_next(&it));
}

TEST(iterating_over_nothing)
{
    static const char *const none[] = {"[]", "{}", "[ ]", "{ }", "1", "\"[1]\"", "null"};

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct json_iter it = json_iter(value_of(str_of(none[i])));

        CHECK(!json_next(&it));
    }

    struct json_iter it = json_iter(STR_NONE);

    CHECK(!json_next(&it));
}

TEST(get_gives_the_last_of_a_repeated_key)
{
    CHECK_BYTES(json_get(VALUE("{\"a\":1,\"b\":2,\"a\":3}"), "a"), "3");
    CHECK_BYTES(json_get(VALUE("{\"a\":1,\"\\u0061\":3}"), "a"), "3");
    CHECK_BYTES(json_get(VALUE("{\"a\":1,\"a\":null}"), "a"), "null");
}

TEST(keys_match_by_case)
{
    CHECK_BYTES(json_get(VALUE("{\"ID\":1,\"id\":2,\"Id\":3}"), "id"), "2");
    CHECK(json_get(VALUE("{\"ID\":1}"), "id").p == NULL);
}

TEST(keys_match_whatever_their_escapes)
{
    CHECK(json_key_is(STR("role"), "role"));
    CHECK(json_key_is(STR("r\\u006fle"), "role"));
    CHECK(json_key_is(STR("\\u0072\\u006f\\u006C\\u0065"), "role"));
    CHECK(!json_key_is(STR("r\\u006fl"), "role"));
    CHECK(!json_key_is(STR("r\\u006fles"), "role"));
    CHECK(!json_key_is(STR("r\\u006fle\\u0000"), "role"));
    CHECK(!json_key_is(STR("rol"), "role"));
    CHECK(!json_key_is(STR("roles"), "role"));
    CHECK(!json_key_is(STR(""), "role"));
    CHECK(json_key_is(STR(""), ""));
    CHECK(json_key_is(STR("a\\/b\\n"), "a/b\n"));
    CHECK(json_key_is(STR("\\ud83d\\ude00"), "\xf0\x9f\x98\x80"));
    CHECK(json_key_is(STR("\xf0\x9f\x98\x80\\t"), "\xf0\x9f\x98\x80\t"));
}

TEST(equal_values_however_they_are_written)
{
    static const char *const same[][2] = {
        {"{\"a\":1,\"b\":[{},{\"x\":null,\"y\":\"\"}]}",
         "{ \"b\":[ {} ,{\"y\":\"\",\"\\u0078\":null}],\"a\":1 }"},
        {"\"\\u00e9\\/\\u0000\"", "\"\xc3\xa9/\\u0000\""},
        {"[]", "[ ]"},
        {"-1.5e3", "-1.5e3"},
        {"true", "true"},
    };
    static const char *const different[][2] = {
        {"{\"a\":1}", "{\"a\":1,\"b\":2}"},
        {"{\"a\":1,\"b\":2}", "{\"a\":1}"},
        {"{\"a\":1}", "{\"A\":1}"},
        {"{\"a\":1,\"b\":2}", "{\"a\":1,\"a\":1}"},
        {"[1,2]", "[2,1]"},
        {"[1]", "[1,2]"},
        {"[1,2]", "[1]"},
        {"9007199254740992", "9007199254740993"},
        {"1", "\"1\""},
        {"{}", "[]"},
        {"true", "false"},
        {"\"a\\u0000b\"", "\"a\""},
    };

    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        CHECK(json_equal(value_of(str_of(same[i][0])), value_of(str_of(same[i][1]))));
    for (size_t i = 0; i < sizeof different / sizeof *different; i++)
        CHECK(!json_equal(value_of(str_of(different[i][0])), value_of(str_of(different[i][1]))));
    CHECK(!json_equal(VALUE("1"), STR_NONE));
}

TEST(at_counts_from_0)
{
    struct str a = VALUE("[1,[2],\"3\"]");

    CHECK_BYTES(json_at(a, 0), "1");
    CHECK_BYTES(json_at(a, 1), "[2]");
    CHECK_BYTES(json_at(a, 2), "\"3\"");
    CHECK(json_at(a, 3).p == NULL);
    CHECK(json_at(VALUE("[]"), 0).p == NULL);
    CHECK(json_at(VALUE("{\"a\":1}"), 0).p == NULL);
    CHECK(json_at(VALUE("1"), 0).p == NULL);
}

/* ---- strings ---- */

static void check_decoded(struct str text, struct str want)
{
    struct str value = value_of(text);
    struct buf b = BUF_INIT(BUF_SMALL), scratch = BUF_INIT(BUF_SMALL);

    buf_add_c(&scratch, "old");
    buf_add_c(&b, "<");
    CHECK(json_decode(value, &b));
    CHECK_MEM(b.data + 1, b.len - 1, want.p, want.n);

    struct str got = json_text(value, &scratch);

    CHECK_MEM(got.p, got.n, want.p, want.n);
    CHECK(json_plain(value) == (memchr(text.p, '\\', text.n) == NULL));
    if (json_plain(value))
        CHECK(got.p == value.p + 1);
    buf_release(&b);
    buf_release(&scratch);
}

#define DECODES(text, want) check_decoded(STR(text), STR(want))

TEST(strings_decode)
{
    DECODES("\"\"", "");
    DECODES("\"abc\"", "abc");
    DECODES("\"\xc3\xa4\"", "\xc3\xa4");
    DECODES("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
    DECODES("\"a\\nb\\nc\"", "a\nb\nc");
    DECODES("\"\\u0041\\u00e4\\u20AC\\uffff\"", "A\xc3\xa4\xe2\x82\xac\xef\xbf\xbf");
    DECODES("\"\\\\n\"", "\\n");
    DECODES("\"\\\\\\\\u0041\"", "\\\\u0041");
}

TEST(nul_survives_in_strings)
{
    DECODES("\"a\\u0000b\"", "a\0b");
    DECODES("\"\\u0000\"", "\0");
}

TEST(surrogates_pair_or_become_replacement_characters)
{
    DECODES("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80");
    DECODES("\"\\uD800\\uDC00\\udbff\\udfff\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    DECODES("\"\\ud83d\"", "\xef\xbf\xbd");
    DECODES("\"\\ud83dx\"", "\xef\xbf\xbdx");
    DECODES("\"\\ude00\"", "\xef\xbf\xbd");
    DECODES("\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                                  "A");
    DECODES("\"\\ud83d\\n\"", "\xef\xbf\xbd\n");
    DECODES("\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80");
    DECODES("\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd");
    DECODES("\"\\ud83d\\\\ude00\"", "\xef\xbf\xbd\\ude00");
}

TEST(a_decoded_string_keeps_to_the_maximum)
{
    struct buf b = BUF_INIT(6);

    CHECK(json_decode(VALUE("\"\\u0041\\u0042\\n\""), &b));
    CHECK(json_decode(VALUE("\"\\u20ac\""), &b));
    CHECK(!b.overflow);
    CHECK_STR(buf_c(&b), "AB\n\xe2\x82\xac");
    CHECK(json_decode(VALUE("\"\""), &b));
    CHECK(!b.overflow);
    CHECK(json_decode(VALUE("\"c\""), &b));
    CHECK(b.overflow);
    buf_release(&b);
}

/* Not from a text that was checked: an escape that ends early is longer when it is decoded. */
TEST(an_escape_that_is_cut_off_stays_in_its_buffer)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    json_decode_body(STR("12345678901234567890123456789012345678901234567890123456789012\\u"), &b);
    CHECK_INT(b.len, 65);
    buf_clear(&b);
    json_decode_body(STR("a\\"), &b);
    CHECK_STR(buf_c(&b), "a");
    buf_release(&b);
}

TEST(what_is_no_string_has_no_text)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    CHECK(!json_decode(VALUE("1"), &b));
    CHECK(!json_decode(VALUE("null"), &b));
    CHECK(!json_decode(VALUE("[\"a\"]"), &b));
    CHECK(!json_decode(STR_NONE, &b));
    CHECK_INT(b.len, 0);
    CHECK(json_text(VALUE("1"), &b).p == NULL);
    CHECK(json_text(STR_NONE, &b).p == NULL);
    CHECK(!json_plain(VALUE("1")));
    CHECK(!json_plain(STR_NONE));
    buf_release(&b);
}

TEST(a_type_is_found_whatever_its_escapes)
{
    CHECK(json_has_type(VALUE("{\"type\":\"text\"}"), "text"));
    CHECK(json_has_type(VALUE("{\"type\":1, \"ty\\u0070e\":\"t\\u0065xt\"}"), "text"));
    CHECK(!json_has_type(VALUE("{\"type\":\"text2\"}"), "text"));
    CHECK(!json_has_type(VALUE("{\"type\":\"text\\u0000\"}"), "text"));
    CHECK(!json_has_type(VALUE("{\"type\":[\"text\"]}"), "text"));
    CHECK(!json_has_type(VALUE("{\"kind\":\"text\"}"), "text"));
    CHECK(!json_has_type(VALUE("\"text\""), "text"));
}

TEST(four_digits_of_an_escape)
{
    static const char digits[] = "0aFfg";

    CHECK_INT(json_hex4(digits, digits + 4), 0x0aff);
    CHECK_INT(json_hex4(digits, digits + 3), -1);
    CHECK_INT(json_hex4(digits + 1, digits + 5), -1);
    CHECK(json_is_surrogate(0xd800) && json_is_surrogate(0xdfff));
    CHECK(!json_is_surrogate(0xd7ff) && !json_is_surrogate(0xe000) && !json_is_surrogate(-1));
}

/* ---- numbers ---- */

static void check_int(const char *text, int64_t want)
{
    int64_t n = 4711;

    if (!CHECK(json_int(value_of(str_of(text)), &n)) || !CHECK_INT(n, want))
        fprintf(stderr, "    of   %s\n", text);
}

static void check_no_int(const char *text)
{
    int64_t n = 4711;

    if (!CHECK(!json_int(value_of(str_of(text)), &n)) || !CHECK_INT(n, 4711))
        fprintf(stderr, "    of   %s\n", text);
}

TEST(integers_are_exact)
{
    check_int("0", 0);
    check_int("-0", 0);
    check_int("5", 5);
    check_int("-17", -17);
    check_int("100", 100);
    check_int("9007199254740993", INT64_C(9007199254740993)); /* above 2^53 */
    check_int("9223372036854775807", INT64_MAX);
    check_int("-9223372036854775808", INT64_MIN);
    check_no_int("9223372036854775808");
    check_no_int("-9223372036854775809");
    check_no_int("18446744073709551616");
    check_no_int("100000000000000000000");
    check_no_int("123456789012345678901234567890");
}

TEST(integers_however_written)
{
    check_int("5.0", 5);
    check_int("5e0", 5);
    check_int("50e-1", 5);
    check_int("0.5e1", 5);
    check_int("5.000000000000000000000000000000000", 5);
    check_int("0.00005e5", 5);
    check_int("1e18", INT64_C(1000000000000000000));
    check_int("-1E+2", -100);
    check_int("9223372036854775.807e3", INT64_MAX);
    check_int("-0.9223372036854775808e19", INT64_MIN);
    check_int("92233720368547758070000000000e-10", INT64_MAX);
    check_int("0e400", 0);
    check_int("0.000e-999999999999999999999999", 0);
    check_int("100000000000000000000000000000000e-30", 100);
    check_no_int("5.5");
    check_no_int("0.1");
    check_no_int("5e-1");
    check_no_int("1e19");
    check_no_int("1e400");
    check_no_int("-1e400");
    check_no_int("1e99999999999999999999999999999");
    check_no_int("1e-99999999999999999999999999999");
    check_no_int("1.00000000000000000000000000000000000001");
    check_no_int("9223372036854775807.5");
    check_no_int("9223372036854775.808e3");
}

TEST(what_is_no_number_is_no_integer)
{
    int64_t n = 4711;

    check_no_int("\"5\"");
    check_no_int("true");
    check_no_int("null");
    check_no_int("[5]");
    CHECK(!json_int(STR_NONE, &n));
}

TEST(walking_a_cut_text_stays_inside)
{
    static const char text[] =
        "{\"k\\u00e4\":[1.5e3,true,null,\"\xe2\x82\xac\\ud83d\\u\"],\"b\":\"\\";

    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = malloc(n ? n : 1);
        struct str value = {copy, n};
        struct buf b = BUF_INIT(BUF_SMALL);

        memcpy(copy, text, n);
        for (struct json_iter it = json_iter(value); json_next(&it);) {
            int64_t number;

            json_key_is(it.key, "k\xc3\xa5");
            json_decode(it.value, &b);
            json_int(it.value, &number);
            json_at(it.value, 3);
        }
        CHECK(json_get(value, "absent").p == NULL);
        buf_release(&b);
        free(copy);
    }
}

/* ---- json check ---- */

static void check_accepted(struct str text, struct str want)
{
    struct str value = STR_NONE;
    size_t at = 4711;

    if (!CHECK(json_check(text, &value, &at)) || !CHECK_MEM(value.p, value.n, want.p, want.n) ||
        !CHECK_INT(at, 4711))
        fprintf(stderr, "    of   %.*s\n", (int)text.n, text.p);
}

static void check_refused(struct str text, size_t want)
{
    struct str value;
    size_t at = 4711;

    if (!CHECK(!json_check(text, &value, &at)) || !CHECK_INT(at, want))
        fprintf(stderr, "    of   %.*s\n", (int)text.n, text.p);
    CHECK(!json_check(text, &value, NULL));
}

#define ACCEPT(text) check_accepted(STR(text), STR(text))
#define REFUSE(text, at) check_refused(STR(text), (at))

TEST(scalars)
{
    ACCEPT("null");
    ACCEPT("true");
    ACCEPT("false");
    ACCEPT("0");
    ACCEPT("-0");
    ACCEPT("10");
    ACCEPT("-12.50e+07");
    ACCEPT("0.0");
    ACCEPT("1E5");
    ACCEPT("1e-5");
    ACCEPT("0e0");
    ACCEPT("1e400");
    ACCEPT("123456789012345678901234567890");
    ACCEPT("\"\"");
    ACCEPT("\"abc\"");
}

TEST(words_that_are_none)
{
    REFUSE("nul", 0);
    REFUSE("nulll", 4);
    REFUSE("True", 0);
    REFUSE("tru e", 0);
    REFUSE("NaN", 0);
    REFUSE("undefined", 0);
    REFUSE("'a'", 0);
    REFUSE("/* */1", 0);
}

TEST(numbers_that_are_none)
{
    REFUSE("-", 1);
    REFUSE("+1", 0);
    REFUSE("01", 1);
    REFUSE("-01", 2);
    REFUSE(".5", 0);
    REFUSE("1.", 2);
    REFUSE("1.e5", 2);
    REFUSE("1e", 2);
    REFUSE("1e+", 3);
    REFUSE("1e5.5", 3);
    REFUSE("0x10", 1);
    REFUSE("--1", 1);
    REFUSE("1_000", 1);
    REFUSE("-Infinity", 1);
}

TEST(arrays_and_objects)
{
    ACCEPT("[]");
    ACCEPT("{}");
    ACCEPT("[ ]");
    ACCEPT("{\t}");
    ACCEPT("[1,2,3]");
    ACCEPT("[[],{},[[]],{\"a\":{}}]");
    ACCEPT("{\"a\":1,\"b\":[true,null],\"\":\"\"}");
    ACCEPT("{ \"a\" : 1 ,\r\n\t\"b\" : [ 1 , 2 ] }");
    ACCEPT("{\"a\":1,\"a\":2}");
}

TEST(brackets_that_do_not_fit)
{
    REFUSE("[", 1);
    REFUSE("{", 1);
    REFUSE("]", 0);
    REFUSE("}", 0);
    REFUSE("[1", 2);
    REFUSE("[1,", 3);
    REFUSE("[1,]", 3);
    REFUSE("[,1]", 1);
    REFUSE("[1 2]", 3);
    REFUSE("[1}", 2);
    REFUSE("{]", 1);
    REFUSE("{1:2}", 1);
    REFUSE("{\"a\"}", 4);
    REFUSE("{\"a\" 1}", 5);
    REFUSE("{\"a\":}", 5);
    REFUSE("{\"a\":1,}", 7);
    REFUSE("{\"a\":1 \"b\":2}", 7);
    REFUSE("{\"a\":1", 6);
    REFUSE("{\"a\":1]", 6);
    REFUSE("{,}", 1);
    REFUSE("{a:1}", 1);
    REFUSE("[[]", 3);
    REFUSE("[]]", 2);
}

TEST(white_space_round_the_value)
{
    check_accepted(STR(" \t\r\n{\"a\":1}\r\n "), STR("{\"a\":1}"));
    check_accepted(STR(" 1 "), STR("1"));
    REFUSE("", 0);
    REFUSE("  ", 2);
    REFUSE("\v1", 0);
    REFUSE("\xc2\xa0"
           "1",
           0);
    REFUSE("\xef\xbb\xbf"
           "1",
           0);
    check_refused(STR_NONE, 0);
}

TEST(nothing_behind_the_value)
{
    REFUSE("{}{}", 2);
    REFUSE("{} {}", 3);
    REFUSE("1 2", 2);
    REFUSE("null,", 4);
    REFUSE("{}\0", 2);
    REFUSE("{}x", 2);
    REFUSE("\"a\"b", 3);
}

TEST(escapes)
{
    ACCEPT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\u00E4\\u0000\"");
    ACCEPT("\"\\ud83d\\ude00\"");
    REFUSE("\"\\", 2);
    REFUSE("\"\\\"", 3);
    REFUSE("\"\\a\"", 2);
    REFUSE("\"\\x41\"", 2);
    REFUSE("\"\\'\"", 2);
    REFUSE("\"\\\0\"", 2);
    REFUSE("\"\\\xc3\xa4\"", 2);
    REFUSE("\"\\U0041\"", 2);
    REFUSE("\"\\u\"", 3);
    REFUSE("\"\\u004\"", 6);
    REFUSE("\"\\u004g\"", 6);
    REFUSE("\"\\u00", 5);
    REFUSE("\"\\u-001\"", 3);
}

/* chathist(5): an unpaired surrogate escape is read. */
TEST(unpaired_surrogate_escapes)
{
    ACCEPT("\"\\ud83d\"");
    ACCEPT("\"\\ude00\"");
    ACCEPT("\"\\ud83d\\u0041\"");
    ACCEPT("\"\\ude00\\ud83d\"");
}

TEST(control_characters_in_strings)
{
    for (int c = 0; c < 0x20; c++) {
        char text[] = "\"abcdefghi?jklmnopqrst\"";

        text[10] = (char)c;
        check_refused((struct str){text, sizeof(text) - 1}, 10);
    }
    ACCEPT("\"\x7f\"");
    REFUSE("\"a", 2);
    REFUSE("\"a\nb\"", 2);
    REFUSE("{\"a\nb\":1}", 3);
}

TEST(utf8_in_strings)
{
    ACCEPT("\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    ACCEPT("\"\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xef\xbf\xbf\"");
    ACCEPT("{\"\xc3\xa4\":\"\xc3\xa4\"}");
    REFUSE("\"\x80\"", 1);
    REFUSE("\"ab\xc3\"", 3);
    REFUSE("\"ab\xc3", 3);
    REFUSE("\"\xc3\xa4\xc3\"", 3);
    REFUSE("\"\xc0\x80\"", 1);
    REFUSE("\"\xe0\x80\x80\"", 1);
    REFUSE("\"\xed\xa0\x80\"", 1);
    REFUSE("\"\xf4\x90\x80\x80\"", 1);
    REFUSE("\"\xff\"", 1);
    REFUSE("\"\xe2\x82\"", 1);
    REFUSE("{\"\xff\":1}", 2);
}

/* Each special byte at each place of the word that is skipped at once. */
TEST(specials_at_every_offset)
{
    static const char specials[] = {'\n', '\0', '"', '\x80', '\x1f'};

    for (size_t pad = 0; pad < 24; pad++) {
        for (size_t s = 0; s < sizeof(specials); s++) {
            char text[64];

            memset(text, 'x', sizeof(text));
            text[0] = '"';
            text[1 + pad] = specials[s];
            text[40] = '"';
            check_refused((struct str){text, 41}, specials[s] == '"' ? 2 + pad : 1 + pad);
        }
    }
}

/* `open` n times, `inner`, `close` n times. */
static void check_nested(const char *open, const char *inner, const char *close, size_t n,
                         bool accepted)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    struct str value;

    for (size_t i = 0; i < n; i++)
        buf_add_c(&b, open);
    buf_add_c(&b, inner);
    for (size_t i = 0; i < n; i++)
        buf_add_c(&b, close);
    CHECK(json_check(buf_str(&b), &value, NULL) == accepted);
    buf_release(&b);
}

TEST(depth_has_a_limit)
{
    check_nested("[", "", "]", JSON_DEPTH, true);
    check_nested("[", "", "]", JSON_DEPTH + 1, false);
    check_nested("[", "1", "]", JSON_DEPTH, true);
    check_nested("[", "1", "]", JSON_DEPTH + 1, false);
    check_nested("{\"a\":", "1", "}", JSON_DEPTH, true);
    check_nested("{\"a\":", "1", "}", JSON_DEPTH + 1, false);
    check_nested("[", "1,[]", "]", JSON_DEPTH - 1, true);
    check_nested("[", "1,{}", "]", JSON_DEPTH, false);
    check_nested("[", "", "", 100000, false);
}

/* Every beginning of a valid text is refused at its end, and read no further. */
TEST(cut_texts_are_refused)
{
    static const char text[] = "{\"k\\u00e4\":[1.5e3,true,null,\"\xe2\x82\xac\\n\"],\"b\":{}}";

    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = malloc(n ? n : 1); /* so that the sanitizer sees a step too far */
        struct str value;

        memcpy(copy, text, n);
        CHECK(!json_check((struct str){copy, n}, &value, NULL));
        free(copy);
    }
    ACCEPT("{\"k\\u00e4\":[1.5e3,true,null,\"\xe2\x82\xac\\n\"],\"b\":{}}");
}

struct told {
    struct json_iter it;
    size_t count;
};

static void compare_member(void *ctx, struct str raw_key, struct str value)
{
    struct told *t = ctx;

    CHECK(json_next(&t->it));
    CHECK_MEM(raw_key.p, raw_key.n, t->it.key.p, t->it.key.n);
    CHECK_MEM(value.p, value.n, t->it.value.p, t->it.value.n);
    t->count++;
}

TEST(the_members_of_the_outermost_object_are_told)
{
    static const struct {
        const char *text;
        size_t count;
    } rows[] = {
        {"{}", 0},
        {" { } ", 0},
        {"[{\"a\":1}]", 0},
        {"7", 0},
        {"{\"a\":1}", 1},
        {"{ \"a\" : 1 , \"b\\\"\" : { \"c\" : [ 1, {\"d\":[]} ] } , \"\":{}, \"a\":\"x\\\\\" }", 4},
        {"{\"a\":[[[{\"b\":{\"c\":{}}}]]],\"d\":null}", 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str text = str_of(rows[i].text), value;
        struct told t = {json_iter(str_trim(text)), 0};

        CHECK(json_check_members(text, &value, compare_member, &t));
        CHECK_INT(t.count, rows[i].count);
    }
}

/* Whatever was read of it by somebody else, the rest is judged in the same way. */
TEST(an_object_is_gone_on_with_behind_a_comma)
{
    static const char *const rows[] = {
        "{\"a\":1,\"b\":2}",
        "{\"a\":1, \"b\" : [ {} ] } \r",
        "{\"a\":1,\"b\":{\"c\":[1]},\"d\":7}",
        "{\"a\":1,}",
        "{\"a\":1,\"b\"}",
        "{\"a\":1,\"b\":2",
        "{\"a\":1,\"b\":2}}",
        "{\"a\":1,\"b\":2]",
        "{\"a\":1,\"b\":2} x",
        "{\"a\":1,\"b\":\"\\x\"}",
        "{\"a\":1,",
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str text = str_of(rows[i]), value, behind;
        struct told t = {json_iter(STR("{}")), 0};
        bool valid = json_check(text, &value, NULL);

        if (valid) {
            t.it = json_iter(value);
            CHECK(json_next(&t.it));
        }
        if (CHECK_INT(json_check_from(text, strlen("{\"a\":1,"), &behind,
                                      valid ? compare_member : NULL, &t),
                      valid) &&
            valid) {
            CHECK_MEM(behind.p, behind.n, value.p, value.n);
            CHECK(!json_next(&t.it));
        }
    }
}

/* ---- json pieces ---- */

#define SMILE "\xf0\x9f\x98\x80" /* \\ud83d\\ude00 */
#define WHAT UTF8_REPLACEMENT

/* The pieces, of which NULL ends the list, make the text. */
static void check(const char *wanted, const char *const *pieces)
{
    struct json_pieces p = {0};
    struct buf out = BUF_INIT(BUF_SMALL);

    for (; *pieces; pieces++)
        json_pieces_add(&p, str_of(*pieces), &out);
    json_pieces_end(&p, &out);
    CHECK_STR(buf_c(&out), wanted);
    json_pieces_end(&p, &out);
    CHECK_STR(buf_c(&out), wanted);
    buf_release(&out);
}

#define CHECK_PIECES(wanted, ...) check(wanted, (const char *const[]){__VA_ARGS__, NULL})

TEST(what_is_whole_is_as_it_is)
{
    CHECK_PIECES("", "\"\"");
    CHECK_PIECES("", "null", "5", "{\"a\":\"b\"}", "\"");
    CHECK_PIECES("ab\ncd", "\"ab\"", "\"\\n\"", "null", "\"cd\"");
    CHECK_PIECES(SMILE "x", "\"\\ud83d\\ude00\"", "\"x\"");
    CHECK_PIECES(SMILE "x", "\"" SMILE "x\"");
}

TEST(pairs_of_surrogates_cut_in_two)
{
    CHECK_PIECES("a" SMILE "b", "\"a\\ud83d\"", "\"\\ude00b\"");
    CHECK_PIECES("a" SMILE "b", "\"a\\uD83D\"", "\"\"", "null", "\"\\uDE00b\"");
    CHECK_PIECES(SMILE SMILE, "\"\\ud83d\"", "\"\\ude00\\ud83d\"", "\"\\ude00\"");
}

TEST(halves_without_another)
{
    CHECK_PIECES("a" WHAT "b", "\"a\\ud83d\"", "\"b\"");
    CHECK_PIECES("a" WHAT, "\"a\\ud83d\"");
    CHECK_PIECES(WHAT WHAT, "\"\\ud83d\"", "\"\\ud83d\"");
    CHECK_PIECES(WHAT SMILE, "\"\\ud83d\"", "\"\\ud83d\\ude00\"");
    CHECK_PIECES(WHAT SMILE, "\"\\ud83d\"", "\"\\ud83d\"", "\"\\ude00\"");
    CHECK_PIECES(WHAT "x", "\"\\ude00x\"");
    CHECK_PIECES("x" WHAT WHAT, "\"x\\ude00\"", "\"\\ud83d\"");
    CHECK_PIECES(WHAT "\n", "\"\\ud83d\"", "\"\\n\"");
    CHECK_PIECES(WHAT "A", "\"\\ud83d\"", "\"\\u0041\"");
}

/* A backslash that another one takes away begins no escape. */
TEST(what_only_looks_like_a_half)
{
    CHECK_PIECES("\\ud83d" WHAT, "\"\\\\ud83d\"", "\"\\ude00\"");
    CHECK_PIECES("\\" SMILE, "\"\\\\\\ud83d\"", "\"\\ude00\"");
    CHECK_PIECES("ud83d", "\"ud83d\"");
    CHECK_PIECES(WHAT "ude00", "\"\\ud83d\"", "\"ude00\"");
    CHECK_PIECES(WHAT "\\ude00", "\"\\ud83d\"", "\"\\\\ude00\"");
}
