#include "chathist/base/cjson.h"

#include "chathist/base/json.h"
#include "test.h"

static void check_print(cJSON *document, const char *want)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    struct str value;

    cjson_print(document, &b);
    CHECK_STR(buf_c(&b), want);
    CHECK(json_check(buf_str(&b), &value, NULL));
    buf_release(&b);
    cJSON_Delete(document);
}

TEST(members_stand_in_the_order_they_were_set)
{
    cJSON *o = cjson_object(), *in = cjson_object(), *a = cjson_array();

    cjson_set_text(o, "text", STR("a\nb"));
    cjson_set(o, "int", cJSON_CreateNumber(-3));
    cjson_set_raw(o, "raw", STR("{\"x\": 1.50}"));
    cjson_set_raw(in, "n", STR("123456789012345678901234567890"));
    cjson_push(a, in);
    cjson_push(a, cjson_raw(STR("[ ]")));
    cjson_set(o, "list", a);
    check_print(o, "{\"text\":\"a\\nb\",\"int\":-3,\"raw\":{\"x\": 1.50},"
                   "\"list\":[{\"n\":123456789012345678901234567890},[ ]]}");
    check_print(cjson_object(), "{}");
    check_print(cjson_array(), "[]");
}

TEST(a_key_set_again_keeps_its_place_and_keys_match_by_case)
{
    cJSON *o = cjson_object();

    cjson_set_text(o, "a", STR("1"));
    cjson_set_text(o, "b", STR("2"));
    cjson_set_text(o, "A", STR("3"));
    cjson_set(o, "b", cjson_array());
    cjson_set_raw(o, "a", STR("null"));
    check_print(o, "{\"a\":null,\"b\":[],\"A\":\"3\"}");
}

TEST(text_may_hold_any_byte)
{
    cJSON *o = cjson_object();

    cjson_set_text(o, "nul", STR("a\0b"));
    cjson_set_text(o, "bad", STR("\xff"));
    cjson_set_text(o, "none", STR_NONE);
    cjson_set_text(o, "\"\n", STR("\x7f/"));
    check_print(o, "{\"nul\":\"a\\u0000b\",\"bad\":\"\xef\xbf\xbd\",\"none\":\"\","
                   "\"\\\"\\n\":\"\x7f/\"}");
}

TEST(print_keeps_to_the_maximum)
{
    cJSON *o = cjson_object();
    struct buf b = BUF_INIT(5);

    cjson_set_text(o, "key", STR("text"));
    cjson_print(o, &b);
    CHECK(b.overflow);
    buf_release(&b);
    cJSON_Delete(o);
}
