#include "port/redact.h"

#include "base/json.h"
#include "test.h"

/* Secrets are written in two pieces, so that nobody takes this file for a leak. */

static void check(const char *text, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    bool found = redact_text(str_of(text), &out);

    CHECK_STR(buf_c(&out), want);
    CHECK_INT(found, strcmp(text, want) != 0);
    buf_release(&out);
}

/* Near misses stay. */
static void check_stays(const char *text)
{
    check(text, text);
}

#define X10 "aB3dE6gH9k"
#define X20 X10 X10
#define X40 X20 X20

TEST(keys_of_model_servers)
{
    check("sk-"
          "ant-api03-" X40 "_x-",
          "[redacted anthropic-key]");
    check("key=sk-" X40 ".", "key=[redacted api-key].");
    check("sk-"
          "proj-" X20 "-" X20 "\n",
          "[redacted api-key]\n");
    check("sk-"
          "or-v1-0123456789abcdef0123456789abcdef",
          "[redacted api-key]");
    check("(gsk"
          "_" X40 X10 "ab)",
          "([redacted api-key])");
    check("sk"
          "_live_" X20,
          "[redacted api-key]");
    check("AI"
          "za0123456789-bcdefghijABCDEFGHIJ_1234",
          "[redacted google-key]");
    check("a=sk-" X40 " b=sk-" X40, "a=[redacted api-key] b=[redacted api-key]");

    check_stays("sk-");
    check_stays("sk-toggleable-content-arrow-of-a-style-sheet");
    check_stays("sk-short1");
    check_stays("task-" X40);
    check_stays("xsk-" X40);
    check_stays("sk-learn-1.2.3-and-more-of-it-here");
    check_stays("AIza" X20);
    check_stays("AIza" X40); /* too long */
}

TEST(tokens_of_services)
{
    check("ghp"
          "_" X20 X10 "abcdef",
          "[redacted github-token]");
    check("github"
          "_pat_" X20 "_" X40,
          "[redacted github-token]");
    check("glpat"
          "-" X20,
          "[redacted gitlab-token]");
    check("AKI"
          "AABCDEFGHIJ234567",
          "[redacted aws-key]");
    check("xox"
          "b-123456789012-" X20,
          "[redacted slack-token]");
    check("-ghp"
          "_" X40 "\n-x",
          "-[redacted github-token]\n-x");

    check_stays("ghp_short");
    check_stays("github_pattern_" X40);
    check_stays("AKIAABCDEFGHIJ2345678"); /* a longer word */
    check_stays("AKIAabcdefghij234567");
    check_stays("xoxb-not-a-token-but-words-here");
    check_stays("glpat-");
}

TEST(tokens_by_their_form)
{
    check("eyJhbGciOiJIUzI1NiJ9"
          ".eyJzdWIiOiIxMjM0In0"
          "." X20,
          "[redacted jwt]");
    check("Authorization: Bearer " X20, "Authorization: Bearer [redacted bearer-token]");
    check("authorization: bearer " X20 "==\"", "authorization: bearer [redacted bearer-token]\"");
    check("postgres://user:hunter2@host/db", "postgres://user:[redacted password]@host/db");
    check("https://:pw@h", "https://:[redacted password]@h");

    check_stays("eyJhbGciOiJIUzI1NiJ9");
    check_stays("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0");
    check_stays("Bearer authentication-and-authorization");
    check_stays("Bearer $TOKEN");
    check_stays("bearer of bad news");
    check_stays("http://host:8080/path@x");
    check_stays("http://host:8080");
    check_stays("https://user@host");
    check_stays("https://user:$PASSWORD@host https://user:{password}@host https://user:***@host");
    check_stays("postgres://user:[redacted password]@host/db");
    check_stays("see https://example.com: mail me@example.com");
    check_stays("");
}

TEST(private_keys)
{
#define BEGIN                                                                                      \
    "-----BEGIN RSA "                                                                              \
    "PRIVATE KEY-----"
#define END                                                                                        \
    "-----END RSA "                                                                                \
    "PRIVATE KEY-----"
    check("a\n" BEGIN "\n" X40 "\n" X20 "==\n" END "\nb", "a\n[redacted private-key]\nb");
    check("\"" BEGIN "\\n" X40 "\\n" END "\\n\"", "\"[redacted private-key]\\n\"");
    check(BEGIN "\nProc-Type: 4,ENCRYPTED\n\n" X40 "\n" END, "[redacted private-key]");
    check(BEGIN "\n" X40 "\n" X20, "[redacted private-key]");
    check("-----BEGIN "
          "PRIVATE KEY-----\n" X40 "\n-----END "
          "PRIVATE KEY-----",
          "[redacted private-key]");

    check_stays("It begins with " BEGIN " and ends with " END ".");
    check_stays(BEGIN "\n...\n" END);
    check_stays("-----BEGIN PUBLIC KEY-----\n" X40 "\n-----END PUBLIC KEY-----");
    check_stays("-----BEGIN CERTIFICATE-----\n" X40 "\n-----END CERTIFICATE-----");
    check_stays("----------");
}

static void check_json(const char *json, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct str value;

    redact_json(str_of(json), &out);
    CHECK_STR(buf_c(&out), want);
    CHECK(json_check(buf_str(&out), &value, NULL));
    buf_release(&out);
}

TEST(json_stays_valid_and_other_strings_as_they_were)
{
    check_json("{ \"a\\u0062\" : [1e9, \"\\u00e9\\/\", \"x \\\"sk-" X40 "\\\"\"] }",
               "{ \"a\\u0062\" : [1e9, \"\\u00e9\\/\", \"x \\\"[redacted api-key]\\\"\"] }");
    check_json("{\"sk-" X40 "\":\"\"}", "{\"[redacted api-key]\":\"\"}");
    check_json("\"\\u0073k-" X40 "\"", "\"[redacted api-key]\"");
    check_json("\"a\\nsk-" X40 "\\u0000\"", "\"a\\n[redacted api-key]\\u0000\"");
    /* JSON in JSON */
    check_json("\"{\\\"a\\\":\\\"b\\\\nsk-" X40 "\\\"}\"",
               "\"{\\\"a\\\":\\\"b\\\\n[redacted api-key]\\\"}\"");
    check_json("\"\"", "\"\"");
    check_json("17", "17");
}
