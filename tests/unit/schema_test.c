#include "chathist/llm/schema.h"

#include "chathist/base/json.h"
#include "test.h"

/*
 * A schema and a value; `want` is NULL when the value is valid, else what is wrong with it. For a
 * schema that is none the value is NULL.
 */
struct row {
    const char *schema, *value, *want;
};

static void check_row(const struct row *row)
{
    struct err e = ERR_INIT;
    struct schema *s = schema_new(str_of(row->schema), &e);
    struct str value = STR_NONE;

    if (s && row->value) {
        CHECK(json_check(str_of(row->value), &value, NULL));
        CHECK_INT(schema_check(s, value, &e), row->want ? -1 : 0);
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
    ROWS({"true", "1", NULL}, {"false", "1", "is not allowed"}, {" {} ", "null", NULL});
}

TEST(types)
{
    ROWS({"{\"type\":\"string\"}", "\"\"", NULL}, {"{\"type\":\"string\"}", "1", "is not a string"},
         {"{\"type\":\"integer\"}", "1.0", NULL},
         {"{\"type\":\"integer\"}", "12e-1", "is not an integer"},
         {"{\"type\":\"integer\"}", "123456789012345678901234567890", NULL},
         {"{\"type\":\"number\"}", "1", NULL}, {"{\"type\":\"boolean\"}", "0", "is not a boolean"},
         {"{\"type\":[\"null\",\"string\"]}", "null", NULL},
         {"{\"type\":[\"null\",\"string\"]}", "1", "is not a string or null"},
         {"{\"type\":\"object\"}", "[]", "is not an object"},
         {"{\"type\":\"array\"}", "{}", "is not an array"});
}

TEST(values_are_compared_by_what_they_mean)
{
    ROWS({"{\"const\":1}", "1.0", NULL},
         {"{\"const\":{\"a\":1,\"b\":[2]}}", "{\"b\":[2e0],\"a\":1}", NULL},
         {"{\"const\":\"\\u0061\"}", "\"a\"", NULL}, {"{\"const\":false}", "0", "is not false"},
         {"{\"enum\":[\"red\",\"green\"]}", "\"blue\"", "is none of [\"red\",\"green\"]"},
         {"{\"enum\":[]}", "1", "is none of []"},
         {"{\"const\":9007199254740993}", "9007199254740992", "is not 9007199254740993"});
}

TEST(numbers)
{
    ROWS({"{\"minimum\":1.5}", "1.5", NULL}, {"{\"minimum\":1.5}", "1.49", "is less than 1.5"},
         {"{\"maximum\":3}", "3.0001", "is more than 3"},
         {"{\"exclusiveMinimum\":0}", "0", "is not more than 0"},
         {"{\"exclusiveMaximum\":10}", "1e1", "is not less than 10"},
         {"{\"multipleOf\":0.01}", "19.99", NULL},
         {"{\"multipleOf\":0.01}", "19.999", "is no multiple of 0.01"},
         {"{\"multipleOf\":2}", "\"text\"", NULL});
}

TEST(strings)
{
    ROWS({"{\"maxLength\":2}", "\"\xf0\x9f\x98\x80\\ud83d\\ude00\"", NULL},
         {"{\"maxLength\":2.0}", "\"abc\"", "has 3 characters, not at most 2"},
         {"{\"minLength\":2}", "\"a\"", "has 1 character, not at least 2"},
         {"{\"pattern\":\"^[a-z]+$\"}", "\"abc\"", NULL},
         {"{\"pattern\":\"^[a-z]+$\"}", "\"abc\\n\"", "does not match the pattern \"^[a-z]+$\""},
         {"{\"format\":\"date\"}", "\"never\"", NULL});
}

TEST(patterns_are_bounded)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    buf_add_byte(&text, '"');
    for (int i = 0; i < 5000; i++)
        buf_add_byte(&text, 'a');
    buf_add_c(&text, "!\"");
    check_row(&(struct row){"{\"pattern\":\"^(a+)+$\"}", buf_c(&text), "match limit exceeded"});
    check_row(
        &(struct row){"{\"not\":{\"pattern\":\"^(a+)+$\"}}", buf_c(&text), "match limit exceeded"});
    buf_release(&text);
}

TEST(objects)
{
    ROWS({"{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", "has no \"b\""},
         {"{\"required\":[\"a\"]}", "{\"\\u0061\":1}", NULL},
         {"{\"minProperties\":1}", "{}", "has 0 members, not at least 1"},
         {"{\"maxProperties\":0}", "{\"a\":1}", "has 1 member, not at most 0"},
         {"{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", "has no \"b\""},
         {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1}", "/a: is not a string"},
         {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1,\"a\":\"\"}",
          "/a: is not a string"},
         {"{\"properties\":{\"a\":true},\"patternProperties\":{\"^x-\":{\"type\":\"null\"}},"
          "\"additionalProperties\":false}",
          "{\"a\":1,\"x-b\":null}", NULL},
         {"{\"properties\":{\"a\":true},\"additionalProperties\":false}", "{\"a\":1,\"b~/\":2}",
          "/b~0~1: is not allowed"},
         {"{\"patternProperties\":{\"^x-\":{\"type\":\"null\"}}}", "{\"x-b\":1}",
          "/x-b: is not null"},
         {"{\"propertyNames\":{\"maxLength\":1}}", "{\"a\":1,\"bc\":2}",
          "/bc: has a name that is not allowed"},
         {"{\"dependentSchemas\":{\"a\":{\"required\":[\"c\"]}}}", "{\"a\":1}", "has no \"c\""});
}

TEST(arrays)
{
    ROWS({"{\"items\":{\"type\":\"number\"}}", "[1,\"2\"]", "/1: is not a number"},
         {"{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\"]", NULL},
         {"{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]",
          "/1: is not allowed"},
         {"{\"minItems\":2}", "[1]", "has 1 item, not at least 2"},
         {"{\"maxItems\":1}", "[1,2]", "has 2 items, not at most 1"},
         {"{\"uniqueItems\":true}", "[1,{\"a\":1,\"b\":2},{\"b\":2,\"a\":1.0}]",
          "items 1 and 2 are the same"},
         {"{\"uniqueItems\":true}", "[1,true,\"1\",[1]]", NULL},
         {"{\"contains\":{\"type\":\"number\"}}", "[\"a\"]",
          "has 0 items as 'contains' asks for, not at least 1"},
         {"{\"contains\":true,\"maxContains\":1}", "[1,2]",
          "has 2 items as 'contains' asks for, not at most 1"},
         {"{\"contains\":{\"type\":\"number\"},\"minContains\":0}", "[]", NULL});
}

TEST(schemas_together)
{
    ROWS(
        {"{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3", "is more than 2"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", "1", "matches none of 'anyOf'"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"properties\":{\"a\":{\"type\":\"string\"}}}]}",
         "{\"a\":1}", "/a: is not a string"},
        {"{\"oneOf\":[{\"minimum\":1},{\"type\":\"string\"},{\"maximum\":2}]}", "1",
         "matches two of 'oneOf', 0 and 2"},
        {"{\"oneOf\":[{\"minimum\":5},{\"type\":\"string\"}]}", "1", "matches none of 'oneOf'"},
        {"{\"not\":{\"type\":\"null\"}}", "null", "is what 'not' rules out"},
        {"{\"if\":{\"minimum\":10},\"then\":{\"multipleOf\":10},\"else\":{\"maximum\":5}}", "20",
         NULL},
        {"{\"if\":{\"minimum\":10},\"then\":{\"multipleOf\":10},\"else\":{\"maximum\":5}}", "15",
         "is no multiple of 10"},
        {"{\"if\":{\"minimum\":10},\"then\":{\"multipleOf\":10},\"else\":{\"maximum\":5}}", "7",
         "is more than 5"});
}

TEST(what_nobody_has_looked_at)
{
    const char *object =
        "{\"allOf\":[{\"properties\":{\"a\":true}}],\"anyOf\":[{\"required\":[\"b\"],"
        "\"properties\":{\"b\":true}},{\"required\":[\"c\"],\"properties\":{\"c\":true}}],"
        "\"unevaluatedProperties\":false}";

    ROWS({object, "{\"a\":1,\"b\":2,\"c\":3}", NULL},
         {object, "{\"a\":1,\"c\":3,\"d\":4}", "/d: is not allowed"},
         {object, "{\"a\":1,\"b\":3,\"c\":4,\"e\":5}", "/e: is not allowed"},
         {"{\"prefixItems\":[true],\"contains\":{\"type\":\"null\"},\"unevaluatedItems\":false}",
          "[1,null]", NULL},
         {"{\"prefixItems\":[true],\"contains\":{\"type\":\"null\"},\"unevaluatedItems\":false}",
          "[1,null,2]", "/2: is not allowed"});
}

TEST(references)
{
    ROWS({"{\"$defs\":{\"p/q\":{\"type\":\"null\"}},\"items\":{\"$ref\":\"#/$defs/p~1q\"}}", "[1]",
          "/0: is not null"},
         {"{\"$defs\":{\"a\":{\"$anchor\":\"here\",\"type\":\"null\"}},\"$ref\":\"#here\"}", "1",
          "is not null"},
         {"{\"$id\":\"http://x/y/z\",\"$defs\":{\"a\":{\"$id\":\"../w\",\"type\":\"null\"}},"
          "\"$ref\":\"http://x/w\"}",
          "1", "is not null"},
         {"{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
          "{\"next\":{\"next\":{\"nxt\":1}}}", "/next/next/nxt: is not allowed"},
         {"{\"unknown\":{\"items\":{\"type\":\"null\"}},\"$ref\":\"#/unknown\"}", "[1]",
          "/0: is not null"},
         {"{\"$id\":\"http://x/tree\",\"$dynamicAnchor\":\"node\",\"properties\":{\"c\":{\"items\":"
          "{\"$dynamicRef\":\"#node\"}}},\"$defs\":{}}",
          "{\"c\":[{\"c\":1}]}", NULL});
}

TEST(schemas_that_are_none)
{
    ROWS({"", NULL, "is not JSON at byte 0"}, {"{\"a\":1", NULL, "is not JSON at byte 6"},
         {"[]", NULL, "is no schema: neither an object nor a boolean"},
         {"{\"type\":\"numbr\"}", NULL, "/type: names no type"},
         {"{\"type\":1}", NULL, "/type: is neither a type nor an array of types"},
         {"{\"properties\":{\"a\":{\"minimum\":\"1\"}}}", NULL,
          "/properties/a/minimum: is not a number"},
         {"{\"properties\":{\"a\":1}}", NULL,
          "/properties/a: is no schema: neither an object nor a boolean"},
         {"{\"items\":[true]}", NULL, "/items: is no schema: neither an object nor a boolean"},
         {"{\"minLength\":-1}", NULL, "/minLength: is not an integer from 0 on"},
         {"{\"multipleOf\":0}", NULL, "/multipleOf: is not above 0"},
         {"{\"multipleOf\":1234567890123456789}", NULL, "/multipleOf: has more than 18 digits"},
         {"{\"required\":[1]}", NULL, "/required: is not an array of strings"},
         {"{\"required\":\"a\"}", NULL, "/required: is not an array of strings"},
         {"{\"dependentRequired\":{\"a\":1}}", NULL,
          "/dependentRequired: is not an array of strings"},
         {"{\"enum\":1}", NULL, "/enum: is not an array"},
         {"{\"uniqueItems\":1}", NULL, "/uniqueItems: is not a boolean"},
         {"{\"allOf\":[]}", NULL, "/allOf: is empty"},
         {"{\"properties\":[]}", NULL, "/properties: is not an object"},
         {"{\"$anchor\":\"1\"}", NULL, "/$anchor: is no name of an anchor"},
         {"{\"pattern\":\"(\"}", NULL,
          "/pattern: bad regular expression '(': missing closing parenthesis (offset 1)"},
         {"{\"patternProperties\":{\"[\":true}}", NULL,
          "/patternProperties/[: bad regular expression '[': missing terminating ] for character "
          "class "
          "(offset 1)"},
         {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"dependencies\":{}}", NULL,
          "has a keyword of an older draft that 2020-12 has no more"});
}

TEST(references_that_lead_nowhere)
{
    ROWS({"{\"$ref\":\"#/$defs/a\"}", NULL, "/$ref: '#/$defs/a' leads nowhere"},
         {"{\"$ref\":\"#a\"}", NULL, "/$ref: '#a' leads nowhere"},
         {"{\"items\":{\"$ref\":\"other.json\"}}", NULL,
          "/items/$ref: 'other.json' is not in this file, and nothing else is read"},
         {"{\"enum\":[1],\"$ref\":\"#/enum/0\"}", NULL,
          "/$ref: is no schema: neither an object nor a boolean"},
         {"{\"$ref\":\"#\"}", NULL, "refers to itself for ever"},
         {"{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
          "a\"}]}}}",
          NULL, "/$defs/a: refers to itself for ever"},
         {"{\"if\":true,\"then\":{\"$ref\":\"#\"}}", NULL, "refers to itself for ever"});
}

TEST(a_check_is_bounded_in_depth)
{
    struct buf value = BUF_INIT(BUF_SMALL);

    for (int i = 0; i < JSON_DEPTH; i++)
        buf_add_byte(&value, '[');
    for (int i = 0; i < JSON_DEPTH; i++)
        buf_add_byte(&value, ']');
    check_row(&(struct row){"{\"items\":{\"$ref\":\"#\"}}", buf_c(&value), NULL});
    check_row(
        &(struct row){"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"allOf\":[{\"items\":"
                      "{\"$ref\":\"#\"}}]}]}}}",
                      buf_c(&value), "is nested too deeply for the schema"});
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

TEST(a_schema_is_given_back_as_it_was)
{
    struct err e = ERR_INIT;
    struct schema *s = schema_new(STR("\n{ \"type\" : \"null\" }\n"), &e);
    struct str text = schema_text(s);

    CHECK(str_eq_c(text, "{ \"type\" : \"null\" }"));
    schema_free(s);
}
