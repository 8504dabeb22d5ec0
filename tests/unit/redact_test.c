#include "chathist/convert/redact.h"

#include "chathist/base/json.h"
#include "test.h"

static struct redactor *redactor(void)
{
    struct err e = ERR_INIT;
    struct redactor *r = redactor_new(&e);

    CHECK_STR(err_text(&e), "");
    return r;
}

#define X10 "aB3dE6gH9k"
#define X20 X10 X10
#define X40 X20 X20

#define HEX32 "0123456789abcdef0123456789abcdef"
#define UPPER29 "0123456789ABCDEFGHJKLMNPQRSTU"
#define BEGIN                                                                                      \
    "-----BEGIN RSA "                                                                              \
    "PRIVATE KEY-----"
#define END                                                                                        \
    "-----END RSA "                                                                                \
    "PRIVATE KEY-----"
#define MII "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
#define GHP                                                                                        \
    "ghp"                                                                                          \
    "_" X20 X10 "abcdef"
#define RED "[redacted github-token]"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"
#define PW(password) "postgres://bob:" password "@db/x"
#define CLEAN PW("[redacted password]")
#define SECRET "[redacted secret]"
#define PASSWORD "[redacted password]"
#define AWS                                                                                        \
    "wJa/rXU"                                                                                      \
    "tnF+MI/K7MDENG/bPxRfi"                                                                        \
    "CY9pL2mQx4Za"
#define RED_PW "[redacted password]"

/* Each case is a text and the result, which is NULL if the text stays. A `^` in a text stands for
 * nothing: it divides a secret, so that nobody takes this file for a leak. */
static const char *const cases[][2] = {
    /* keys of model servers */
    {"sk-^ant-api03-" X40 "_x-", "[redacted anthropic-key]"},
    {"key=sk-" X40 ".", "key=[redacted api-key]."},
    {"sk-^proj-" X20 "-" X20 "\n", "[redacted api-key]\n"},
    {"sk-^or-v1-0123456789abcdef0123456789abcdef", "[redacted api-key]"},
    {"(gsk^_" X40 X10 "ab)", "([redacted api-key])"},
    {"sk^_live_" X20, "[redacted api-key]"},
    {"AI^za0123456789-bcdefghijABCDEFGHIJ_1234", "[redacted google-key]"},
    {"a=sk-" X40 " b=sk-" X40, "a=[redacted api-key] b=[redacted api-key]"},
    {"sk-"},
    {"sk-toggleable-content-arrow-of-a-style-sheet"},
    {"sk-short1"},
    {"task-" X40},
    {"xsk-" X40},
    {"sk-learn-1.2.3-and-more-of-it-here"},
    {"AIza" X20},
    {"AI^za" X40, "[redacted google-key]"},
    /* tokens of services */
    {"ghp^_" X20 X10 "abcdef", "[redacted github-token]"},
    {"github^_pat_" X20 "_" X40, "[redacted github-token]"},
    {"glpat^-" X20, "[redacted gitlab-token]"},
    {"AKI^AABCDEFGHIJ234567", "[redacted aws-key]"},
    {"xox^b-123456789012-" X20, "[redacted slack-token]"},
    {"-ghp^_" X40 "\n-x", "-[redacted github-token]\n-x"},
    {"ghp_short"},
    {"github_pattern_" X40},
    {"AKIAABCDEFGHIJ2345678"}, /* a longer word */
    {"AKIAabcdefghij234567"},
    {"xoxb-not-a-token-but-words-here"},
    {"glpat-"},
    {"glpat-...................."},
    /* tokens of more services */
    {"glp^tt-" X20 " x", "[redacted gitlab-token] x"},
    {"glcb^t-" X20 " x", "[redacted gitlab-token] x"},
    {"glf^t-" X20 " x", "[redacted gitlab-token] x"},
    {"gloa^s-" X20 " x", "[redacted gitlab-token] x"},
    {"dckr^_pat_" X20 " x", "[redacted api-key] x"},
    {"NR^AK-^0123456789ABCDEFGHIJKLMNOPQ x", "[redacted api-key] x"},
    {"sntr^ys_" X40 " x", "[redacted api-key] x"},
    {"lin^_api_" X40 " x", "[redacted api-key] x"},
    {"nt^n_" X40 " x", "[redacted api-key] x"},
    {"shp^at_" HEX32 " x", "[redacted api-key] x"},
    {"shp^ss_" HEX32 " x", "[redacted api-key] x"},
    {"sq0^atp-" X20 "ab x", "[redacted api-key] x"},
    {"hv^s." X40 " x", "[redacted api-key] x"},
    {"gl^sa_" X40 " x", "[redacted api-key] x"},
    {"AGE-SECRET^-KEY-1" UPPER29 UPPER29 " x", "[redacted api-key] x"},
    {"sb^p_" HEX32 "01234567 x", "[redacted api-key] x"},
    {"pscale^_tkn_" X40 " x", "[redacted api-key] x"},
    {"fi^gd_" X40 " x", "[redacted api-key] x"},
    {"da^pi" HEX32 " x", "[redacted api-key] x"},
    {"dp.^pt." X40 " x", "[redacted api-key] x"},
    {"ATA^TT3x" X40 X20 " x", "[redacted api-key] x"},
    {"ji^na_" X40 " x", "[redacted api-key] x"},
    {"tv^ly-" X20 " x", "[redacted api-key] x"},
    {"discord.com^/api/webhooks/^123456789012345678/" X40 X20 " x", "[redacted discord-webhook] x"},
    {"ntn_api_version figd_plugin_for_a_design "
     "jina_embeddings_v2_base_code_and_more_of_its_name"},
    {"dapi0123456789abcdef hvs.example sbp_0123 lin_api_key "
     "glsa_name_of_a_function_that_is_long"},
    /* tokens by their form */
    {"eyJhbGciOiJIUzI1NiJ9^.eyJzdWIiOiIxMjM0In0^." X20, "[redacted jwt]"},
    {"Authorization: Bearer " X20, "Authorization: Bearer [redacted bearer-token]"},
    {"authorization: bearer " X20 "==\"", "authorization: bearer [redacted bearer-token]\""},
    {"postgres://user:hunter2@host/db", "postgres://user:[redacted password]@host/db"},
    {"https://:pw@h", "https://:[redacted password]@h"},
    {"eyJhbGciOiJIUzI1NiJ9"},
    {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0"},
    {"Bearer authentication-and-authorization"},
    {"Bearer $TOKEN"},
    {"bearer of bad news"},
    {"http://host:8080/path@x"},
    {"http://host:8080"},
    {"https://user@host"},
    {"postgres://user:[redacted password]@host/db"},
    {"see https://example.com: mail me@example.com"},
    {""},
    /* private keys */
    {"a\n" BEGIN "\n" X40 "\n" X20 "==\n" END "\nb", "a\n[redacted private-key]\nb"},
    {"\"" BEGIN "\\n" X40 "\\n" END "\\n\"", "\"[redacted private-key]\\n\""},
    {BEGIN "\nProc-Type: 4,ENCRYPTED\n\n" X40 "\n" END, "[redacted private-key]"},
    {BEGIN "\n" X40 "\n" X20, "[redacted private-key]"},
    {"-----BEGIN PRIVATE KEY-----\n" X40 "\n-----END PRIVATE KEY-----", "[redacted private-key]"},
    {"It begins with " BEGIN " and ends with " END "."},
    {BEGIN "\n...\n" END},
    {"-----BEGIN PUBLIC KEY-----\n" X40 "\n-----END PUBLIC KEY-----"},
    {"-----BEGIN CERTIFICATE-----\n" X40 "\n-----END CERTIFICATE-----"},
    {"----------"},
    /* private keys in lines with something before them */
    {"     1→" BEGIN "\n     2→" MII "\n     3→" X20 "=\n     4→" END "\n     5→x",
     "     1→[redacted private-key]\n     5→x"},
    {"11:" BEGIN "\n12:" MII "\n13:" END, "11:[redacted private-key]"},
    {"> " BEGIN "\n> " MII "\n> " END, "> [redacted private-key]"},
    {"| " BEGIN " |\n| " MII " |\n| " END " |", "| [redacted private-key] |"},
    {"k = \"" BEGIN "\\n\" +\n  \"" MII "\\n\" +\n  \"" END "\";",
     "k = \"[redacted private-key]\";"},
    {"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2.0.22 (GNU/Linux)\n\n" MII
     "\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----",
     "[redacted private-key]"},
    /* without an end */
    {"1→" BEGIN "\n2→" MII "\n3→" MII "\n4→aB3=\nThen the file ended.",
     "1→[redacted private-key]\nThen the file ended."},
    {"> " BEGIN "\n> Version: GnuPG v2.0.22 (GNU/Linux)\n> \n> " MII "\n\nWords follow.",
     "> [redacted private-key]\n\nWords follow."},
    {"A: " BEGIN "\n" MII "\nB: " BEGIN "\n" MII "\n" END "\n",
     "A: [redacted private-key]\nB: [redacted private-key]\n"},
    {"if (starts(s, \"" BEGIN
     "\")) return thisIsNoKeyButTheNameOfAFunction(s);\n^if (ends(s, \"" END "\")) return 0;"},
    {BEGIN "\nis how it begins, and aB3dE6gH9kaB3dE6gH9kx is a word in a sentence."},
    /* tokens behind escapes */
    {"\033[32m" GHP "\033[0m", "\033[32m" RED "\033[0m"},
    {"\033[1;32m" GHP, "\033[1;32m" RED},
    {"\\u001b[32m" GHP, "\\u001b[32m" RED},
    {"\\033[m" GHP, "\\033[m" RED},
    {"\\x1b" GHP " \\t" GHP " \\0" GHP, "\\x1b" RED " \\t" RED " \\0" RED},
    {"\\u00e9" GHP, "\\u00e9" RED},
    {"key\\u003dAI^za" X20 X10 "abcde", "key\\u003d[redacted google-key]"},
    {"token%3D" GHP " %253d" GHP, "token%3D" RED " %253d" RED},
    {"Bearer%20sk-^proj-" X40 " q=%20sk-^proj-" X40,
     "Bearer%20[redacted bearer-token] q=%20[redacted api-key]"},
    {"token_" GHP " --key-" GHP " __" GHP, "token_" RED " --key-" RED " __" RED},
    {"a%20eyJhbGciOiJIUzI1NiJ9^.eyJzdWIiOiIxMjM0In0^." X20, "a%20[redacted jwt]"},
    {"x" GHP},
    {"disk-" X40 " my_task-" X40 " 3D" GHP " u00e9" GHP},
    /* shapes of more services */
    {"xap^p-1-A0123456789-1234567890123-" X40, "[redacted slack-token]"},
    {"xox^c-1234567890-" X20 " xox^d-" X20 "%2F" X20 "%3D xox^e.xox^p-1-" X40,
     "[redacted slack-token] [redacted slack-token] [redacted slack-token]"},
    {"https://hooks.slack.com/^services/T01234567/B01234567/" X20 "abcd.",
     "https://[redacted slack-webhook]."},
    {"gl^rt-" X20 " gl^dt-" X20, "[redacted gitlab-token] [redacted gitlab-token]"},
    {"ya^29.a0" X20 "-_" X20 " GOC^SPX-" X20 "_" X10,
     "[redacted google-key] [redacted google-key]"},
    {"xa^i-" X40 X40 " pp^lx-" X40 X10 " nva^pi-" X20 "_" X40,
     "[redacted api-key] [redacted api-key] [redacted api-key]"},
    {"cs^k-" X40 "abcdefgh r8^_" X40 " fw^_" X20
     "abcd lsv2^_pt_0123456789abcdef0123456789abcdef_0123456789",
     "[redacted api-key] [redacted api-key] [redacted api-key] [redacted api-key]"},
    {"sk^_test_" X20 " rk^_test_" X20 " whs^ec_" X20 "/" X10 "+a=",
     "[redacted api-key] [redacted api-key] [redacted api-key]"},
    {"S^G." X20 "-a." X40 "_bc do^p_v1_" X40 X20 "abcd", "[redacted api-key] [redacted api-key]"},
    {"https://api.telegram.org/bot123456789:AA" X20 X10 "_-c/getMe",
     "https://api.telegram.org/bot123456789:[redacted telegram-token]/getMe"},
    {"eyJhbGciOiJSU0EtT0FFUCJ9^." X40 "." X10 "abcdef." X20 "." X20 "ab!", "[redacted jwt]!"},
    {"eyJhbGciOiJkaXIifQ^.." X10 "abcdef." X20 "." X20 "ab", "[redacted jwt]"},
    {"xai-org/grok-1 xapp-store-of-long-names-and-words fw_printenv fw_update_partition"},
    {"SG.Collections.Generic.Dictionary.Of.Names.And.Others.That.Are.Long"},
    {"pplx-embed-context-models-with-a-long-name-and-no-key nvapi-of-the-driver"},
    {"r8_is_a_register csk-of-a-name ya29.py GOCSPX- hooks.slack.com/services/T/B/x"},
    {"ratio 1234567:AA and 12:AA" X40},
    {"eyJhbGciOiJkaXIifQ.a.b.c.d"},
    /* credentials in headers */
    {"Bearer " LETTERS, "Bearer [redacted bearer-token]"},
    {"Bearer\t" X20 " bearer%20" X20,
     "Bearer\t[redacted bearer-token] bearer%20[redacted bearer-token]"},
    {"Bearer\\t" X20, "Bearer\\t[redacted bearer-token]"},
    {"Authorization: Basic dXNlcjpodW50ZXIy\n", "Authorization: Basic [redacted basic-auth]\n"},
    {"\"Authorization\": \"Basic dXNlcjpwYXNzd29yZA==\"",
     "\"Authorization\": \"Basic [redacted basic-auth]\""},
    {"Basic%20Ym9iOnDDpHNzd29yZA== basic\tdXNlcjpodW50ZXIy",
     "Basic%20[redacted basic-auth] basic\t[redacted basic-auth]"},
    {"x-api-key: " X20, "x-api-key: [redacted api-key]"},
    {"-H 'X-API-Key:" X20 "'", "-H 'X-API-Key:[redacted api-key]'"},
    {"{\\\"x-api-key\\\": \\\"" X20 "\\\"}", "{\\\"x-api-key\\\": \\\"[redacted api-key]\\\"}"},
    {"headers['api-key'] = '" X20 "'", "headers['api-key'] = '[redacted api-key]'"},
    {"set(\"x-goog-api-key\", \"" LETTERS "\")", "set(\"x-goog-api-key\", \"[redacted api-key]\")"},
    {"x-api-key: 0123abcd-0123-4567-89ab-0123456789ab\n", "x-api-key: [redacted api-key]\n"},
    {"Authorization: Token " X40, "Authorization: Token [redacted api-key]"},
    {"Authorization: " X40, "Authorization: [redacted api-key]"},
    {"PRIVATE-TOKEN: " X20, "PRIVATE-TOKEN: [redacted api-key]"},
    {"x-api-key: gsk^_" X40 X10 "ab", "x-api-key: [redacted api-key]"},
    {"Bearer\nauthentication with Bearer tokenAuthenticationProvider"},
    {"Authorization: Basic authentication. Basic understanding, Basic YWJjZGVmZ2hp"},
    {"Basic information: see it. basic dXNl basic internationalization"},
    {"x-api-key: YOUR_API_KEY x-api-key: $KEY x-api-key, authorization and others"},
    {"\"x-api-key\": process.env.ANTHROPIC_API_KEY, \"api-key\": {\"type\": \"string\"}"},
    {"authorization: none Authorization: Bearer $TOKEN_1 authorization server"},
    {"max-api-key: " X20, "max-api-key: [redacted secret]"},
    /* passwords in urls */
    {PW("%40hunter2"), CLEAN},
    {PW("$ecret1"), CLEAN},
    {PW("*star1"), CLEAN},
    {PW("a,b"), CLEAN},
    {PW("a(b)c"), CLEAN},
    {PW("a#b"), CLEAN},
    {PW("#1;2"), CLEAN},
    {PW("hunter2@secret"), CLEAN},
    {PW("12345"), CLEAN},
    {PW("${A}bc"), CLEAN},
    {"mongodb://u:p1@h1:27017,h2:27017/db", "mongodb://u:[redacted password]@h1:27017,h2:27017/db"},
    {"https://bob:pw@host,", "https://bob:[redacted password]@host,"},
    {"\"url\":\"postgres:\\/\\/bob:pw@db\\/x\"",
     "\"url\":\"postgres:\\/\\/bob:[redacted password]@db\\/x\""},
    {"https://" X40 "@github.com/a/b", "https://[redacted password]@github.com/a/b"},
    {"https://" X40 ":x-oauth-basic@github.com", "https://[redacted password]@github.com"},
    {"https://" GHP "@github.com", "https://" RED "@github.com"},
    {"https://" GHP ":x-oauth-basic@github.com", "https://" RED "@github.com"},
    {"https://oauth2:" GHP "@github.com", "https://oauth2:[redacted password]@github.com"},
    {PW("$PASSWORD") PW("${PASSWORD}") PW("***") PW("{password}") PW("{{ password }}")},
    {PW("%s") PW("%(password)s") PW("%PASSWORD%") PW("#{password}") PW("$(pass)")},
    {PW("${DB_PASS:-none}") PW("<password>") PW("&lt;password&gt;") PW("$1")
         PW("[redacted password]")},
    {"https://h:8080?mail=me@x.org https://h:8080#me@x.org (https://h:8080),me@x.org"},
    {"https://h?next=user:me@x.org https://h#a:b@c ssh://git@host:22/x@y"},
    {"ssh://deploy-user-of-the-long-name@host http://[::1]:8080/"},
    /* what is no secret stays */
    {"commit 8afda72c0ffee1234567890abcdef1234567890a, merge 1f2e3d4c5b6a79880123456789abcdef"},
    {"{\"id\":\"0192d1c0-7e5a-7bbb-8ccc-0123456789ab\",\"session_id\":\"s-0192d1c07e5a7bbb\"}"},
    {"toolu_01A09q90qw90lq917835lq9 call_0123456789abcdefABCDEFGH "
     "msg_013Zva2CMHLNnXjNJJKqJ2EF"},
    {"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= data:image/png;base64,iVBORw0KGgo="},
    {"The bearer of the basic idea: x-api-key headers are sent, see https://h/x?a=b@c."},
    {"for (i = 0; i < n; i++) sk_test_function(); /* whsec_ of no length */ hf_hub_download"},
    /* values with a name */
    {"AWS_SECRET_ACCESS_KEY=" AWS "\n", "AWS_SECRET_ACCESS_KEY=" SECRET "\n"},
    {"aws_secret_access_key = " AWS, "aws_secret_access_key = " SECRET},
    {"export AWS_SESSION_TOKEN=\"" X40 "//" X20 "==\"", "export AWS_SESSION_TOKEN=\"" SECRET "\""},
    {"MISTRAL_API_KEY=" X20, "MISTRAL_API_KEY=" SECRET},
    {"VERCEL_TOKEN: " X20 ",", "VERCEL_TOKEN: " SECRET ","},
    {"secret " X20 " follows", "secret " SECRET " follows"},
    {"{\"client_secret\": \"" X20 "\", \"apiKey\":\"" X20 "\"}",
     "{\"client_secret\": \"" SECRET "\", \"apiKey\":\"" SECRET "\"}"},
    {"{\\\"refreshToken\\\":\\\"" X20 "\\\"}", "{\\\"refreshToken\\\":\\\"" SECRET "\\\"}"},
    {"AccountName=a;AccountKey=" X40 X40 "+/aB3d==;E=1", "AccountName=a;AccountKey=" SECRET ";E=1"},
    {"https://h/x?sv=1&sig=" X40 "%2B%3D&se=2", "https://h/x?sv=1&sig=" SECRET "&se=2"},
    {"see https://h/?api_key=" X20 "&b=1 now", "see https://h/?api_key=" SECRET "&b=1 now"},
    {"https://h/?key=" X20, "https://h/?key=" SECRET},
    {"https://h/?a=1&access_token=" X20, "https://h/?a=1&access_token=" SECRET},
    {"//registry.npmjs.org/:_authToken=" X20, "//registry.npmjs.org/:_authToken=" SECRET},
    {"X-Auth-Key: " X20, "X-Auth-Key: " SECRET},
    {"_auth = " X20 "==", "_auth = " SECRET},
    {"--token " X20 " -v", "--token " SECRET " -v"},
    {"Cookie: sessionid=" X20 "; csrf=1", "Cookie: [redacted cookie]"},
    {"-H 'Cookie: sid=" X20 "' x", "-H 'Cookie: [redacted cookie]' x"},
    {"set-cookie: sid=" X20 "; Path=/\nx", "set-cookie: [redacted cookie]\nx"},
    {"credentials: " X20, "credentials: " SECRET},
    /* passwords with a name */
    {"DB_PASSWORD=swordfish\n", "DB_PASSWORD=" PASSWORD "\n"},
    {"password: hunter2", "password: " PASSWORD},
    {"{\"password\":\"tr0ub4dor&3\"}", "{\"password\":\"" PASSWORD "\"}"},
    {"{\\\"passwd\\\": \\\"swordfish\\\"}", "{\\\"passwd\\\": \\\"" PASSWORD "\\\"}"},
    {"password = 'correcthorse'", "password = '" PASSWORD "'"},
    {"curl -u bob:hunter2 https://h", "curl -u bob:" PASSWORD " https://h"},
    {"curl -s --user 'bob:hunter2' https://h", "curl -s --user 'bob:" PASSWORD "' https://h"},
    {"mysql -h db -u root -phunter2 shop", "mysql -h db -u root -p" PASSWORD " shop"},
    {"mysqldump -p'hunter2' shop", "mysqldump -p'" PASSWORD "' shop"},
    {"sshpass -p hunter2 ssh h", "sshpass -p " PASSWORD " ssh h"},
    {"x --password hunter2", "x --password " PASSWORD},
    {"jdbc:postgresql://h/db?user=bob&password=swordfish&ssl=1",
     "jdbc:postgresql://h/db?user=bob&password=" PASSWORD "&ssl=1"},
    {"Driver={X};Server=h;Uid=bob;Pwd=hunter2;", "Driver={X};Server=h;Uid=bob;Pwd=" PASSWORD ";"},
    {"host=h user=bob password=swordfish dbname=x",
     "host=h user=bob password=" PASSWORD " dbname=x"},
    {"machine h login bob password swordfish\n", "machine h login bob password " PASSWORD "\n"},
    {"machine h\n  login bob\n  password hunter2\n",
     "machine h\n  login bob\n  password " PASSWORD "\n"},
    {"[Interface]\nPrivateKey = " X40 "aB3=\n",
     "[Interface]\nPrivateKey = [redacted private-key]\n"},
    {"Private-Lines: 2\n" X40 X20 "aB3d\n" X20 "==\nPrivate-MAC: 01",
     "Private-Lines: 2\n[redacted private-key]Private-MAC: 01"},
    {"bob:$2y$10$" X40 X10 "aB3:", "bob:[redacted password-hash]:"},
    {"root:$6$" X10 "$" X40 X40 "aB3dE6:1", "root:[redacted password-hash]:1"},
    {"$argon2id$v=19$m=65536,t=3,p=4$" X20 "$" X40, "[redacted password-hash]"},
    /* more keys by their form */
    {X10 "aB3d.atla^sv1." X40 X20 "abc", "[redacted api-key]"},
    {"secret is aB3^8Q~" X20 X10 "abcd now", "secret is [redacted api-key] now"},
    {"AK^IAQWERTZUIOP234567", "[redacted aws-key]"},
    /* sentences, passphrases, keys with punctuation, `pass` */
    {"The password is Tr0ub4dor784!WA.", "The password is " PASSWORD "."},
    {"the password for the test server is hunter2",
     "the password for the test server is " PASSWORD},
    {"passphrase: \"five plain words of mine\""},
    {"passphrase: \"anchor basket candle dragon engine\"", "passphrase: \"" PASSWORD "\""},
    {"SECRET_KEY = 'p3(xm$8k_w)=+v#2h@q!f6*z&'", "SECRET_KEY = '" SECRET "'"},
    {"ansible_become_pass: hunter2!", "ansible_become_pass: " PASSWORD},
    {"auth: {user: 'a', pass: 'hunTer2'}", "auth: {user: 'a', pass: '" PASSWORD "'}"},
    {"MTIzNDU2Nzg5MDEyMzQ1Njc4^.GaB3dE." X20 X10 "abcdefgh", "[redacted discord-token]"},
    {"- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: " PASSWORD "\n"},
    {"<password>hunter2</password>", "<password>" PASSWORD "</password>"},
    {"IDENTIFIED BY 'hunter2'", "IDENTIFIED BY '" PASSWORD "'"},
    {"the password is wrong, the password is required, your token is invalid, password is base64"},
    {"the password is 8 characters long, the password is case-sensitive, is the password correct?"},
    {"PASS: test_login_2, pass: 12, render_pass: shadow_map_2, first_pass: 95%"},
    {"next_page_token: " X40 ", object_key: photos/2024/IMG_1234.jpg"},
    /* invisible characters in a key */
    {"a ghp^_" X20 "\u200b" X10 "abcdef\u2060 b", "a [redacted github-token]\u2060 b"},
    {"\u00adgh^\u00adp_\ufeff" X20 X10 "abc\u200ddef", "\u00ad[redacted github-token]"},
    {"DB_PASS\u200bWORD=hun\u2060ter2", "DB_PASS\u200bWORD=[redacted password]"},
    {"no\u00adthing \u200b\u2060 se\u200dcret \ufeff"},
    /* passwords that begin with a symbol */
    {"password=#hunter2 x", "password=" RED_PW " x"},
    {"password=#abcdefgh", "password=" RED_PW},
    {"password=@hunter2", "password=" RED_PW},
    {"password=(hunter2", "password=" RED_PW},
    {"password=[hunter2", "password=" RED_PW},
    {"password=*hunter2", "password=" RED_PW},
    {"\"password\": \"#hunter2\"", "\"password\": \"" RED_PW "\""},
    {"\"password\": \"@hunter2\"", "\"password\": \"" RED_PW "\""},
    {"\"password\": \"(hunter2\"", "\"password\": \"" RED_PW "\""},
    {"\"password\": \"[hunter]2\"", "\"password\": \"" RED_PW "\""},
    {"\"password\": \"*hunter2\"", "\"password\": \"" RED_PW "\""},
    {"password: **hunter2**", "password: " RED_PW},
    {"client_secret=#" X20, "client_secret=[redacted secret]"},
    {"api_key: \"@" X20 "\"", "api_key: \"[redacted secret]\""},
    {"mysql -u root -p'#hunter2' shop", "mysql -u root -p'" RED_PW "' shop"},
    {"curl -u bob:*hunter2 h", "curl -u bob:" RED_PW " h"},
    {"password=#{password2} password=@{pass2} \"password\": \"#{db.password2}\""},
    {"password=*** \"password\": \"********\" password: ****; **Password:** ask"},
    {"password: **required** \"password\": \"(none)\" \"password\": \"[hidden]\""},
    {"password: # todo, password = @password, {password: \"#password\"}"},
    {"password=[redacted password] \"password\": \"[redacted password]\""},
    {"password = (char *)p2; pwd = *argv; password=[\"a1b2c3d4\"]; pwd = (getpwuid(0));"},
    {"android:password=\"@string/password_2\" --data password=@/tmp/file2"},
    /* placeholders and programs stay */
    {"AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
    {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
    {"postgres://user:password@localhost/db mysql://root:xxx@h redis://u:...@h"},
    {"API_KEY=<your key> API_KEY=your-api-key-here-123 API_KEY=$VAR API_KEY=${VAR}"},
    {"API_KEY=xxx API_KEY=xxxxxxxxxxxxxxxx1 API_KEY=... TOKEN=***"},
    {"API_KEY=%s \"password\": \"{{ password }}\" password: $PASSWORD"},
    {"password=changeme1 password: <password> \"password\": \"your password\""},
    {"password: string; password: str = None, password: Option<String>"},
    {"\"password\": \"string\", \"token\": null, \"secret\": true, \"password\": \"\""},
    {"token = next_token(); token = lexer.next2(); key = make_key_v2(a);"},
    {"password = os.environ[\"DB_PASSWORD\"]; password = getpass(prompt)"},
    {"login(user, password=password, token=token, secret=self.secret2)"},
    {"const token = await getToken(user); if (token == NULL) return;"},
    {"password = config.db2.password; password := cfg.Password"},
    {"The password: it must have digits. Your password is wrong. Secret: none."},
    {"max_tokens: 4096, \"total_tokens\": 123456, key=value, \"key\": \"a1b2c3d4e5f6\""},
    {"public_key=" X20 " primary_key: user_2 monkey: " X20},
    {"cookie: none, Cookie: $COOKIE, Cookie: session=<session>"},
    {"curl -u $USER:$PASS h; curl -u user:password h; mysql -u root -p shop"},
    {"struct token *token = &tokens[i]; enum token_kind auth = AUTH_NONE;"},
    {"author: Bob1234567 Smith, authentication: oauth2, authority"},
    {"password-protected, passwords: many, pwd=/home/bob"},
    {"token (string, required): the key; secret: str | None = None"},
};

TEST(secrets_are_replaced_and_all_else_stays)
{
    struct redactor *r = redactor();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf text = BUF_INIT(BUF_SMALL), json = BUF_INIT(BUF_SMALL),
                   out = BUF_INIT(BUF_SMALL);
        struct buf redacted = BUF_INIT(BUF_SMALL);
        struct str rest = str_of(cases[i][0]);
        bool found;

        while (rest.p)
            buf_add_str(&text, str_cut(&rest, '^'));
        json_add_string(&json, buf_str(&text));
        found = redact_json(r, buf_str(&json), &redacted) > 0;
        CHECK(json_decode(buf_str(&redacted), &out));
        CHECK_STR(buf_c(&out), cases[i][1] ? cases[i][1] : buf_c(&text));
        CHECK_INT(found, cases[i][1] != NULL);
        buf_release(&text);
        buf_release(&json);
        buf_release(&redacted);
        buf_release(&out);
    }
    redactor_free(r);
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
    struct buf text = BUF_INIT(SIZE_MAX), json = BUF_INIT(SIZE_MAX), out = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buf_clear(&text);
        buf_clear(&out);
        while (text.len < 200000)
            buf_add_c(&text, parts[i]);
        buf_clear(&json);
        json_add_string(&json, buf_str(&text));
        redact_json(r, buf_str(&json), &out);
        CHECK(!str_find(buf_str(&out), STR("[redacted text]")));
    }
    buf_release(&json);
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

#define TRUE_TR "Tr0ub4dor784!WA"

/* A value is known by its name, which is in another string. */
TEST(json_is_searched_as_a_whole)
{
    check_json("{\"password\":\"" TRUE_TR "\"}", "{\"password\":\"" PASSWORD "\"}");
    check_json("{\"pass\\u0077ord\":\"swordfish\"}", "{\"pass\\u0077ord\":\"" PASSWORD "\"}");
    check_json("{\"password\" : 12345678 , \"n\":1}",
               "{\"password\" : \"" PASSWORD "\" , \"n\":1}");
    check_json("{\"password\":\"a b'c\\\"d\\\\e1\"}", "{\"password\":\"" PASSWORD "\"}");
    check_json("{\"headers\":{\"X-API-Key\":\"" X20 "\"}}",
               "{\"headers\":{\"X-API-Key\":\"[redacted api-key]\"}}");
    check_json("{\"name\":\"DB_PASSWORD\",\"value\":\"" TRUE_TR "\"}",
               "{\"name\":\"DB_PASSWORD\",\"value\":\"" PASSWORD "\"}");
    check_json("[{\"value\":\"" TRUE_TR "\",\"n\":[1],\"key\":\"DB_PASSWORD\"}]",
               "[{\"value\":\"" PASSWORD "\",\"n\":[1],\"key\":\"DB_PASSWORD\"}]");
    check_json("{\"passwords\":[\"" TRUE_TR "\",7,{\"value\":\"swordfish\"}]}",
               "{\"passwords\":[\"" PASSWORD "\",7,{\"value\":\"" PASSWORD "\"}]}");
    check_json("{\"selector\":\"input[name='password']\",\"text\":\"" TRUE_TR "\"}",
               "{\"selector\":\"input[name='password']\",\"text\":\"" PASSWORD "\"}");
    check_json("[\"mysql\",\"-u\",\"root\",\"-p" TRUE_TR "\"]",
               "[\"mysql\",\"-u\",\"root\",\"-p" PASSWORD "\"]");
    check_json("{\"command\":\"curl\",\"args\":[\"-u\",\"bob:hunter2\"]}",
               "{\"command\":\"curl\",\"args\":[\"-u\",\"bob:" PASSWORD "\"]}");
    check_json("[\"--password\",\"two words 1\"]", "[\"--password\",\"" PASSWORD "\"]");
    check_json(
        "[\"" BEGIN "\",\"" MII "\",\"" END "\"]",
        "[\"[redacted private-key]\",\"[redacted private-key]\",\"[redacted private-key]\"]");
    check_json("{\"args\":\"{\\\"a\\\":[{\\\"name\\\":\\\"PW_TOKEN\\\",\\\"value\\\":\\\"" X20
               "\\\"}]}\"}",
               "{\"args\":\"{\\\"a\\\":[{\\\"name\\\":\\\"PW_TOKEN\\\",\\\"value\\\":\\\"" SECRET
               "\\\"}]}\"}");
    check_json("{\"type\":\"object\",\"required\":[\"username\",\"password\",\"email\"],"
               "\"password\":{\"type\":\"string\"},\"pass\":12,\"max_tokens\":4096}",
               "{\"type\":\"object\",\"required\":[\"username\",\"password\",\"email\"],"
               "\"password\":{\"type\":\"string\"},\"pass\":12,\"max_tokens\":4096}");
    check_json("{\"password\":\"is too short\",\"name\":\"password\",\"text\":\"Forgot it?\"}",
               "{\"password\":\"is too short\",\"name\":\"password\",\"text\":\"Forgot it?\"}");
}
