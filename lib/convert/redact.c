#include "chathist/convert/redact.h"

#include <stdlib.h>
#include <string.h>

#include "chathist/base/json.h"
#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"

/*
 * The expressions match bytes, and the match is the secret: the text before it ends in \K, the text
 * after it is a lookahead. Repetitions are possessive or bounded, and a prefix that can repeat
 * inside a token is consumed with it, so that hostile text takes linear time.
 */

/* ---- parts of expressions ---- */

#define HEX "[0-9a-fA-F]"
/* A word can begin after an escape of JSON, of a URL (also escaped twice) or of a terminal,
 * although the escape ends in a letter or digit. */
#define ESCAPES                                                                                    \
    "\\\\[nrtbfvae0]|\\\\x" HEX "{2}|\\\\[0-7]{3}|\\\\u" HEX "{4}|%" HEX "{2}|%25" HEX "{2}|"      \
    "\\[[A-Za-z]|\\[[0-9;][A-Za-z]|\\[[0-9;]{2}[A-Za-z]|\\[[0-9;]{3}[A-Za-z]|"                     \
    "\\[[0-9;]{4}[A-Za-z]|\\[[0-9;]{5}[A-Za-z]|\\[[0-9;]{6}[A-Za-z]|\\[[0-9;]{8}[A-Za-z]"
/* The beginning of a word; with WORD_PART also after `_` and `-`, as in `token_…`. */
#define WORD "(?<=\\A|[^\\w-]|" ESCAPES ")"
#define WORD_PART "(?<=\\A|[^A-Za-z0-9]|" ESCAPES ")"

/* A run of n letters and digits follows soon; for MIXED it has at least one of each. Words joined
 * by hyphens have no long run. */
#define RUNS "(?:[^\\W_]*+[-_.+/=%~]){0,32}?"
#define RUN(n) "(?=" RUNS "[^\\W_]{" #n "})"
#define MIXED(n) "(?=" RUNS "(?=[a-zA-Z]*+[0-9])(?=[0-9]*+[a-zA-Z])[^\\W_]{" #n "})"
#define MIXED8 MIXED(8)
#define MIXED10 MIXED(10)
#define MIXED16 MIXED(16)
#define MIXED20 MIXED(20)
#define MIXED36 MIXED(36)
#define MIXED40 MIXED(40)
#define RUN32 RUN(32)

#define BLANKS "(?:[ \\t]|%20|\\\\t)++"
#define BASE64 "[A-Za-z0-9+/=]"

/* A line of a private key, unlike the names of functions in a program that reads such keys. */
#define KEY_RUN                                                                                    \
    "(?=" BASE64 "{20})(?=[A-Za-z+/=]*+[0-9])(?=[a-z0-9+/=]*+[A-Z])(?=[A-Z0-9+/=]*+[a-z])"
#define KEY_BEGIN "-----BEGIN (?=[A-Z0-9 ]{0,40}?PRIVATE KEY)[A-Z0-9 ]{11,60}+-----"
#define KEY_END "-----END (?=[A-Z0-9 ]{0,40}?PRIVATE KEY)[A-Z0-9 ]{11,60}+-----"
#define KEY_DASH "-(?!----(?:BEGIN|END) )"
/* Line numbers, quotes and a file name may precede a line of a key; words may not. */
#define KEY_LINE                                                                                   \
    "[\\r\\n\\\\][^A-Za-z\\r\\n\\\\]{0,24}+"                                                       \
    "(?:[^ \\r\\n\\\\]{0,60}?[^ \\r\\n\\\\A-Za-z0-9+/=])??" KEY_RUN BASE64 "++"

/* Between a name and its value: `=`, `: `, `": "`, `'] = '`, `%3D`. */
#define SEP                                                                                        \
    "[\"'\\\\\\])]{0,4}+[ \\t]{0,8}+(?::=|=>|[:=]|%3d|\\\\u003d)[ \\t]{0,8}+(?:\\\\{0,3}[\"'`])?+"

/* Values that are no secret begin like this: variables, formats, stand-ins, types, and words in
 * brackets or asterisks. A symbol alone does not make a placeholder: passwords begin with `#`, `@`,
 * `(`, `[` and `*`, too. */
#define PLACEHOLDER                                                                                \
    "(?:[<{]|[#@]\\{|(?:\\[[a-z_ .,:-]{0,60}+\\]|\\([a-z_ .,:-]{0,60}+\\)|"                        \
    "\\*++(?:[a-z_ -]{1,40}+\\*++)?+)(?![^\\s\"'`\\\\.,;&)}\\]])|@(?:string|\\+?id)/|"             \
    "\\$(?:[{(]|(?-i:[A-Z_0-9]++(?![a-z0-9])))|\\$[a-z_]++(?![\\w$./])|%[sdvq(]|"                  \
    "%\\w++%|&lt;|\\.\\.\\.|\\xe2\\x80\\xa6|x{3,}|[^\\s\"']{0,40}?example|your|"                   \
    "(?:change|replace|insert|put|enter)[-_ ]?\\w|redacted|placeholder|dummy|"                     \
    "(?:self|this|config|process|env|os|args|settings|options|request|req|ctx|app|sys|system|"     \
    "import|std)(?:\\.|::|->)|[#@]?(?:base64|utf8|sha\\d++|(?:my|the|some|a)?[-_ ]?"               \
    "(?:user)?[-_ ]?(?:api[-_]?)?"                                                                 \
    "(?:password|passwd|pwd|pass|secret|token|key)|test|null|none|nil|undefined|"                  \
    "true|false|string|str|text|bytes|char|varchar|any|optional|required|hidden|masked|"           \
    "bearer|basic)(?![\\w!$%&*+/.~^-]))"

#define ONE_OF_BOTH "(?:" MIXED8 "|" RUN32 ")"
/* The value of a key or token: long enough, and not a word. */
#define RANDOM                                                                                     \
    "(?!" PLACEHOLDER ")[#@*]?+(?:" MIXED8 "|" RUN32 "|(?-i:(?=[\\w+/=~.%-]{16})"                  \
    "(?=[A-Za-z_+/=~.%-]*+[0-9])(?=[a-z0-9_+/=~.%-]*+[A-Z])(?=[A-Z0-9_+/=~.%-]*+[a-z])))"          \
    "[\\w+/=~.%-]{8,}+(?![(\\[])"
/* The word `key` at the end of a name, but not in names such as `public_key` and `cache-key`. */
#define KEY_NAME                                                                                   \
    "(?<![?&])(?<=[-_?&]|api|access|secret|account|auth|private|shared|master|signing|"            \
    "encryption)(?<!public[-_]|primary[-_]|foreign[-_]|cache[-_]|sort[-_]|partition[-_]|"          \
    "idempotency[-_])key|(?<=[?&])key"

/* The bytes that end the user and password of a URL. */
#define URL_END " \\t\\r\\n\\\\\"'`<>/\\x00"
#define URL_PLACEHOLDER                                                                            \
    "(?:\\*++|\\$(?:[A-Z0-9_]++|\\{[^}@]*+\\}|\\([^)@]*+\\))|[#@]?\\{[^}]*+\\}|&lt;[^@]*+|"        \
    "[^@" URL_END "]*?\\}\\}|%(?:\\([^)]*+\\)s|[sdvq@]|\\w++%)|x{3,}|\\.{3}|"                      \
    "(?i:(?:your|my)?[-_]?(?:pass|password|passwd|pwd)))@"

/* ---- the table ---- */

/* If two rules match at the same byte, the first one names the kind. */
static const struct rule {
    const char *kind, *pattern;
} rules[] = {
    /* URLs */
    {"password", ":(?://|\\\\/\\\\/)[^@:?#,()" URL_END "]*+:\\K(?!" URL_PLACEHOLDER
                 "|[0-9]++[?#,;()\\[\\]])[^" URL_END "]+(?=@)"},
    {"private-key", /* with its END within 32 KiB */
     KEY_BEGIN "(?=(?:[^-]++|" KEY_DASH ")*+-----END )(?=[\\s\\S]{0,32768}?-----END )"
               "(?:[^-A-Za-z0-9+/=]++|" KEY_DASH "|(?!" KEY_RUN ")[A-Za-z0-9+/=]++)*+" KEY_RUN
               "(?:[^-]++|" KEY_DASH ")*+" KEY_END},
    {"private-key", /* without an END: as long as the lines look like a key */
     KEY_BEGIN "[^\\r\\n\\\\]{0,200}+(?:[\\r\\n\\\\](?![^\\r\\n\\\\]{0,80}-----)"
               "[^\\r\\n\\\\]{0,200}+){0,12}?" KEY_LINE
               "(?:[^\\r\\n\\\\]{0,12}(?:\\\\n[^\\r\\n\\\\]{0,8})?" KEY_LINE ")*+"
               "(?:[^A-Za-z+/=\\n]{0,12}\\n[^A-Za-z+/=\\n]{0,12}+" BASE64 "++(?=[\\r\\n]|\\z))?+"},
    {"private-key", /* PuTTY */
     "Private-Lines: [0-9]{1,4}+(?:\\\\r|\\\\n|\\s)++\\K(?:[A-Za-z0-9+/=]{4,64}+"
     "(?:(?:\\\\r)?+\\\\n|\\r?+\\n|(?=[\"\\s]|\\z))){1,400}+"},
    {"private-key", /* WireGuard */
     "(?:PrivateKey|PresharedKey)[ \\t]*+=[ \\t]*+\\K[A-Za-z0-9+/]{43}="},
    {"bearer-token", "(?i)" WORD "bearer" BLANKS "\\K" ONE_OF_BOTH "[A-Za-z0-9._~+/=-]{20,}+"},
    {"basic-auth", /* Base64 in which one of three bytes is a colon */
     WORD "(?i:basic)" BLANKS "\\K(?=[I-Za-f])(?=[a-z+/]*+[A-Z0-9])"
          "(?=(?:[A-Za-z0-9+/]{4}){0,100}?(?:O[g-v]|.[DTjz][o-r]|..[AEIMQUYcgkosw048]6))"
          "[A-Za-z0-9+/]{6,}+={0,2}"},
    {"anthropic-key", WORD_PART "sk-ant-[\\w-]{20,}+"},
    {"api-key", WORD_PART "(?:(?:gsk_|csk-|xai-|pplx-|ntn_|dp\\.pt\\.)" MIXED40 "[^\\W_]{40,}+"
                          "|sk-" MIXED16 "[\\w-]{20,}+"
                          "|nvapi-" MIXED10 "[\\w-]{40,}+"
                          "|(?:r8_|hf_)[^\\W_]{30,}+"
                          "|fw_" MIXED20 "[^\\W_]{20,}+"
                          "|lsv2_(?:pt|sk)_" MIXED20 "\\w{32,}+"
                          "|[sr]k_(?:live|test)_" MIXED16 "[^\\W_]{16,}+"
                          "|whsec_" MIXED8 "[A-Za-z0-9+/=]{24,}+"
                          "|SG\\." MIXED10 "[\\w.-]{50,}(?<!\\.)"
                          "|dop_v1_[^\\W_]{40,}+"
                          "|npm_" MIXED36 "[^\\W_]{36,}+"
                          "|pypi-AgE[\\w-]{40,}+"
                          "|dckr_pat_" MIXED10 "[\\w-]{20,}+"
                          "|NRAK-[A-Z0-9]{27}(?![A-Z0-9])"
                          "|sntrys_" MIXED10 "[\\w+/=-]{40,}+"
                          "|lin_api_[^\\W_]{32,}+"
                          "|shp(?:at|ss|pa|ca)_[0-9a-f]{32}(?![0-9a-f])"
                          "|sq0atp-[\\w-]{22}(?![\\w-])"
                          "|sq0csp-[\\w-]{43}(?![\\w-])"
                          "|hv[sb]\\." MIXED10 "[\\w-]{24,}+"
                          "|glsa_" MIXED16 "\\w{32,}+"
                          "|AGE-SECRET-KEY-1[A-Z0-9]{58}(?![A-Z0-9])"
                          "|sbp_[0-9a-f]{40}(?![0-9a-f])"
                          "|pscale_tkn_" MIXED10 "[\\w.-]{32,}(?<!\\.)"
                          "|figd_" MIXED10 "[\\w-]{40,}+"
                          "|dapi[0-9a-f]{32}(?![0-9a-f])"
                          "|ATATT3x" MIXED10 "[\\w=-]{60,}+"
                          "|jina_" MIXED16 "[\\w-]{40,}+"
                          "|tvly-" MIXED10 "[A-Za-z0-9-]{20,}+"
                          "|[A-Za-z0-9]{14}\\.atlasv1\\.[\\w=-]{60,}+)"},
    {"api-key", /* Azure */ "(?<![\\w~.-])[\\w~.-]{3}[78]Q~[\\w~.-]{31,34}"},
    {"github-token", WORD_PART "(?:gh[pousr]_[^\\W_]{36,}+|github_pat_\\w{50,}+)"},
    {"gitlab-token", WORD_PART "gl(?:pat|rt|dt|ptt|cbt|ft|oas)-[\\w.-]{20,}(?<!\\.)"},
    {"discord-webhook", "discord(?:app)?\\.com/api/webhooks/" MIXED16 "[\\w/-]{60,}+"},
    {"aws-key", WORD_PART "A[KS]IA(?![A-Z0-9]{0,9}EXAMPLE)[A-Z0-9]{16}(?![A-Z0-9])"},
    {"slack-token", WORD_PART "(?:xapp-|xox[abceoprs]-|xoxd-|xoxe\\.)" MIXED10
                              "(?:(?<=d-)[\\w%+/=-]{20,}+|[A-Za-z0-9.-]{20,}(?<!\\.))"},
    {"slack-webhook", "hooks\\.slack\\.com/" MIXED16 "[A-Za-z0-9/]{40,}+"},
    {"google-key", WORD_PART "(?:AIza[\\w-]{35,}+|ya29\\." MIXED8 "[\\w.-]{20,}(?<!\\.)"
                             "|GOCSPX-[\\w-]{20,}+)"},
    {"jwt", "(?:" WORD "|(?<=[_-])(?=[\\w-]{0,512}\\.))eyJ[\\w-]{7,}+\\."
            "(?:[\\w-]*+\\.[\\w-]{16,}+\\.[\\w-]++\\.[\\w-]{21,}+|eyJ[\\w-]{7,}+\\.[\\w-]{10,}+)"},
    {"telegram-token", "(?<=[0-9]{6}:)AA[\\w-]{33,}+"},
    {"password-hash",
     "\\$(?:2[abxy]\\$[0-9]{2}\\$[./A-Za-z0-9]{53}"
     "|(?:[156y]|apr1|gy|7)\\$(?:rounds=[0-9]{1,9}\\$)?+(?:[./A-Za-z0-9]{1,64}\\$){1,2}+"
     "[./A-Za-z0-9]{22,86}+|argon2(?:id|i|d)\\$[\\w=,$+/.-]{40,}+|scrypt\\$[\\w=,$+/.-]{40,}+)"},
    {"api-key", /* headers */
     "(?i)" WORD "(?:(?:proxy-)?authorization|x-api-key|api-key|x-auth-token|x-goog-api-key|"
     "private-token)[\"'\\\\\\] \\t]{0,8}+(?:[:=]|,(?=[ \\t]{0,8}\\\\?[\"']))[\"'\\\\ \\t]{0,8}+"
     "(?!bearer|basic)(?:[a-z]++" BLANKS ")?+\\K(?!" PLACEHOLDER ")(?:(?![\\w~+/-]*+\\.)" MIXED8
     "|" MIXED16 "|" RUN32 ")[\\w.~+/-]{16,}+=*+(?![(\\[])"},
    {"cookie", "(?i)" WORD "(?:set-)?cookie[\"'\\\\]{0,3}+[ \\t]*+[:=][ \\t]*+[\"'\\\\]{0,3}+\\K"
               "[^=\\s;\"'\\\\]{1,64}+=(?!" PLACEHOLDER ")[^;\\s\"'\\\\]{8}[^\\r\\n\"'\\\\]*+"},
    {"secret", /* values whose name ends in key, token, secret, credential or auth */
     "(?i)(?:" KEY_NAME "|token|secret|credentials?|auth)(?:" SEP "\\K" RANDOM
     "|[ \\t]{1,4}+\\K" MIXED16 RANDOM ")"},
    {"secret",
     /* a signature of Azure */ "(?i)" WORD "sig=\\K(?!" PLACEHOLDER ")[a-z0-9%+/=_-]{20,}+"},
    {"password", /* in quotes any text, else no words of prose and programs */
     "(?i)(?:password|passwd|passphrase|pwd)(?:" SEP "(?<=[\"'`])\\K(?!" PLACEHOLDER
     ")[^\\s\"'`\\\\<>]{4,200}+(?=[\"'`\\\\])|" SEP "(?<![\"'`])\\K(?!" PLACEHOLDER "|@?[~.]{0,2}/"
     "|[a-z_]\\w*+(?:(?:\\.|::|->)[a-z_]\\w*+)++(?![^\\s]))[#@*(\\[]{0,2}+"
     "(?=[a-z_.]*+[^\\sa-z_.\"'`,;&<>\\\\()\\[\\]{}])"
     "[^\\s\"'`,;&<>\\\\(){}\\[\\]]{4,}+(?![(\\[])"
     "|=\\K(?!" PLACEHOLDER ")#?+[a-z]{6,64}+(?=[&;\\s\"'\\\\]|\\z))"},
    {"password", /* of commands and in .netrc */
     "(?:\\bcurl\\b[^\\r\\n]{0,200}?[ \\t](?:-u|--user)[ =]{0,2}[\"']?[^\\s:\"'$]{1,64}+:"
     "|\\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\\b[^\\r\\n|;]{0,200}?[ \\t]-p[\"']?"
     "|\\bsshpass[ \\t]{1,4}+-p[ \\t\"']{0,3}+|--password[ \\t]{1,4}+[\"']?"
     "|\\blogin(?:\\s|\\\\n){1,8}+[^\\s\\\\]{1,128}+(?:\\s|\\\\n){1,8}+password(?:\\s|\\\\n){1,8}+)"
     "\\K(?!(?i:" PLACEHOLDER "))[^\\s\"'\\\\]{3,}+"},
    {"password", /* a token as the user of a URL */
     ":(?://|\\\\/\\\\/)\\K(?=[^@:?#,()" URL_END "]{20})" MIXED16 "[^" URL_END "]+(?=@)"},
};

#define RULES (sizeof rules / sizeof *rules)

struct redactor {
    struct regex *regex[RULES];
    size_t at[RULES], end[RULES]; /* the next match of each rule; at is SIZE_MAX without one */
};

struct redactor *redactor_new(struct err *e)
{
    struct redactor *r = mem_zalloc(sizeof *r);

    for (size_t i = 0; i < RULES; i++) {
        r->regex[i] = regex_new_bytes(str_of(rules[i].pattern), e);
        if (!r->regex[i]) {
            redactor_free(r);
            return NULL;
        }
    }
    return r;
}

void redactor_free(struct redactor *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < RULES; i++)
        regex_free(r->regex[i]);
    free(r);
}

/* ---- characters without a width ---- */

/* Returns the length of the character at the start of s if it has no width, else 0. */
static size_t invisible(struct str s)
{
    int32_t cp;
    size_t n = utf8_decode(s, &cp);

    return cp == 0xad || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x202a && cp <= 0x202e) ||
                   (cp >= 0x2060 && cp <= 0x2064) || cp == 0xfeff
               ? n
               : 0;
}

/* Appends to plain the text without such characters. Returns for each of its bytes the offset in
 * the text, which the caller frees, or NULL if the text has no such character. */
static size_t *make_plain(struct str text, struct buf *plain)
{
    size_t *place = NULL, i = 0, n;

    while (i < text.n && invisible(str_skip(text, i)) == 0)
        i++;
    if (i == text.n)
        return NULL;
    place = mem_zalloc(text.n * sizeof *place);
    for (i = 0; i < text.n; i += n) {
        n = invisible(str_skip(text, i));
        if (n > 0)
            continue;
        n = 1;
        place[plain->len] = i;
        buf_add_byte(plain, text.p[i]);
    }
    return place;
}

/* ---- text ---- */

/* Finds the match of each rule that comes next after `from`. Returns -1 if that is too expensive.
 * */
static int advance(struct redactor *r, struct str text, size_t from)
{
    for (size_t i = 0; i < RULES; i++) {
        size_t n = 0;
        int found;

        if (from > 0 && r->at[i] >= from)
            continue;
        found = regex_find(r->regex[i], text, from, false, &r->at[i], &n, NULL);
        if (found < 0)
            return -1;
        if (found == 0)
            r->at[i] = SIZE_MAX;
        else
            r->end[i] = r->at[i] + n;
    }
    return 0;
}

/* Returns the rule whose match comes first, or RULES if no rule matches. *end is the end of that
 * match and of matches that begin in it. */
static size_t first_match(const struct redactor *r, size_t *end)
{
    size_t first = RULES;

    for (size_t i = 0; i < RULES; i++)
        if (r->at[i] != SIZE_MAX && (first == RULES || r->at[i] < r->at[first]))
            first = i;
    if (first == RULES)
        return RULES;
    *end = r->end[first];
    for (size_t i = 0; i < RULES; i++)
        if (r->at[i] < *end && r->end[i] > *end)
            *end = r->end[i];
    return first;
}

size_t redact_text(struct redactor *r, struct str text, struct buf *out)
{
    struct buf without = BUF_INIT(SIZE_MAX);
    size_t *place = make_plain(text, &without);
    struct str plain = place ? buf_str(&without) : text;
    size_t count = 0, from = 0, end = 0, before = out->len;

    for (;;) {
        size_t rule, start;

        if (advance(r, plain, end) < 0) {
            buf_truncate(out, before);
            buf_add_c(out, "[redacted text]");
            count = 1;
            break;
        }
        rule = first_match(r, &end);
        start = rule == RULES ? text.n : place ? place[r->at[rule]] : r->at[rule];
        if (start > from)
            buf_add(out, text.p + from, start - from);
        if (rule == RULES)
            break;
        buf_addf(out, "[redacted %s]", rules[rule].kind);
        from = place ? place[end - 1] + 1 : end;
        count++;
    }
    free(place);
    buf_release(&without);
    return count;
}

/* Returns the length of the JSON string at the start of s, with its quotes. */
static size_t string_length(struct str s)
{
    size_t n = 1;

    while (n < s.n && s.p[n] != '"')
        n += s.p[n] == '\\' ? 2 : 1;
    return n + 1;
}

size_t redact_json(struct redactor *r, struct str json, struct buf *out)
{
    struct buf text = BUF_INIT(BUF_LINE), clean = BUF_INIT(2 * BUF_LINE);
    size_t count = 0;

    while (json.n > 0) {
        const char *quote = memchr(json.p, '"', json.n);
        size_t before = quote ? (size_t)(quote - json.p) : json.n, found;
        struct str string;

        buf_add(out, json.p, before);
        json = str_skip(json, before);
        if (!quote)
            break;
        string = (struct str){json.p, string_length(json)};
        buf_clear(&text);
        buf_clear(&clean);
        json_decode(string, &text);
        found = redact_text(r, buf_str(&text), &clean);
        if (found > 0)
            json_add_string(out, buf_str(&clean));
        else
            buf_add_str(out, string);
        count += found;
        json = (struct str){json.p + string.n, json.n - string.n};
    }
    buf_release(&text);
    buf_release(&clean);
    return count;
}
