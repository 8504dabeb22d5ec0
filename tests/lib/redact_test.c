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
    check("AI"
          "za" X40,
          "[redacted google-key]");
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
    check_stays("glpat-....................");
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

#define MII "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"

TEST(private_keys_in_lines_with_something_before_them)
{
    check("     1→" BEGIN "\n     2→" MII "\n     3→" X20 "=\n     4→" END "\n     5→x",
          "     1→[redacted private-key]\n     5→x");
    check("11:" BEGIN "\n12:" MII "\n13:" END, "11:[redacted private-key]");
    check("> " BEGIN "\n> " MII "\n> " END, "> [redacted private-key]");
    check("| " BEGIN " |\n| " MII " |\n| " END " |", "| [redacted private-key] |");
    check("k = \"" BEGIN "\\n\" +\n  \"" MII "\\n\" +\n  \"" END "\";",
          "k = \"[redacted private-key]\";");
    check("-----BEGIN PGP "
          "PRIVATE KEY BLOCK-----\nVersion: GnuPG v2.0.22 (GNU/Linux)\n\n" MII
          "\n=aB3d\n-----END PGP "
          "PRIVATE KEY BLOCK-----",
          "[redacted private-key]");
    /* without an end */
    check("1→" BEGIN "\n2→" MII "\n3→" MII "\n4→aB3=\nThen the file ended.",
          "1→[redacted private-key]\nThen the file ended.");
    check("> " BEGIN "\n> Version: GnuPG v2.0.22 (GNU/Linux)\n> \n> " MII "\n\nWords follow.",
          "> [redacted private-key]\n\nWords follow.");
    check("A: " BEGIN "\n" MII "\nB: " BEGIN "\n" MII "\n" END "\n",
          "A: [redacted private-key]\nB: [redacted private-key]\n");

    check_stays("if (starts(s, \"" BEGIN "\")) return thisIsNoKeyButTheNameOfAFunction(s);\n"
                "if (ends(s, \"" END "\")) return 0;");
    check_stays(BEGIN "\nis how it begins, and aB3dE6gH9kaB3dE6gH9kx is a word in a sentence.");
}

#define GHP                                                                                        \
    "ghp"                                                                                          \
    "_" X20 X10 "abcdef"
#define RED "[redacted github-token]"

TEST(tokens_behind_escapes)
{
    check("\033[32m" GHP "\033[0m", "\033[32m" RED "\033[0m");
    check("\033[1;32m" GHP, "\033[1;32m" RED);
    check("\\u001b[32m" GHP, "\\u001b[32m" RED);
    check("\\033[m" GHP, "\\033[m" RED);
    check("\\x1b" GHP " \\t" GHP " \\0" GHP, "\\x1b" RED " \\t" RED " \\0" RED);
    check("\\u00e9" GHP, "\\u00e9" RED);
    check("key\\u003dAI"
          "za" X20 X10 "abcde",
          "key\\u003d[redacted google-key]");
    check("token%3D" GHP " %253d" GHP, "token%3D" RED " %253d" RED);
    check("Bearer%20sk-"
          "proj-" X40 " q=%20sk-"
          "proj-" X40,
          "Bearer%20[redacted bearer-token] q=%20[redacted api-key]");
    check("token_" GHP " --key-" GHP " __" GHP, "token_" RED " --key-" RED " __" RED);
    check("a%20eyJhbGciOiJIUzI1NiJ9"
          ".eyJzdWIiOiIxMjM0In0"
          "." X20,
          "a%20[redacted jwt]");

    check_stays("x" GHP);
    check_stays("disk-" X40 " my_task-" X40 " 3D" GHP " u00e9" GHP);
}

TEST(shapes_of_more_services)
{
    check("xap"
          "p-1-A0123456789-1234567890123-" X40,
          "[redacted slack-token]");
    check("xox"
          "c-1234567890-" X20 " xox"
          "d-" X20 "%2F" X20 "%3D xox"
          "e.xox"
          "p-1-" X40,
          "[redacted slack-token] [redacted slack-token] [redacted slack-token]");
    check("https://hooks.slack.com/"
          "services/T01234567/B01234567/" X20 "abcd.",
          "https://[redacted slack-webhook].");
    check("gl"
          "rt-" X20 " gl"
          "dt-" X20,
          "[redacted gitlab-token] [redacted gitlab-token]");
    check("ya"
          "29.a0" X20 "-_" X20 " GOC"
          "SPX-" X20 "_" X10,
          "[redacted google-key] [redacted google-key]");
    check("xa"
          "i-" X40 X40 " pp"
          "lx-" X40 X10 " nva"
          "pi-" X20 "_" X40,
          "[redacted api-key] [redacted api-key] [redacted api-key]");
    check("cs"
          "k-" X40 "abcdefgh r8"
          "_" X40 " fw"
          "_" X20 "abcd lsv2"
          "_pt_0123456789abcdef0123456789abcdef_0123456789",
          "[redacted api-key] [redacted api-key] [redacted api-key] [redacted api-key]");
    check("sk"
          "_test_" X20 " rk"
          "_test_" X20 " whs"
          "ec_" X20 "/" X10 "+a=",
          "[redacted api-key] [redacted api-key] [redacted api-key]");
    check("S"
          "G." X20 "-a." X40 "_bc do"
          "p_v1_" X40 X20 "abcd",
          "[redacted api-key] [redacted api-key]");
    check("https://api.telegram.org/bot123456789:AA" X20 X10 "_-c/getMe",
          "https://api.telegram.org/bot123456789:[redacted telegram-token]/getMe");
    check("eyJhbGciOiJSU0EtT0FFUCJ9"
          "." X40 "." X10 "abcdef." X20 "." X20 "ab!",
          "[redacted jwt]!");
    check("eyJhbGciOiJkaXIifQ"
          ".." X10 "abcdef." X20 "." X20 "ab",
          "[redacted jwt]");

    check_stays(
        "xai-org/grok-1 xapp-store-of-long-names-and-words fw_printenv fw_update_partition");
    check_stays("SG.Collections.Generic.Dictionary.Of.Names.And.Others.That.Are.Long");
    check_stays("pplx-embed-context-models-with-a-long-name-and-no-key nvapi-of-the-driver");
    check_stays("r8_is_a_register csk-of-a-name ya29.py GOCSPX- hooks.slack.com/services/T/B/x");
    check_stays("ratio 1234567:AA and 12:AA" X40);
    check_stays("eyJhbGciOiJkaXIifQ.a.b.c.d");
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"

TEST(credentials_in_headers)
{
    check("Bearer " LETTERS, "Bearer [redacted bearer-token]");
    check("Bearer\t" X20 " bearer%20" X20,
          "Bearer\t[redacted bearer-token] bearer%20[redacted bearer-token]");
    check("Bearer\\t" X20, "Bearer\\t[redacted bearer-token]");
    check("Authorization: Basic dXNlcjpodW50ZXIy\n",
          "Authorization: Basic [redacted basic-auth]\n");
    check("\"Authorization\": \"Basic dXNlcjpwYXNzd29yZA==\"",
          "\"Authorization\": \"Basic [redacted basic-auth]\"");
    check("Basic%20Ym9iOnDDpHNzd29yZA== basic\tdXNlcjpodW50ZXIy",
          "Basic%20[redacted basic-auth] basic\t[redacted basic-auth]");
    check("x-api-key: " X20, "x-api-key: [redacted api-key]");
    check("-H 'X-API-Key:" X20 "'", "-H 'X-API-Key:[redacted api-key]'");
    check("{\\\"x-api-key\\\": \\\"" X20 "\\\"}",
          "{\\\"x-api-key\\\": \\\"[redacted api-key]\\\"}");
    check("headers['api-key'] = '" X20 "'", "headers['api-key'] = '[redacted api-key]'");
    check("set(\"x-goog-api-key\", \"" LETTERS "\")",
          "set(\"x-goog-api-key\", \"[redacted api-key]\")");
    check("x-api-key: 0123abcd-0123-4567-89ab-0123456789ab\n", "x-api-key: [redacted api-key]\n");
    check("Authorization: Token " X40, "Authorization: Token [redacted api-key]");
    check("Authorization: " X40, "Authorization: [redacted api-key]");
    check("PRIVATE-TOKEN: " X20, "PRIVATE-TOKEN: [redacted api-key]");
    check("x-api-key: gsk"
          "_" X40 X10 "ab",
          "x-api-key: [redacted api-key]");

    check_stays("Bearer\nauthentication with Bearer tokenAuthenticationProvider");
    check_stays("Authorization: Basic authentication. Basic understanding, Basic YWJjZGVmZ2hp");
    check_stays("Basic information: see it. basic dXNl basic internationalization");
    check_stays("x-api-key: YOUR_API_KEY x-api-key: $KEY x-api-key, authorization and others");
    check_stays(
        "\"x-api-key\": process.env.ANTHROPIC_API_KEY, \"api-key\": {\"type\": \"string\"}");
    check_stays("authorization: none Authorization: Bearer $TOKEN_1 authorization server");
    check_stays("max-api-key: " X20);
}

TEST(passwords_in_urls)
{
#define PW(password) "postgres://bob:" password "@db/x"
#define CLEAN PW("[redacted password]")
    check(PW("%40hunter2"), CLEAN);
    check(PW("$ecret1"), CLEAN);
    check(PW("*star1"), CLEAN);
    check(PW("a,b"), CLEAN);
    check(PW("a(b)c"), CLEAN);
    check(PW("a#b"), CLEAN);
    check(PW("#1;2"), CLEAN);
    check(PW("hunter2@secret"), CLEAN);
    check(PW("12345"), CLEAN);
    check(PW("${A}bc"), CLEAN);
    check("mongodb://u:p1@h1:27017,h2:27017/db",
          "mongodb://u:[redacted password]@h1:27017,h2:27017/db");
    check("https://bob:pw@host,", "https://bob:[redacted password]@host,");
    check("\"url\":\"postgres:\\/\\/bob:pw@db\\/x\"",
          "\"url\":\"postgres:\\/\\/bob:[redacted password]@db\\/x\"");
    check("https://" X40 "@github.com/a/b", "https://[redacted password]@github.com/a/b");
    check("https://" X40 ":x-oauth-basic@github.com", "https://[redacted password]@github.com");
    check("https://" GHP "@github.com", "https://" RED "@github.com");
    check("https://" GHP ":x-oauth-basic@github.com", "https://" RED "@github.com");
    check("https://oauth2:" GHP "@github.com", "https://oauth2:[redacted password]@github.com");

    check_stays(PW("$PASSWORD") PW("${PASSWORD}") PW("***") PW("{password}") PW("{{ password }}"));
    check_stays(PW("%s") PW("%(password)s") PW("%PASSWORD%") PW("#{password}") PW("$(pass)"));
    check_stays(PW("${DB_PASS:-none}") PW("<password>") PW("&lt;password&gt;") PW("$1")
                    PW("[redacted password]"));
    check_stays("https://h:8080?mail=me@x.org https://h:8080#me@x.org (https://h:8080),me@x.org");
    check_stays("https://h?next=user:me@x.org https://h#a:b@c ssh://git@host:22/x@y");
    check_stays("ssh://deploy-user-of-the-long-name@host http://[::1]:8080/");
}

TEST(what_is_no_secret_stays)
{
    check_stays(
        "commit 8afda72c0ffee1234567890abcdef1234567890a, merge 1f2e3d4c5b6a79880123456789abcdef");
    check_stays(
        "{\"id\":\"0192d1c0-7e5a-7bbb-8ccc-0123456789ab\",\"session_id\":\"s-0192d1c07e5a7bbb\"}");
    check_stays(
        "toolu_01A09q90qw90lq917835lq9 call_0123456789abcdefABCDEFGH msg_013Zva2CMHLNnXjNJJKqJ2EF");
    check_stays(
        "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= data:image/png;base64,iVBORw0KGgo=");
    check_stays("The bearer of the basic idea: x-api-key headers are sent, see https://h/x?a=b@c.");
    check_stays(
        "for (i = 0; i < n; i++) sk_test_function(); /* whsec_ of no length */ hf_hub_download");
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
