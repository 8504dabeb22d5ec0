#include "chathist/base/json_same.h"

#include "chathist/base/json.h"
#include "test.h"

static bool same(const char *a, const char *b)
{
    struct str x = STR_NONE, y = STR_NONE;

    CHECK(json_check(str_of(a), &x, NULL));
    CHECK(json_check(str_of(b), &y, NULL));
    return json_same(x, y);
}

TEST(values_that_are_the_same)
{
    CHECK(same("1", "1.0"));
    CHECK(same("\"\\u00e9\\/\"", "\"\xc3\xa9/\""));
    CHECK(same("[1, [2]]", "[1,[2.0]]"));
    CHECK(same("{\"a\":1,\"b\":{}}", "{ \"b\" : { }, \"\\u0061\" : 1e0 }"));
    CHECK(same("{\"a\":1,\"a\":2}", "{\"a\":2}"));
    CHECK(same("null", "null"));
}

TEST(values_that_are_not)
{
    CHECK(!same("1", "\"1\""));
    CHECK(!same("true", "1"));
    CHECK(!same("[1,2]", "[2,1]"));
    CHECK(!same("[1,2]", "[1]"));
    CHECK(!same("{\"a\":1}", "{\"a\":1,\"b\":1}"));
    CHECK(!same("{\"a\":1}", "[\"a\",1]"));
    CHECK(!same("\"a\\u0000b\"", "\"a\""));
    CHECK(!same("null", "false"));
    CHECK(!same("[[1],2]", "[[1,2]]"));
}

TEST(members_by_another_key)
{
    struct str object = STR("{\"a\":1,\"\\u0061\":2,\"\":3,\"a\\u0000\":4}");

    CHECK(str_eq_c(json_get_same(STR("[1]"), (struct str){&"\"a\""[1], 1}), ""));
    CHECK(str_eq_c(json_get_same(object, (struct str){&"\"a\""[1], 1}), "2"));
    CHECK(str_eq_c(json_get_same(object, (struct str){&"\"\\u0061\""[1], 6}), "2"));
    CHECK(str_eq_c(json_get_same(object, (struct str){&"\"\""[1], 0}), "3"));
    CHECK(str_eq_c(json_get_same(object, (struct str){&"\"a\\u0000\""[1], 7}), "4"));
}
