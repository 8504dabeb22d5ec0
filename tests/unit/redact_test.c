#include "chathist/convert/redact.h"

#include "chathist/base/json.h"
#include "test.h"

/* Secrets are written in two pieces, so that nobody takes this file for a leak. */

static struct redactor *redactor(void)
{
    struct err e = ERR_INIT;
    struct redactor *r = redactor_new(&e);

    CHECK_STR(err_text(&e), "");
    return r;
}

static void check(const char *text, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct redactor *r = redactor();
    bool found = redact_text(r, str_of(text), &out) > 0;

    CHECK_STR(buf_c(&out), want);
    CHECK_INT(found, strcmp(text, want) != 0);
    buf_release(&out);
    redactor_free(r);
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

#define HEX32 "0123456789abcdef0123456789abcdef"
#define UPPER29 "0123456789ABCDEFGHJKLMNPQRSTU"

TEST(tokens_of_more_services)
{
    check("glp"
          "tt-" X20 " x",
          "[redacted gitlab-token] x");
    check("glcb"
          "t-" X20 " x",
          "[redacted gitlab-token] x");
    check("glf"
          "t-" X20 " x",
          "[redacted gitlab-token] x");
    check("gloa"
          "s-" X20 " x",
          "[redacted gitlab-token] x");
    check("dckr"
          "_pat_" X20 " x",
          "[redacted api-key] x");
    check("NR"
          "AK-"
          "0123456789ABCDEFGHIJKLMNOPQ"
          " x",
          "[redacted api-key] x");
    check("sntr"
          "ys_" X40 " x",
          "[redacted api-key] x");
    check("lin"
          "_api_" X40 " x",
          "[redacted api-key] x");
    check("nt"
          "n_" X40 " x",
          "[redacted api-key] x");
    check("shp"
          "at_" HEX32 " x",
          "[redacted api-key] x");
    check("shp"
          "ss_" HEX32 " x",
          "[redacted api-key] x");
    check("sq0"
          "atp-" X20 "ab"
          " x",
          "[redacted api-key] x");
    check("hv"
          "s." X40 " x",
          "[redacted api-key] x");
    check("gl"
          "sa_" X40 " x",
          "[redacted api-key] x");
    check("AGE-SECRET"
          "-KEY-1" UPPER29 UPPER29 " x",
          "[redacted api-key] x");
    check("sb"
          "p_" HEX32 "01234567"
          " x",
          "[redacted api-key] x");
    check("pscale"
          "_tkn_" X40 " x",
          "[redacted api-key] x");
    check("fi"
          "gd_" X40 " x",
          "[redacted api-key] x");
    check("da"
          "pi" HEX32 " x",
          "[redacted api-key] x");
    check("dp."
          "pt." X40 " x",
          "[redacted api-key] x");
    check("ATA"
          "TT3x" X40 X20 " x",
          "[redacted api-key] x");
    check("ji"
          "na_" X40 " x",
          "[redacted api-key] x");
    check("tv"
          "ly-" X20 " x",
          "[redacted api-key] x");
    check("discord.com"
          "/api/webhooks/"
          "123456789012345678/" X40 X20 " x",
          "[redacted discord-webhook] x");
    check_stays("ntn_api_version figd_plugin_for_a_design "
                "jina_embeddings_v2_base_code_and_more_of_its_name");
    check_stays("dapi0123456789abcdef hvs.example sbp_0123 lin_api_key "
                "glsa_name_of_a_function_that_is_long");
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
    check("max-api-key: " X20, "max-api-key: [redacted secret]");
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

/* One secret for each form; the value is written apart from its name or prefix. */
TEST(values_with_a_name)
{
#define SECRET "[redacted secret]"
#define PASSWORD "[redacted password]"
#define AWS                                                                                        \
    "wJa/rXU"                                                                                      \
    "tnF+MI/K7MDENG/bPxRfi"                                                                        \
    "CY9pL2mQx4Za"
    check("AWS_SECRET_ACCESS_KEY=" AWS "\n", "AWS_SECRET_ACCESS_KEY=" SECRET "\n");
    check("aws_secret_access_key = " AWS, "aws_secret_access_key = " SECRET);
    check("export AWS_SESSION_TOKEN=\"" X40 "//" X20 "==\"",
          "export AWS_SESSION_TOKEN=\"" SECRET "\"");
    check("MISTRAL_API_KEY=" X20, "MISTRAL_API_KEY=" SECRET);
    check("VERCEL_TOKEN: " X20 ",", "VERCEL_TOKEN: " SECRET ",");
    check("secret " X20 " follows", "secret " SECRET " follows");
    check("{\"client_secret\": \"" X20 "\", \"apiKey\":\"" X20 "\"}",
          "{\"client_secret\": \"" SECRET "\", \"apiKey\":\"" SECRET "\"}");
    check("{\\\"refreshToken\\\":\\\"" X20 "\\\"}", "{\\\"refreshToken\\\":\\\"" SECRET "\\\"}");
    check("AccountName=a;AccountKey=" X40 X40 "+/aB3d==;E=1",
          "AccountName=a;AccountKey=" SECRET ";E=1");
    check("https://h/x?sv=1&sig=" X40 "%2B%3D&se=2", "https://h/x?sv=1&sig=" SECRET "&se=2");
    check("https://h/?api_key=" X20 "&b=1", "https://h/?api_key=" SECRET "&b=1");
    check("https://h/?key=" X20, "https://h/?key=" SECRET);
    check("https://h/?a=1&access_token=" X20, "https://h/?a=1&access_token=" SECRET);
    check("//registry.npmjs.org/:_authToken=" X20, "//registry.npmjs.org/:_authToken=" SECRET);
    check("X-Auth-Key: " X20, "X-Auth-Key: " SECRET);
    check("_auth = " X20 "==", "_auth = " SECRET);
    check("--token " X20 " -v", "--token " SECRET " -v");
    check("Cookie: sessionid=" X20 "; csrf=1", "Cookie: [redacted cookie]");
    check("-H 'Cookie: sid=" X20 "' x", "-H 'Cookie: [redacted cookie]' x");
    check("set-cookie: sid=" X20 "; Path=/\nx", "set-cookie: [redacted cookie]\nx");
    check("credentials: " X20, "credentials: " SECRET);
}

TEST(passwords_with_a_name)
{
    check("DB_PASSWORD=swordfish\n", "DB_PASSWORD=" PASSWORD "\n");
    check("password: hunter2", "password: " PASSWORD);
    check("{\"password\":\"tr0ub4dor&3\"}", "{\"password\":\"" PASSWORD "\"}");
    check("{\\\"passwd\\\": \\\"swordfish\\\"}", "{\\\"passwd\\\": \\\"" PASSWORD "\\\"}");
    check("password = 'correcthorse'", "password = '" PASSWORD "'");
    check("curl -u bob:hunter2 https://h", "curl -u bob:" PASSWORD " https://h");
    check("curl -s --user 'bob:hunter2' https://h", "curl -s --user 'bob:" PASSWORD "' https://h");
    check("mysql -h db -u root -phunter2 shop", "mysql -h db -u root -p" PASSWORD " shop");
    check("mysqldump -p'hunter2' shop", "mysqldump -p'" PASSWORD "' shop");
    check("sshpass -p hunter2 ssh h", "sshpass -p " PASSWORD " ssh h");
    check("x --password hunter2", "x --password " PASSWORD);
    check("jdbc:postgresql://h/db?user=bob&password=swordfish&ssl=1",
          "jdbc:postgresql://h/db?user=bob&password=" PASSWORD "&ssl=1");
    check("Driver={X};Server=h;Uid=bob;Pwd=hunter2;",
          "Driver={X};Server=h;Uid=bob;Pwd=" PASSWORD ";");
    check("host=h user=bob password=swordfish dbname=x",
          "host=h user=bob password=" PASSWORD " dbname=x");
    check("machine h login bob password swordfish\n",
          "machine h login bob password " PASSWORD "\n");
    check("machine h\n  login bob\n  password hunter2\n",
          "machine h\n  login bob\n  password " PASSWORD "\n");
    check("[Interface]\nPrivateKey = " X40 "aB3=\n",
          "[Interface]\nPrivateKey = [redacted private-key]\n");
    check("Private-Lines: 2\n" X40 X20 "aB3d\n" X20 "==\nPrivate-MAC: 01",
          "Private-Lines: 2\n[redacted private-key]Private-MAC: 01");
    check("bob:$2y$10$" X40 X10 "aB3:", "bob:[redacted password-hash]:");
    check("root:$6$" X10 "$" X40 X40 "aB3dE6:1", "root:[redacted password-hash]:1");
    check("$argon2id$v=19$m=65536,t=3,p=4$" X20 "$" X40, "[redacted password-hash]");
}

TEST(more_keys_by_their_form)
{
    check(X10 "aB3d.atla"
              "sv1." X40 X20 "abc",
          "[redacted api-key]");
    check("secret is aB3"
          "8Q~" X20 X10 "abcd now",
          "secret is [redacted api-key] now");
    check("AK"
          "IAQWERTZUIOP234567",
          "[redacted aws-key]");
}

TEST(invisible_characters_in_a_key)
{
    check("a ghp"
          "_" X20 "\u200b" X10 "abcdef\u2060 b",
          "a [redacted github-token]\u2060 b");
    check("\u00adgh"
          "\u00adp_\ufeff" X20 X10 "abc\u200ddef",
          "\u00ad[redacted github-token]");
    check("DB_PASS\u200bWORD=hun\u2060ter2", "DB_PASS\u200bWORD=[redacted password]");
    check_stays("no\u00adthing \u200b\u2060 se\u200dcret \ufeff");
}

/* A symbol at the beginning makes no placeholder of a password. */
TEST(passwords_that_begin_with_a_symbol)
{
#define RED_PW "[redacted password]"
    check("password=#hunter2 x", "password=" RED_PW " x");
    check("password=#abcdefgh", "password=" RED_PW);
    check("password=@hunter2", "password=" RED_PW);
    check("password=(hunter2", "password=" RED_PW);
    check("password=[hunter2", "password=" RED_PW);
    check("password=*hunter2", "password=" RED_PW);
    check("\"password\": \"#hunter2\"", "\"password\": \"" RED_PW "\"");
    check("\"password\": \"@hunter2\"", "\"password\": \"" RED_PW "\"");
    check("\"password\": \"(hunter2\"", "\"password\": \"" RED_PW "\"");
    check("\"password\": \"[hunter]2\"", "\"password\": \"" RED_PW "\"");
    check("\"password\": \"*hunter2\"", "\"password\": \"" RED_PW "\"");
    check("password: **hunter2**", "password: " RED_PW);
    check("client_secret=#" X20, "client_secret=[redacted secret]");
    check("api_key: \"@" X20 "\"", "api_key: \"[redacted secret]\"");
    check("mysql -u root -p'#hunter2' shop", "mysql -u root -p'" RED_PW "' shop");
    check("curl -u bob:*hunter2 h", "curl -u bob:" RED_PW " h");
    check_stays("password=#{password2} password=@{pass2} \"password\": \"#{db.password2}\"");
    check_stays("password=*** \"password\": \"********\" password: ****; **Password:** ask");
    check_stays("password: **required** \"password\": \"(none)\" \"password\": \"[hidden]\"");
    check_stays("password: # todo, password = @password, {password: \"#password\"}");
    check_stays("password=[redacted password] \"password\": \"[redacted password]\"");
    check_stays(
        "password = (char *)p2; pwd = *argv; password=[\"a1b2c3d4\"]; pwd = (getpwuid(0));");
    check_stays("android:password=\"@string/password_2\" --data password=@/tmp/file2");
}

TEST(placeholders_and_programs_stay)
{
    check_stays("AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    check_stays("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    check_stays("postgres://user:password@localhost/db mysql://root:xxx@h redis://u:...@h");
    check_stays("API_KEY=<your key> API_KEY=your-api-key-here-123 API_KEY=$VAR API_KEY=${VAR}");
    check_stays("API_KEY=xxx API_KEY=xxxxxxxxxxxxxxxx1 API_KEY=... TOKEN=***");
    check_stays("API_KEY=%s \"password\": \"{{ password }}\" password: $PASSWORD");
    check_stays("password=changeme1 password: <password> \"password\": \"your password\"");
    check_stays("password: string; password: str = None, password: Option<String>");
    check_stays("\"password\": \"string\", \"token\": null, \"secret\": true, \"password\": \"\"");
    check_stays("token = next_token(); token = lexer.next2(); key = make_key_v2(a);");
    check_stays("password = os.environ[\"DB_PASSWORD\"]; password = getpass(prompt)");
    check_stays("login(user, password=password, token=token, secret=self.secret2)");
    check_stays("const token = await getToken(user); if (token == NULL) return;");
    check_stays("password = config.db2.password; password := cfg.Password");
    check_stays("The password: it must have digits. Your password is wrong. Secret: none.");
    check_stays("max_tokens: 4096, \"total_tokens\": 123456, key=value, \"key\": \"a1b2c3d4e5f6\"");
    check_stays("public_key=" X20 " primary_key: user_2 monkey: " X20);
    check_stays("cookie: none, Cookie: $COOKIE, Cookie: session=<session>");
    check_stays("curl -u $USER:$PASS h; curl -u user:password h; mysql -u root -p shop");
    check_stays("struct token *token = &tokens[i]; enum token_kind auth = AUTH_NONE;");
    check_stays("author: Bob1234567 Smith, authentication: oauth2, authority");
    check_stays("password-protected, passwords: many, pwd=/home/bob");
    check_stays("token (string, required): the key; secret: str | None = None");
}

/* A text that makes each rule start everywhere takes a time that grows with its length only. */
TEST(hostile_text)
{
    static const char *const parts[] = {
        "eyJ-",
        "sk-",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "curl curl -u ",
        "glpat-.",
        "password=a",
        "password=*",
        "password=(a ",
        "Bearer aaaa",
        "token: a_",
        "secret ",
        "mysql -u ",
        "login a ",
        "cookie=a",
        "$6$aaaa",
        "Basic aaaa",
        "a1234567890",
        "\u200bsk-\u00ad",
        "aaaa.",
        "8Q~",
        "key key ",
        "-----BEGIN PRIVATE KEY-----\n-----END ",
        "https://aaaaaaaaaaaaaaaaaaaaa1",
        "\\n\\n",
    };
    struct redactor *r = redactor();
    struct buf text = BUF_INIT(SIZE_MAX), out = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buf_clear(&text);
        buf_clear(&out);
        while (text.len < 200000)
            buf_add_c(&text, parts[i]);
        redact_text(r, buf_str(&text), &out);
        CHECK(!str_find(buf_str(&out), STR("[redacted text]")));
    }
    buf_release(&text);
    buf_release(&out);
    redactor_free(r);
}

static void check_json(const char *json, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct redactor *r = redactor();
    struct str value;

    redact_json(r, str_of(json), &out);
    CHECK_STR(buf_c(&out), want);
    CHECK(json_check(buf_str(&out), &value, NULL));
    buf_release(&out);
    redactor_free(r);
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
