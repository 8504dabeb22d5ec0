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
    ROWS({"true", "1", NULL}, {"false", "1", "is not allowed"}, {" {} ", " null\n", NULL});
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
         {"{\"exclusiveMaximum\":10}", "-9", NULL}, {"{\"multipleOf\":0.01}", "19.99", NULL},
         {"{\"multipleOf\":0.01}", "19.999", "is not a multiple of 0.01"},
         {"{\"multipleOf\":5}", "-15", NULL}, {"{\"multipleOf\":5}", "0", NULL},
         {"{\"multipleOf\":5}", "7", "is not a multiple of 5"},
         {"{\"multipleOf\":2}", "\"text\"", NULL}, {"{\"maximum\":1}", "[2]", NULL});
}

TEST(strings)
{
    ROWS(
        {"{\"maxLength\":2}", "\"\xf0\x9f\x98\x80\\ud83d\\ude00\"", NULL},
        {"{\"maxLength\":2.0}", "\"abc\"", "has 3 characters, not at most 2"},
        {"{\"minLength\":2}", "\"a\"", "has 1 character, not at least 2"},
        {"{\"pattern\":\"^[a-z]+$\"}", "\"abc\"", NULL},
        {"{\"pattern\":\"^[a-z]+$\"}", "\"abc\\n\"", "does not match the pattern \"^[a-z]+$\""},
        {"{\"pattern\":\"^\\\\d$\"}", "\"\xe0\xa5\xaa\"", "does not match the pattern \"^\\\\d$\""},
        {"{\"pattern\":\"^\\\\u00e9$\"}", "\"\xc3\xa9\"", NULL},
        {"{\"pattern\":\"\"}", "\"\"", NULL}, {"{\"format\":\"date\"}", "\"never\"", NULL});
}

/* cJSON would cut the first string at U+0000, and refuse the others. */
TEST(escapes_that_cjson_cannot_represent)
{
    ROWS({"{\"minLength\":3}", "\"a\\u0000b\"", NULL}, {"{\"minLength\":3}", "\"\\ud83dab\"", NULL},
         {"{\"maxLength\":3}", "\"\\ude00\\ud83d\\u0041\"", NULL},
         {"{\"maxLength\":1}", "\"\\ud83d\\ude00\"", NULL},
         {"{\"maxLength\":2}", "\"\\\\u0000\"", "has 6 characters, not at most 2"},
         {"{\"additionalProperties\":false,\"properties\":{\"a\":true}}", "{\"a\\u0000b\":1}",
          "/a\xef\xbf\xbd"
          "b: is not allowed"});
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

TEST(patterns_are_bounded)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_add_byte(&text, '"');
    for (int i = 0; i < 5000; i++)
        buf_add_byte(&text, 'a');
    buf_add_c(&text, "!\"");
    check_row(&(struct row){"{\"pattern\":\"^(a+)+$\"}", buf_c(&text), "match limit exceeded"});
    check_row(&(struct row){"{\"anyOf\":[{\"pattern\":\"^(a+)+$\"},{}]}", buf_c(&text),
                            "match limit exceeded"});
    buf_release(&text);
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
         {"{\"maxItems\":1}", "[1,2]", "has 2 items, not at most 1"},
         {"{\"uniqueItems\":true}", "[1,{\"a\":1,\"b\":2},{\"b\":2,\"a\":1.0}]",
          "has two items {\"a\":1,\"b\":2}"},
         {"{\"uniqueItems\":true}", "[1,true,\"1\",[1]]", NULL},
         {"{\"uniqueItems\":false}", "[1,1]", NULL});
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
          "{\"next\":{\"next\":{\"nxt\":1}}}", "/next/next/nxt: is not allowed"},
         {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"$ref\":\"#/properties/a\"}}}",
          "{\"b\":1}", "/b: is not null"},
         {"{\"x\":{\"a/b\":[0,{\"pattern\":\"^a\"}]},\"$ref\":\"#/x/a~1b/1\"}", "\"b\"",
          "does not match the pattern \"^a\""});
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
         {"{\"minLength\":-1}", NULL, "/minLength: is not a non-negative integer"},
         {"{\"maxItems\":1.5}", NULL, "/maxItems: is not a non-negative integer"},
         {"{\"multipleOf\":0}", NULL, "/multipleOf: is not a number above 0"},
         {"{\"required\":[1]}", NULL, "/required: is not an array of strings"},
         {"{\"required\":\"a\"}", NULL, "/required: is not an array of strings"},
         {"{\"enum\":1}", NULL, "/enum: is not an array"},
         {"{\"uniqueItems\":1}", NULL, "/uniqueItems: is not a boolean"},
         {"{\"anyOf\":[]}", NULL, "/anyOf: is not an array of schemas"},
         {"{\"anyOf\":[true,{\"type\":1}]}", NULL,
          "/anyOf/1/type: is neither a type nor an array of types"},
         {"{\"properties\":[]}", NULL, "/properties: is not an object"},
         {"{\"pattern\":1}", NULL, "/pattern: is not a string"},
         {"{\"pattern\":\"(\"}", NULL,
          "/pattern: bad regular expression '(': missing closing parenthesis (offset 1)"},
         {"{\"$ref\":\"#/$defs/a\"}", NULL, "/$ref: there is no '#/$defs/a'"},
         {"{\"$ref\":\"#/$defs/a~1b\"}", NULL, "/$ref: there is no '#/$defs/a~1b'"},
         {"{\"properties\":{\"a\":{\"$ref\":\"#/properties/b\"}}}", NULL,
          "/properties/a/$ref: there is no '#/properties/b'"},
         {"{\"$ref\":\"#/x\",\"x\":{\"type\":1}}", NULL,
          "/x/type: is neither a type nor an array of types"},
         {"{\"$ref\":\"#/title\",\"title\":\"t\"}", NULL,
          "/title: is not a schema: neither an object nor a boolean"},
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

TEST(the_last_of_several_members_counts)
{
    ROWS({"{\"type\":\"string\",\"type\":\"null\"}", "null", NULL},
         {"{\"type\":1,\"type\":\"null\"}", "\"\"", "is not null"},
         {"{\"properties\":{\"a\":false,\"a\":{\"enum\":[1],\"enum\":[2]}}}", "{\"a\":2}", NULL},
         {"{\"const\":{\"a\":1,\"a\":2}}", "{\"a\":2}", NULL});
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
    check_unchecked("{\"$ref\":\"#anchor\"}", "'$ref'");
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

/* Without a bound this takes as many steps as the square of the number of items. */
TEST(a_comparison_is_bounded_in_steps)
{
    struct buf value = BUF_INIT(BUF_SMALL);

    for (int i = 0; i < 10000; i++)
        buf_addf(&value, "%c%d", i ? ',' : '[', i);
    buf_add_byte(&value, ']');
    check_row(&(struct row){"{\"uniqueItems\":true}", buf_c(&value), "takes too long to check"});
    check_row(&(struct row){"{\"anyOf\":[{\"uniqueItems\":true},true]}", buf_c(&value),
                            "takes too long to check"});
    buf_release(&value);
}
