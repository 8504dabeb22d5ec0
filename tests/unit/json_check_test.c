#include "chathist/base/json_check.h"

#include "chathist/base/json.h"

#include <stdlib.h>

#include "test.h"

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
        if (CHECK_INT(json_check_behind(text, strlen("{\"a\":1,"), &behind,
                                        valid ? compare_member : NULL, &t),
                      valid) &&
            valid) {
            CHECK_MEM(behind.p, behind.n, value.p, value.n);
            CHECK(!json_next(&t.it));
        }
    }
}
