/* Which header lines repeat a message of MCP over HTTP. */
#include "../../lib/mcp/client.h"

#include "test.h"

#include "chathist/base/buf.h"

#define SCHEMA(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define TEXT(key, name) "\"" key "\":{\"type\":\"string\",\"x-mcp-header\":\"" name "\"}"

static void check(const char *schema, const char *args, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    mcp_add_headers(&out, "tools/call", "t", str_of(schema), str_of(args));
    CHECK(str_starts(buf_str(&out), STR("Mcp-Method: tools/call\nMcp-Name: t\n")));
    CHECK_STR(buf_c(&out) + 35, want);
    buf_release(&out);
}

TEST(the_method_and_the_tool)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    mcp_add_headers(&out, "initialize", NULL, STR_NONE, STR_NONE);
    CHECK_STR(buf_c(&out), "Mcp-Method: initialize\n");
    buf_clear(&out);
    mcp_add_headers(&out, "tools/call", "wé", STR_NONE, STR_NONE);
    CHECK_STR(buf_c(&out), "Mcp-Method: tools/call\nMcp-Name: =?base64?d8Op?=\n");
    buf_release(&out);
}

TEST(the_examples_of_the_specification)
{
    const char *schema = SCHEMA(TEXT("a", "A"));

    check(schema, "{\"a\":\"us-west1\"}", "Mcp-Param-A: us-west1\n");
    check(schema, "{\"a\":\"Hello, 世界\"}", "Mcp-Param-A: =?base64?SGVsbG8sIOS4lueVjA==?=\n");
    check(schema, "{\"a\":\" padded \"}", "Mcp-Param-A: =?base64?IHBhZGRlZCA=?=\n");
    check(schema, "{\"a\":\"line1\\nline2\"}", "Mcp-Param-A: =?base64?bGluZTEKbGluZTI=?=\n");
    check(schema, "{\"a\":\"=?base64?literal?=\"}",
          "Mcp-Param-A: =?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=\n");
    check(schema, "{\"a\":\"\"}", "Mcp-Param-A: \n");
}

TEST(other_values)
{
    const char *schema = SCHEMA(TEXT("a", "A") "," TEXT("\\u0062", "B") ",\"c\":{}");

    check(schema, "{\"a\":42.0,\"b\":true,\"c\":1}", "Mcp-Param-A: 42\nMcp-Param-B: true\n");
    check(schema, "{\"a\":null,\"b\":[1],\"x\":2}", "");
    check(schema, "{\"a\":1.5}", "");
    check(SCHEMA("\"o\":" SCHEMA(TEXT("a", "Deep"))), "{\"o\":{\"a\":\"x\"}}",
          "Mcp-Param-Deep: x\n");
}

static void check_valid(const char *schema, bool want)
{
    if (!CHECK_INT(mcp_mirror_valid(str_of(schema)), want))
        fprintf(stderr, "    %s\n", schema);
}

TEST(the_rules_of_a_schema)
{
    check_valid("{}", true);
    check_valid(SCHEMA(TEXT("a", "A") "," TEXT("b", "B")), true);
    check_valid(SCHEMA("\"o\":" SCHEMA(TEXT("a", "A"))), true);
    check_valid(SCHEMA("\"x-mcp-header\":{\"type\":\"string\"}"), true);
    check_valid(SCHEMA(TEXT("a", "")), false);
    check_valid(SCHEMA(TEXT("a", "a b")), false);
    check_valid(SCHEMA(TEXT("a", "a:b")), false);
    check_valid(SCHEMA(TEXT("a", "é")), false);
    check_valid(SCHEMA(TEXT("a", "a\\u0000")), false);
    check_valid(SCHEMA(TEXT("a", "Same") "," TEXT("b", "sAME")), false);
    check_valid(SCHEMA("\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}"), false);
    check_valid(SCHEMA("\"a\":{\"type\":\"string\",\"x-mcp-header\":5}"), false);
    check_valid("{\"x-mcp-header\":\"A\",\"type\":\"string\"}", false);
    check_valid(SCHEMA("\"a\":{\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}"), false);
    check_valid("{\"anyOf\":[" SCHEMA(TEXT("a", "A")) "]}", false);
}
