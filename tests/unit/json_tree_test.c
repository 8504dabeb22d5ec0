#include "chathist/base/json_tree.h"

#include <stdlib.h>

#include "chathist/base/json.h"
#include "test.h"

static void check_tree(const struct json_tree *t, const char *want)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    struct str value;

    json_tree_print(t, false, &b);
    CHECK_STR(buf_c(&b), want);
    CHECK(json_check(buf_str(&b), &value, NULL));
    buf_release(&b);
}

TEST(empty_trees)
{
    struct json_tree *o = json_tree_object(), *a = json_tree_array();

    check_tree(o, "{}");
    check_tree(a, "[]");
    json_tree_free(o);
    json_tree_free(a);
    json_tree_free(NULL);
}

TEST(members_stand_in_the_order_they_were_set)
{
    struct json_tree *o = json_tree_object(), *in = json_tree_object(), *a = json_tree_array();

    json_tree_set_text(o, "text", STR("a\nb"));
    json_tree_set_int(o, "int", -3);
    json_tree_set_raw(o, "raw", STR("{\"x\": 1.50}"));
    json_tree_set_int(in, "n", 1);
    json_tree_push(a, in);
    json_tree_push(a, json_tree_array());
    json_tree_set(o, "list", a);
    check_tree(o, "{\"text\":\"a\\nb\",\"int\":-3,\"raw\":{\"x\": 1.50},\"list\":[{\"n\":1},[]]}");
    json_tree_free(o);
}

TEST(a_key_set_again_keeps_its_place)
{
    struct json_tree *o = json_tree_object();

    json_tree_set_text(o, "a", STR("1"));
    json_tree_set_text(o, "b", STR("2"));
    json_tree_set_text(o, "c", STR("3"));
    json_tree_set_int(o, "a", 10);
    json_tree_set(o, "b", json_tree_array());
    json_tree_set_raw(o, "c", STR("null"));
    json_tree_set_text(o, "d", STR("4"));
    check_tree(o, "{\"a\":10,\"b\":[],\"c\":null,\"d\":\"4\"}");
    json_tree_free(o);
}

TEST(keys_match_by_case)
{
    struct json_tree *o = json_tree_object();

    json_tree_set_int(o, "key", 1);
    json_tree_set_int(o, "KEY", 2);
    json_tree_set_int(o, "Key", 3);
    json_tree_set_int(o, "KEY", 4);
    check_tree(o, "{\"key\":1,\"KEY\":4,\"Key\":3}");
    json_tree_remove(o, "Key");
    json_tree_remove(o, "kEY");
    check_tree(o, "{\"key\":1,\"KEY\":4}");
    json_tree_free(o);
}

TEST(remove_takes_members_out)
{
    struct json_tree *o = json_tree_object();

    json_tree_remove(o, "absent");
    json_tree_set_int(o, "a", 1);
    json_tree_set(o, "b", json_tree_object());
    json_tree_set_int(o, "c", 3);
    json_tree_remove(o, "b");
    check_tree(o, "{\"a\":1,\"c\":3}");
    json_tree_remove(o, "c");
    json_tree_remove(o, "a");
    check_tree(o, "{}");
    json_tree_set_int(o, "b", 2);
    check_tree(o, "{\"b\":2}");
    json_tree_free(o);
}

TEST(text_comes_out_right)
{
    struct json_tree *o = json_tree_object();

    json_tree_set_text(o, "nul", STR("a\0b"));
    json_tree_set_text(o, "bad", STR("\xff"));
    json_tree_set_text(o, "none", STR_NONE);
    json_tree_set_text(o, "\"\xff\n", STR("\x7f/"));
    json_tree_set_text(o, "", STR("x"));
    check_tree(o, "{\"nul\":\"a\\u0000b\",\"bad\":\"\xef\xbf\xbd\",\"none\":\"\","
                  "\"\\\"\xef\xbf\xbd\\n\":\"\x7f/\",\"\":\"x\"}");
    json_tree_set_int(o, "\"\xff\n", 1);
    json_tree_remove(o, "");
    json_tree_remove(o, "nul");
    check_tree(o, "{\"bad\":\"\xef\xbf\xbd\",\"none\":\"\",\"\\\"\xef\xbf\xbd\\n\":1}");
    json_tree_free(o);
}

TEST(numbers_are_exact)
{
    struct json_tree *o = json_tree_object();

    json_tree_set_int(o, "max", INT64_MAX);
    json_tree_set_int(o, "min", INT64_MIN);
    json_tree_set_raw(o, "big", STR("123456789012345678901234567890"));
    json_tree_set_raw(o, "float", STR("0.10"));
    check_tree(o, "{\"max\":9223372036854775807,\"min\":-9223372036854775808,"
                  "\"big\":123456789012345678901234567890,\"float\":0.10}");
    json_tree_free(o);
}

TEST(large_text)
{
    struct json_tree *o = json_tree_object();
    struct buf b = BUF_INIT(BUF_LINE);
    size_t n = 5000000;
    char *big = malloc(n);

    memset(big, '\n', n);
    json_tree_set_text(o, "k", (struct str){big, n});
    json_tree_print(o, false, &b);
    CHECK_INT(b.len, 2 * n + 8);
    free(big);
    buf_release(&b);
    json_tree_free(o);
}

TEST(indented)
{
    struct json_tree *o = json_tree_object(), *a = json_tree_array();
    struct buf b = BUF_INIT(BUF_SMALL);

    json_tree_set_text(o, "a", STR("{[,:]}\"\\"));
    json_tree_set_raw(o, "r", STR("{ \"x\" :[1 , 2], \"e\":{ }}"));
    json_tree_push(a, json_tree_object());
    json_tree_push(a, json_tree_array());
    json_tree_set(o, "l", a);
    buf_add_c(&b, "> ");
    json_tree_print(o, true, &b);
    CHECK_STR(buf_c(&b), "> {\n"
                         "  \"a\": \"{[,:]}\\\"\\\\\",\n"
                         "  \"r\": {\n"
                         "    \"x\": [\n"
                         "      1,\n"
                         "      2\n"
                         "    ],\n"
                         "    \"e\": {}\n"
                         "  },\n"
                         "  \"l\": [\n"
                         "    {},\n"
                         "    []\n"
                         "  ]\n"
                         "}");
    json_tree_free(o);
    buf_release(&b);
}

TEST(raw_elements_go_as_they_are)
{
    struct json_tree *a = json_tree_array();
    struct buf b = BUF_INIT(BUF_SMALL);

    json_tree_push_raw(a, STR("{\"x\": 12345678901234567890}"));
    json_tree_push_raw(a, STR("null"));
    json_tree_print(a, false, &b);
    CHECK_STR(buf_c(&b), "[{\"x\": 12345678901234567890},null]");
    json_tree_free(a);
    buf_release(&b);
}

TEST(print_keeps_to_the_maximum)
{
    struct json_tree *o = json_tree_object();
    struct buf b = BUF_INIT(5);

    json_tree_set_int(o, "key", 1);
    json_tree_print(o, false, &b);
    CHECK(b.overflow);
    buf_release(&b);
    json_tree_free(o);
}
