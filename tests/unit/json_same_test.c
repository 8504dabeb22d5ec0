#include "convert/json_same.h"

#include "chathist/base/json.h"
#include "test.h"

static bool same(const char *a, const char *b)
{
    struct buf p = BUF_INIT(JSON_SAME_MAX), q = BUF_INIT(JSON_SAME_MAX);
    struct str x = STR_NONE, y = STR_NONE;
    bool equal;

    CHECK(json_check(str_of(a), &x, NULL));
    CHECK(json_check(str_of(b), &y, NULL));
    json_add_same(&p, x);
    json_add_same(&q, y);
    equal = str_eq(buf_str(&p), buf_str(&q));
    buf_release(&p);
    buf_release(&q);
    return equal;
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
