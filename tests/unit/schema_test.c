#include "chathist/llm/schema.h"

#include "chathist/base/json.h"
#include "test.h"

/*
 * A schema and a value. `want` is the message, or NULL if the value is valid. The value is NULL if
 * the message is about the schema.
 */
struct row {
    const char *schema, *value, *want;
};

static void check_row(const struct row *row)
{
    struct err e = ERR_INIT;
    struct schema *s = schema_new(str_of(row->schema), &e);

    if (s && row->value) {
        CHECK_INT(schema_check(s, str_of(row->value), &e), row->want ? -1 : 0);
        CHECK_INT(e.kind, row->want ? ERR_FAILURE : ERR_NONE);
    } else {
        CHECK(!s && !row->value);
        CHECK_INT(e.kind, ERR_USAGE);
    }
    if (!CHECK_STR(err_text(&e), row->want ? row->want : ""))
        fprintf(stderr, "  schema %s, value %s\n", row->schema, row->value ? row->value : "none");
    schema_free(s);
    err_release(&e);
}

static void check_rows(const struct row *rows)
{
    for (; rows->schema; rows++)
        check_row(rows);
}

#define ROWS(...) check_rows((const struct row[]){__VA_ARGS__, {NULL, NULL, NULL}})

TEST(booleans_are_schemas)
{
    ROWS({"true", "1", NULL}, {"false", "1", "is not allowed"}, {" {} ", " null\n", NULL},
         {"true", "It is tea.", "is not JSON at byte 0"},
         {"true", "{} {}", "is not JSON at byte 3"});
}

TEST(types)
{
    ROWS({"{\"type\":\"string\"}", "\"\"", NULL}, {"{\"type\":\"string\"}", "1", "is not a string"},
         {"{\"type\":\"integer\"}", "1.0", NULL},
         {"{\"type\":\"integer\"}", "12e-1", "is not an integer"},
         {"{\"type\":\"integer\"}", "123456789012345678901234567890", NULL},
         {"{\"type\":\"integer\"}", "\"1\"", "is not an integer"},
         {"{\"type\":\"number\"}", "1", NULL}, {"{\"type\":\"boolean\"}", "0", "is not a boolean"},
         {"{\"type\":\"boolean\"}", "false", NULL}, {"{\"type\":\"boolean\"}", "true", NULL},
         {"{\"type\":[\"null\",\"string\"]}", "null", NULL},
         {"{\"type\":[\"null\",\"string\"]}", "1", "is not null or a string"},
         {"{\"type\":\"object\"}", "[]", "is not an object"},
         {"{\"type\":\"array\"}", "{}", "is not an array"});
}

TEST(values_are_compared_by_what_they_mean)
{
    ROWS({"{\"const\":1}", "1.0", NULL},
         {"{\"const\":{\"a\":1,\"b\":[2]}}", "{\"b\":[2e0],\"a\":1}", NULL},
         {"{\"const\":{\"a\":1,\"b\":[2]}}", "{\"b\":[2,3],\"a\":1}", "is not {\"a\":1,\"b\":[2]}"},
         {"{\"const\":{\"a\":1}}", "{\"A\":1}", "is not {\"a\":1}"},
         {"{\"const\":\"\\u0061\"}", "\"a\"", NULL}, {"{\"const\":false}", "0", "is not false"},
         {"{\"const\":[]}", "{}", "is not []"},
         {"{\"const\":4503599627370497}", "4503599627370496", "is not 4503599627370497"},
         {"{\"enum\":[\"red\",\"green\"]}", "\"blue\"", "is none of [\"red\",\"green\"]"},
         {"{\"enum\":[\"red\",\"green\"]}", "\"green\"", NULL},
         {"{\"enum\":[]}", "1", "is none of []"});
}

TEST(numbers)
{
    ROWS({"{\"minimum\":1.5}", "1.5", NULL}, {"{\"minimum\":1.5}", "1.49", "is less than 1.5"},
         {"{\"maximum\":3}", "3.0001", "is more than 3"}, {"{\"maximum\":3}", "3", NULL},
         {"{\"exclusiveMinimum\":0}", "0", "is not more than 0"},
         {"{\"exclusiveMinimum\":0}", "0.1", NULL},
         {"{\"exclusiveMaximum\":10}", "1e1", "is not less than 10"},
         {"{\"exclusiveMaximum\":10}", "-9", NULL}, {"{\"maximum\":1}", "[2]", NULL});
}

/* cJSON would cut the first two at U+0000, and refuse the others. */
TEST(escapes_that_cjson_cannot_represent)
{
    ROWS({"{\"additionalProperties\":false,\"properties\":{\"a\":true}}", "{\"a\\u0000b\":1}",
          "/a\xef\xbf\xbd"
          "b: is not allowed"},
         {"{\"const\":\"a\"}", "\"a\\u0000b\"", "is not \"a\""},
         {"{\"const\":\"\xef\xbf\xbd\"}", "\"\\ud83d\"", NULL},
         {"{\"enum\":[\"\\ude00\\ud83dA\"]}", "\"\\ude00\\ud83d\\u0041\"", NULL},
         {"{\"const\":\"\xf0\x9f\x98\x80\"}", "\"\\ud83d\\ude00\"", NULL},
         {"{\"const\":\"\\\\u0000\"}", "\"\\\\u0000\"", NULL});
}

/* Some versions of cJSON refuse numbers of more than 63 characters. */
TEST(long_numbers)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct schema *s = schema_new(STR("{\"type\":\"integer\"}"), &e);

    for (int i = 0; i < 80; i++)
        buf_add_byte(&text, '1');
    if (schema_check(s, buf_str(&text), &e) < 0)
        CHECK_STR(err_text(&e), "has a number that is too long");
    schema_free(s);
    buf_release(&text);
    err_release(&e);
}

TEST(objects)
{
    ROWS({"{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", "has no \"b\""},
         {"{\"required\":[\"a\"]}", "{\"\\u0061\":1}", NULL},
         {"{\"required\":[\"a\"]}", "[]", NULL},
         {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1}", "/a: is not a string"},
         {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"A\":1}", NULL},
         {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1,\"a\":\"\"}",
          "/a: is not a string"},
         {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":\"\",\"a\":1}",
          "/a: is not a string"},
         {"{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"a\":1,\"b~/\":2}",
          "/b~0~1: is not allowed"},
         {"{\"additionalProperties\":{\"type\":\"null\"}}", "{\"a\":null,\"b\":1}",
          "/b: is not null"});
}

TEST(arrays)
{
    ROWS({"{\"items\":{\"type\":\"number\"}}", "[1,\"2\"]", "/1: is not a number"},
         {"{\"items\":{\"items\":{\"type\":\"number\"}}}", "[[1],[2,\"\"]]",
          "/1/1: is not a number"},
         {"{\"minItems\":2}", "[1]", "has 1 item, not at least 2"},
         {"{\"maxItems\":1}", "[1,2]", "has 2 items, not at most 1"});
}

TEST(any_of_several_schemas)
{
    ROWS(
        {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", "1", "matches none of 'anyOf'"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", "\"\"", NULL},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"properties\":{\"a\":{\"type\":\"string\"}}}]}",
         "{\"a\":1}", "/a: is not a string"},
        {"{\"anyOf\":[{\"properties\":{\"a\":{\"items\":{\"type\":\"null\"}}}},{\"type\":\"null\"},"
         "{\"required\":[\"b\"]}]}",
         "{\"a\":[1]}", "/a/0: is not null"});
}

TEST(references)
{
    ROWS({"{\"$defs\":{\"n\":{\"type\":\"null\"}},\"items\":{\"$ref\":\"#/$defs/n\"}}", "[1]",
          "/0: is not null"},
         {"{\"definitions\":{\"n\":{\"type\":\"null\"}},\"items\":{\"$ref\":\"#/definitions/n\"}}",
          "[1]", "/0: is not null"},
         {"{\"$defs\":{\"n\":{\"minimum\":1}},\"$ref\":\"#/$defs/n\",\"maximum\":2}", "3",
          "is more than 2"},
         {"{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
          "{\"next\":{\"next\":{\"nxt\":1}}}", "/next/next/nxt: is not allowed"});
}

TEST(schemas_that_are_wrong)
{
    ROWS({"", NULL, "is not JSON at byte 0"}, {"{\"a\":1", NULL, "is not JSON at byte 6"},
         {"{} {}", NULL, "is not JSON at byte 3"},
         {"[]", NULL, "is not a schema: neither an object nor a boolean"},
         {"{\"type\":\"numbr\"}", NULL, "/type: names no type"},
         {"{\"type\":[\"null\",1]}", NULL, "/type: names no type"},
         {"{\"type\":1}", NULL, "/type: is neither a type nor an array of types"},
         {"{\"type\":[]}", NULL, "/type: is neither a type nor an array of types"},
         {"{\"properties\":{\"a\":{\"minimum\":\"1\"}}}", NULL,
          "/properties/a/minimum: is not a number"},
         {"{\"properties\":{\"a\":1}}", NULL,
          "/properties/a: is not a schema: neither an object nor a boolean"},
         {"{\"items\":[true]}", NULL, "/items: is not a schema: neither an object nor a boolean"},
         {"{\"maxItems\":[1]}", NULL, "/maxItems: is not a number"},
         {"{\"required\":[1]}", NULL, "/required: is not an array of strings"},
         {"{\"required\":\"a\"}", NULL, "/required: is not an array of strings"},
         {"{\"enum\":1}", NULL, "/enum: is not an array"},
         {"{\"anyOf\":[]}", NULL, "/anyOf: is not an array of schemas"},
         {"{\"anyOf\":[true,{\"type\":1}]}", NULL,
          "/anyOf/1/type: is neither a type nor an array of types"},
         {"{\"properties\":[]}", NULL, "/properties: is not an object"},
         {"{\"$ref\":\"#/$defs/a\"}", NULL, "/$ref: there is no '#/$defs/a'"},
         {"{\"properties\":{\"a\":{\"$ref\":\"#/definitions/b\"}}}", NULL,
          "/properties/a/$ref: there is no '#/definitions/b'"},
         {"{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"type\":1}}}", NULL,
          "/$defs/x/type: is neither a type nor an array of types"},
         {"{\"$ref\":1}", NULL, "/$ref: is not a string"},
         {"{\"items\":{\"$ref\":\"other.json\"}}", NULL,
          "/items/$ref: 'other.json' is another file, and only this one is read"});
}

TEST(schemas_without_end)
{
    ROWS({"{\"$ref\":\"#\"}", NULL, "/$ref: '#' refers to itself without end"},
         {"{\"items\":{\"$ref\":\"#/$defs/a\"},\"$defs\":{\"a\":{\"anyOf\":[{},{\"$ref\":\"#/$defs/"
          "b\"}]},"
          "\"b\":{\"$ref\":\"#/$defs/a\"}}}",
          NULL, "/items/$ref: '#/$defs/a' refers to itself without end"},
         {"{\"properties\":{\"a\":{\"$ref\":\"#/$defs/u\"}},\"anyOf\":[{\"$ref\":\"#/$defs/u\"}],"
          "\"$defs\":{\"u\":{\"$ref\":\"#\"}}}",
          NULL, "/properties/a/$ref: '#/$defs/u' refers to itself without end"},
         /* Each step leads into a part of the value. */
         {"{\"anyOf\":[{\"type\":\"null\"},{\"items\":{\"$ref\":\"#\"}}]}", "[[null]]", NULL});
}

TEST(no_name_is_there_twice)
{
    ROWS({"{\"type\":\"string\",\"type\":\"null\"}", NULL, "/type: is there twice"},
         {"{\"properties\":{\"a\":false,\"b\":true,\"a\":true}}", NULL,
          "/properties/a: is there twice"});
}

static void check_unchecked(const char *schema, const char *want)
{
    struct err e = ERR_INIT;
    struct schema *s = schema_new(str_of(schema), &e);

    CHECK_STR(err_text(&e), "");
    if (CHECK(s != NULL))
        CHECK_STR(schema_unchecked(s), want);
    schema_free(s);
    err_release(&e);
}

TEST(keywords_that_are_not_checked)
{
    check_unchecked("{\"type\":\"object\",\"title\":\"t\",\"description\":1,\"examples\":[]}", "");
    check_unchecked(
        "{\"allOf\":[{\"type\":1}],\"properties\":{\"a\":{\"not\":0},\"b\":{\"not\":0}}}",
        "'allOf', 'not'");
    check_unchecked("{\"properties\":{\"allOf\":true}}", "");
    check_unchecked("{\"pattern\":\"(\",\"multipleOf\":0.01,\"minLength\":1,\"uniqueItems\":true}",
                    "'pattern', 'multipleOf', 'minLength', 'uniqueItems'");
    /* References that model providers do not accept. */
    check_unchecked("{\"$ref\":\"#anchor\"}", "'$ref'");
    check_unchecked("{\"$ref\":\"#/properties/a\"}", "'$ref'");
    check_unchecked("{\"$ref\":\"#/$defs/a~1b\"}", "'$ref'");
    check_unchecked("{\"$ref\":\"#/$defs/a/items\"}", "'$ref'");
    /* Without them it is not known which members and items these are about. */
    ROWS(
        {"{\"patternProperties\":{\"^x\":true},\"additionalProperties\":false}", "{\"x\":1}", NULL},
        {"{\"prefixItems\":[true],\"items\":false}", "[1]", NULL});
}

TEST(a_check_is_bounded_in_depth)
{
    struct buf value = BUF_INIT(BUF_SMALL);

    for (int i = 0; i < JSON_DEPTH; i++)
        buf_add_byte(&value, '[');
    for (int i = 0; i < JSON_DEPTH; i++)
        buf_add_byte(&value, ']');
    check_row(&(struct row){"{\"items\":{\"$ref\":\"#\"}}", buf_c(&value), NULL});
    buf_release(&value);
}

/* Two ways at each step down: without a bound a number with 60 digits. */
TEST(a_check_is_bounded_in_steps)
{
    struct buf schema = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct schema *s;

    buf_add_c(&schema, "{\"$ref\":\"#/$defs/a0\",\"$defs\":{\"a200\":false");
    for (int i = 0; i < 200; i++)
        buf_addf(&schema,
                 ",\"a%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/a%d\"},{\"$ref\":\"#/$defs/a%d\"}]}", i,
                 i + 1, i + 1);
    buf_add_c(&schema, "}}");
    s = schema_new(buf_str(&schema), &e);
    if (CHECK(s != NULL)) {
        CHECK_INT(schema_check(s, STR("1"), &e), -1);
        CHECK_STR(err_text(&e), "takes too long to check");
    }
    schema_free(s);
    err_release(&e);
    buf_release(&schema);
}
