#include "chathist/base/json.h"

#include "test.h"

static void check_string(struct str text, const char *want)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    json_add_string(&b, text);
    CHECK_STR(buf_c(&b), want);
    buf_release(&b);
}

TEST(strings_are_quoted_and_escaped)
{
    check_string(STR_NONE, "\"\"");
    check_string(STR(""), "\"\"");
    check_string(STR("abc"), "\"abc\"");
    check_string(STR("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    check_string(STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
    check_string(STR("a\0b\x01\x1b\x1f"), "\"a\\u0000b\\u0001\\u001b\\u001f\"");
}

TEST(all_other_text_stays_raw)
{
    check_string(STR("\x7f\xc2\x80\xc3\xa4\xe2\x80\xa8\xe2\x80\xae\xf0\x9f\x98\x80"),
                 "\"\x7f\xc2\x80\xc3\xa4\xe2\x80\xa8\xe2\x80\xae\xf0\x9f\x98\x80\"");
}

TEST(invalid_utf8_is_replaced)
{
    check_string(STR("a\xff"
                     "b"),
                 "\"a\xef\xbf\xbd"
                 "b\"");
    check_string(STR("\xe2\x82"), "\"\xef\xbf\xbd\"");
    check_string(STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    check_string(STR("\xc3\n"), "\"\xef\xbf\xbd\\n\"");
}

TEST(visible_json_stays_json)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    json_add_visible(&b, STR("{\"a\xc3\xa4\x7f\":\r\n\t\"\\u001b\xc2\x9b\xe2\x80\xae\\\"\","
                             "\r\"\xf3\xa0\x81\x81\":1}"));
    CHECK_STR(buf_c(&b),
              "{\"a\xc3\xa4\\u007f\": \n\t\"\\u001b\\u009b\\u202e\\\"\", \"\\udb40\\udc41\":1}");
    buf_clear(&b);
    json_add_visible(&b, STR("\x1b\xff\xe2\x80"));
    CHECK_STR(buf_c(&b), "\\u001b\xef\xbf\xbd\xef\xbf\xbd");
    buf_clear(&b);
    json_add_visible(&b, STR("\"a\xf0\x9f\x98\x80\xe2\x80\x8d\xef\xbb\xbf\""));
    CHECK_STR(buf_c(&b), "\"a\xf0\x9f\x98\x80\xe2\x80\x8d\\ufeff\"");
    buf_clear(&b);
    json_add_visible(&b, STR_NONE);
    CHECK_INT(b.len, 0);
    buf_release(&b);
}

/* Every code point below U+3000 and every byte comes back as it was, or repaired. */
TEST(what_is_written_reads_back)
{
    for (int32_t cp = 0; cp < 0x3000; cp++) {
        struct buf b = BUF_INIT(BUF_SMALL), back = BUF_INIT(BUF_SMALL);
        char bytes[4];
        size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : 3;

        bytes[0] = (char)(n == 1 ? cp : n == 2 ? 0xc0 | cp >> 6 : 0xe0 | cp >> 12);
        bytes[1] = (char)(0x80 | (n == 3 ? cp >> 6 & 0x3f : cp & 0x3f));
        bytes[2] = (char)(0x80 | (cp & 0x3f));
        json_add_string(&b, (struct str){bytes, n});

        struct str value = STR_NONE;

        if (!CHECK(json_check(buf_str(&b), &value, NULL)) || !CHECK(json_decode(value, &back)) ||
            !CHECK_MEM(back.data, back.len, bytes, n))
            fprintf(stderr, "    of   U+%04X\n", (unsigned)cp);
        buf_release(&b);
        buf_release(&back);
    }
}

TEST(keys_bring_their_commas)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    json_add_key(&b, "a");
    CHECK_STR(buf_c(&b), "\"a\":");
    json_add_key(&b, "b");
    CHECK_STR(buf_c(&b), "\"a\":\"b\":");
    buf_clear(&b);
    buf_add_byte(&b, '[');
    json_add_key(&b, "a");
    buf_add_c(&b, "\"k\":");
    json_add_key(&b, "b");
    CHECK_STR(buf_c(&b), "[\"a\":\"k\":\"b\":");
    buf_clear(&b);
    buf_add_c(&b, "[{");
    json_add_key(&b, "a\"");
    buf_add_c(&b, "[1]");
    json_add_key(&b, "b");
    buf_add_c(&b, "\"{\"");
    json_add_key(&b, "c");
    buf_add_c(&b, "{}}");
    CHECK_STR(buf_c(&b), "[{\"a\\\"\":[1],\"b\":\"{\",\"c\":{}}");
    buf_release(&b);
}

TEST(members)
{
    struct buf b = BUF_INIT(BUF_SMALL);

    buf_add_byte(&b, '{');
    json_add_member(&b, "a", STR("x\ny"));
    json_add_member_int(&b, "b", INT64_MIN);
    json_add_member_int(&b, "c", INT64_MAX);
    json_add_member(&b, "d", STR_NONE);
    buf_add_byte(&b, '}');
    CHECK_STR(buf_c(&b), "{\"a\":\"x\\ny\",\"b\":-9223372036854775808,"
                         "\"c\":9223372036854775807,\"d\":\"\"}");
    buf_release(&b);
}

static void check_compact(const char *text, const char *want)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    struct str value = STR_NONE;

    CHECK(json_check(str_of(text), &value, NULL));
    buf_add_byte(&b, '<');
    json_add_compact(&b, value);
    CHECK_STR(buf_c(&b) + 1, want);
    buf_release(&b);
}

TEST(compact_drops_white_space_between_tokens_alone)
{
    check_compact("1", "1");
    check_compact(" [ 1 ,\t2 ,\r\n 3 ] ", "[1,2,3]");
    check_compact("{ \"a b\" : \" c \\\" d \" , \"e\\\\\" : [ ] }",
                  "{\"a b\":\" c \\\" d \",\"e\\\\\":[]}");
    check_compact("{\"n\": 1.50E+02, \"u\": \"\\u00E4\\/\"}",
                  "{\"n\":1.50E+02,\"u\":\"\\u00E4\\/\"}");
    check_compact("\" \"", "\" \"");
    check_compact("[]", "[]");
}

TEST(compact_keeps_to_the_maximum)
{
    struct buf b = BUF_INIT(3);

    json_add_compact(&b, STR("[1, 2]"));
    CHECK(b.overflow);
    json_add_compact(&b, STR_NONE);
    buf_release(&b);
}

static void check_unpacked(const char *value, bool added, const char *expected)
{
    struct buf b = BUF_INIT(100);

    CHECK_INT(json_add_object(&b, str_of(value)), added);
    CHECK_STR(buf_c(&b), expected);
    buf_release(&b);
}

TEST(plain_strings_have_no_escape_too_many)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    json_add_plain(&out,
                   STR("{\"\\u0061\\/\" : [\"\\u00e9\\\"\\n\\\\u0000\", 1e3,\"\\u0000\\ud83d\"]}"));
    CHECK_STR(buf_c(&out),
              "{\"a/\" : [\"\xc3\xa9\\\"\\n\\\\u0000\", 1e3,\"\xef\xbf\xbd\xef\xbf\xbd\"]}");
    buf_release(&out);
}

TEST(an_object_in_a_string_is_unpacked)
{
    check_unpacked("{ \"a\": 1 }", true, "{\"a\":1}");
    check_unpacked("\"{\\\"a\\\": [1, 2]}\"", true, "{\"a\":[1,2]}");
    check_unpacked("\"[1, 2]\"", true, "\"[1, 2]\"");
    check_unpacked("\"{not \\u00e9\"", true, "\"{not \\u00e9\"");
    check_unpacked("[{}]", false, "");
    check_unpacked("1", false, "");
    check_unpacked("null", false, "");
}
