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
#define DIGIT "(?=[A-Za-z_+/=.-]{0,24}[0-9])"

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

/* Two bytes that mark the value of a pair in a view (add_pair), inside its quotes. */
#define VALUE_BEGIN "\x02"
#define VALUE_END "\x03"

/* Between a name and its value: `=`, `: `, `": "`, `'] = '`, `%3D`. */
#define SEP                                                                                        \
    "[\"'\\\\\\])]{0,4}+[ \\t]{0,8}+(?::=|=>|[:=]|%3d|\\\\u003d)[ "                                \
    "\\t]{0,8}+(?:\\\\{0,3}[\"'`]" VALUE_BEGIN "?+)?+"
#define QUOTED "(?<=[\"'`" VALUE_BEGIN "])"
#define NOT_QUOTED "(?<![\"'`" VALUE_BEGIN "])"

/* Values that are no secret begin like this: variables, formats, stand-ins, types, and words in
 * brackets or asterisks. A symbol alone does not make a placeholder: passwords begin with `#`, `@`,
 * `(`, `[` and `*`, too. */
#define PLACEHOLDER                                                                                \
    "(?:[<{]|[#@]\\{|(?:\\[[a-z_ .,:-]{0,60}+\\]|\\([a-z_ .,:-]{0,60}+\\)|"                        \
    "\\*++(?:[a-z_ -]{1,40}+\\*++)?+)(?![^\\s" VALUE_END                                           \
    "\"'`\\\\.,;&)}\\]])|@(?:string|\\+?id)/|"                                                     \
    "\\$(?:[{(]|(?-i:[A-Z_0-9]++(?![a-z0-9])))|\\$[a-z_]++(?![\\w$./])|%[sdvq(]|"                  \
    "%\\w++%|&lt;|\\.\\.\\.|\\xe2\\x80\\xa6|x{3,}|[^\\s\"']{0,40}?example|your|"                   \
    "(?:change|replace|insert|put|enter)[-_ ]?\\w|redacted|placeholder|dummy|"                     \
    "(?:self|this|config|process|env|os|args|settings|options|request|req|ctx|app|sys|system|"     \
    "import|std)(?:\\.|::|->)|[#@]?(?:base64|utf8|sha\\d++|(?:my|the|some|a)?[-_ ]?"               \
    "(?:user)?[-_ ]?(?:api[-_]?)?"                                                                 \
    "(?:password|passwd|pwd|pass|secret|token|key)|test|null|none|nil|undefined|"                  \
    "true|false|string|str|text|bytes|char|varchar|any|optional|required|hidden|masked|"           \
    "invalid|incorrect|wrong|missing|expired|denied|failed|empty|unset|unchanged|changed|unknown|" \
    "enabled|disabled|encrypted|hashed|protected|confirmed|mismatch|prompt|"                       \
    "bearer|basic)(?![\\w!$%&*+/.~^-])|[a-z_][\\w.:>-]*+\\([^()]*+\\)(?=[\"'`;,]|" VALUE_END       \
    "|\\s|\\z))"

/* Words of prose and of messages, which are in no passphrase. A value with blanks and one of these
 * is no secret. */
#define PROSE                                                                                      \
    "(?:the|is|are|was|be|must|should|can|cannot|not|no|for|your|you|my|of|or|and|with|without|"   \
    "at|least|an|in|to|from|this|that|it|its|please|enter|type|char(?:acter)?s?|required|"         \
    "optional|invalid|wrong|incorrect|forgot|reset|if|when|by|on|as|has|have|uses?|used|will|"     \
    "long|longer|short|new|old|current|confirm|again|pass(?:words?|phrases?)|digits?|letters?)"
#define NO_PROSE "(?![^\\r\\n\"'`" VALUE_END "]{0,200}?\\b" PROSE "\\b)"

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
    "idempotency[-_]|object[-_]|file[-_]|image[-_]|row[-_]|item[-_]|group[-_]|routing[-_]|"        \
    "lookup[-_]|hash[-_]|range[-_]|storage[-_])key|(?<=[?&])key"
/* The end of the name of a secret that is no password. A token of a page is not secret. */
#define SECRET_NAME                                                                                \
    "(?:" KEY_NAME "|(?<!page|page[-_]|next[-_]|cursor[-_]|continuation|continuation[-_]|"         \
    "sync[-_])token|secret|credentials?|auth|key_base|[-_]salt)"

/* The end of the name of a password. `pass` alone is also a pass of a compiler or a test, so it
 * counts with the name of an account or a server, or as a whole name in quotes (BARE_PASS). */
#define PASSWORD_NAME                                                                              \
    "(?:passwor[dt]|passwd|passphrase|passcode|pwd|kennwort|(?<![a-z])psk|"                        \
    "(?:become|ssh|sudo|su|db|database|sql|smtp|mail|imap|ldap|bind|ftp|root|admin|user|login|"    \
    "auth|proxy|redis|mongo|vault|enable|key|store|wifi|vnc|rdp|http|api|app)[-_]?pass|"           \
    "bind_?pw|root_?pw)(?![a-z])"
#define BARE_PASS                                                                                  \
    "(?:(?<=[-_])(?<!first[-_]|second[-_]|third[-_]|last[-_]|next[-_]|multi[-_]|single[-_]|"       \
    "one[-_]|two[-_]|low[-_]|high[-_]|band[-_]|all[-_]|test[-_]|by[-_])pass|"                      \
    "(?<=[\"'])pass(?=[\"'\\\\])|(?<=[\\s{,(])pass(?=[ ]?[:=][ ]?[\"'])|(?-i:(?<=[a-z])Pass))"     \
    "(?![a-z])"

/* The bytes that end the user and password of a URL. */
#define URL_END " \\t\\r\\n\\\\\"'`<>/\\x00"
/* A name is in one member, its value in the next: `name: X, value: Y`, also of XML and HTML. */
#define BESIDE                                                                                     \
    "[\"'\\\\]{0,3}+[,;]?+(?:\\s|\\\\[nrt]){0,40}+[\"'\\\\]{0,3}+(?:value|val)[\"'\\\\]{0,3}+[ "   \
    "\\t]{0,4}+"                                                                                   \
    "[:=][ \\t]{0,4}+[\"'`\\\\]{0,4}+\\K"
/* A pair of which all of the value is known to belong to the name, with blanks and quotes. */
#define VALUE_PAIR                                                                                 \
    "(?<=" VALUE_BEGIN ")\\K(?!" PLACEHOLDER ")(?:[^\\s" VALUE_END "]{4,200}+|(?![^" VALUE_END     \
    "]{0,200}?\\b" PROSE "\\b)(?:(?=[^" VALUE_END "]{0,200}?[0-9])|[^\\s" VALUE_END                \
    "]{2,}+(?:\\s[^\\s" VALUE_END "]{2,}+){2})[^" VALUE_END "]{4,200}+)(?=" VALUE_END ")"
/* The end of a word of a sentence. */
#define TOKEN_END "(?=[.,;:!?)\"'`*]{0,3}+(?:\\s|\\\\n|\\z))"
/* Names of algorithms, which contain digits. */
#define HASHES                                                                                     \
    "(?:base-?(?:32|58|64)|sha-?[0-9]|md[45]|bcrypt|argon2|pbkdf2|utf-?8|utf-?16|aes-?[0-9]|"      \
    "oauth2?|"                                                                                     \
    "rot13|http2?|ipv[46]|python3?)[\\w-]*"

#define URL_PLACEHOLDER                                                                            \
    "(?:\\*++|\\$(?:[A-Z0-9_]++|\\{[^}@]*+\\}|\\([^)@]*+\\))|[#@]?\\{[^}]*+\\}|&lt;[^@]*+|"        \
    "[^@" URL_END "]*?\\}\\}|%(?:\\([^)]*+\\)s|[sdvq@]|\\w++%)|x{3,}|\\.{3}|"                      \
    "(?i:(?:your|my)?[-_]?(?:pass|password|passwd|pwd)))@"

/* ---- the table ---- */

/* If two rules match at the same byte, the first one names the kind. `words`, in small letters, are
 * such that each match contains one of them in any case; a text without them is not searched. NULL:
 * there are none. */
static const struct rule {
    const char *kind, *pattern, *words;
} rules[] = {
    /* URLs */
    {"password",
     ":(?://|\\\\/\\\\/)[^@:?#,()" URL_END "]*+:\\K(?!" URL_PLACEHOLDER
     "|[0-9]++[?#,;()\\[\\]])[^" URL_END "]+(?=@)",
     ":// :\\/"},
    {"private-key", /* with its END within 32 KiB */
     KEY_BEGIN "(?=(?:[^-]++|" KEY_DASH ")*+-----END )(?=[\\s\\S]{0,32768}?-----END )"
               "(?:[^-A-Za-z0-9+/=]++|" KEY_DASH "|(?!" KEY_RUN ")[A-Za-z0-9+/=]++)*+" KEY_RUN
               "(?:[^-]++|" KEY_DASH ")*+" KEY_END,
     "-----begin"},
    {"private-key", /* without an END: as long as the lines look like a key */
     KEY_BEGIN "[^\\r\\n\\\\]{0,200}+(?:[\\r\\n\\\\](?![^\\r\\n\\\\]{0,80}-----)"
               "[^\\r\\n\\\\]{0,200}+){0,12}?" KEY_LINE
               "(?:[^\\r\\n\\\\]{0,12}(?:\\\\n[^\\r\\n\\\\]{0,8})?" KEY_LINE ")*+"
               "(?:[^A-Za-z+/=\\n]{0,12}\\n[^A-Za-z+/=\\n]{0,12}+" BASE64 "++(?=[\\r\\n]|\\z))?+",
     "-----begin"},
    {"private-key", /* PuTTY */
     "Private-Lines: [0-9]{1,4}+(?:\\\\r|\\\\n|\\s)++\\K(?:[A-Za-z0-9+/=]{4,64}+"
     "(?:(?:\\\\r)?+\\\\n|\\r?+\\n|(?=[\"\\s]|\\z))){1,400}+",
     "private-lines"},
    {"private-key", /* WireGuard */
     "(?:PrivateKey|PresharedKey)[ \\t]*+=[ \\t]*+\\K[A-Za-z0-9+/]{43}=",
     "privatekey presharedkey"},
    {"bearer-token", "(?i)" WORD "bearer" BLANKS "\\K" ONE_OF_BOTH "[A-Za-z0-9._~+/=-]{20,}+",
     "bearer"},
    {"basic-auth", /* Base64 in which one of three bytes is a colon */
     WORD "(?i:basic)" BLANKS "\\K(?=[I-Za-f])(?=[a-z+/]*+[A-Z0-9])"
          "(?=(?:[A-Za-z0-9+/]{4}){0,100}?(?:O[g-v]|.[DTjz][o-r]|..[AEIMQUYcgkosw048]6))"
          "[A-Za-z0-9+/]{6,}+={0,2}",
     "basic"},
    {"anthropic-key", WORD_PART "sk-ant-[\\w-]{20,}+", "sk-ant-"},
    {"api-key",
     WORD_PART "(?:(?:gsk_|csk-|xai-|pplx-|ntn_|dp\\.pt\\.)" MIXED40 "[^\\W_]{40,}+"
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
               "|[A-Za-z0-9]{14}\\.atlasv1\\.[\\w=-]{60,}+)",
     "gsk_ csk- xai- pplx- ntn_ dp.pt. sk- nvapi- r8_ hf_ fw_ lsv2_ k_live_ k_test_ whsec_ sg. "
     "dop_v1_ npm_ pypi- dckr_ nrak- sntrys_ lin_api_ shpat shpss shppa shpca sq0 hvs. hvb. glsa_ "
     "age-secret sbp_ pscale_ figd_ dapi atatt jina_ tvly- .atlasv1."},
    {"api-key", /* of more services; these have a length of their own or a digit soon */
     "(?=[^\\s\"'(),;<>]{20})" WORD_PART "(?:do[or]_v1_[^\\W_]{40,}+"
     "|ops_eyJ[\\w-]{100,}+=*"
     "|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![\\w-])"
     "|pat[^\\W_]{14}\\.[0-9a-f]{64}(?![0-9a-f])"
     "|dp\\.(?:st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]{2,35}\\.)?" DIGIT "[^\\W_]{40,}+"
     "|dt0[cs][0-9]{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}"
     "|glc_" DIGIT "[\\w+/-]{32,}+=*"
     "|secret_" DIGIT "[^\\W_]{43}(?![\\w-])"
     "|pul-[0-9a-f]{40}(?![0-9a-f])"
     "|pscale_(?:pw|oauth)_" DIGIT "[\\w.-]{32,}(?<!\\.)"
     "|(?:fo1|FlyV1 fm[12]|fm[12][ar]?)_" DIGIT "[\\w+/=,-]{40,}+"
     "|rubygems_[0-9a-f]{48}(?![0-9a-f])"
     "|CLOJARS_[0-9a-z]{60}(?![0-9a-z])"
     "|oy2[a-z0-9]{43}(?![a-z0-9])"
     "|cio[A-Za-z0-9]{32}(?![\\w-])"
     "|dckr_oat_" DIGIT "[\\w-]{20,}+"
     "|sq[pua]_[0-9a-f]{40}(?![0-9a-f])"
     "|bkua_[0-9a-f]{40}(?![0-9a-f])"
     "|CCIPAT_" DIGIT "\\w{40,}+"
     "|PMAK-[0-9a-f]{24}-[0-9a-f]{34}(?![0-9a-f])"
     "|sk\\.eyJ[\\w-]{20,}\\.[\\w-]{16,}+"
     "|pat-(?:na|eu)[0-9]-" HEX "{8}-[0-9a-fA-F-]{27}"
     "|xkeysib-[0-9a-f]{64}-[^\\W_]{16}"
     "|shippo_(?:live|test)_[0-9a-f]{40}"
     "|duffel_(?:live|test)_[\\w=-]{40,}+"
     "|CFPAT-" DIGIT "[\\w-]{40,}+"
     "|tfp_" DIGIT "[\\w.-]{40,}(?<!\\.)"
     "|sl\\.(?:u\\.)?" DIGIT "[\\w=-]{100,}+"
     "|EAA[A-Z]" DIGIT "[^\\W_]{80,}+"
     "|EAAA[EAl][\\w-]{60}(?![\\w-])"
     "|access-(?:sandbox|development|production)-" HEX "{8}-[0-9a-fA-F-]{27}"
     "|access_token\\$(?:production|sandbox)\\$[0-9a-z]{16}\\$[0-9a-f]{32}"
     "|tskey-[a-z]{2,10}-" DIGIT "[\\w-]{20,}+"
     "|pcsk_" DIGIT "\\w{40,}+"
     "|apify_api_[^\\W_]{30,}+"
     "|fc-[0-9a-f]{32}(?![0-9a-f])"
     "|re_" DIGIT "[^\\W_]{6,10}_[^\\W_]{20,}+"
     "|(?:sdk|mob|api)-" HEX "{8}-" HEX "{4}-4" HEX "{3}-[0-9a-fA-F-]{17}(?![\\w-])"
     "|ph[xc]_" DIGIT "[^\\W_]{40,}+"
     "|sgp_(?:" HEX "{16}_|local_)?" HEX "{40}"
     "|sb_secret_" DIGIT "[\\w-]{20,}+"
     "|nfp_[^\\W_]{36}"
     "|pnu_[^\\W_]{36}(?![\\w-])"
     "|rdme_[a-z0-9]{70}"
     "|fio-u-[\\w=-]{64}"
     "|EZ[AT]K[^\\W_]{54}"
     "|API-[A-Z0-9]{26}(?![\\w-])"
     "|sha256~[\\w-]{43}(?![\\w-])"
     "|AKCp[^\\W_]{69}"
     "|cmVmdGtu[^\\W_]{56}"
     "|ATCTT3x" DIGIT "[\\w=-]{60,}+"
     "|ATBB" DIGIT "[^\\W_]{32}(?![\\w-])"
     "|ABSK[A-Za-z0-9+/]{109,}=*"
     "|LTAI[^\\W_]{20}(?![\\w-])"
     "|v1\\.0-[0-9a-f]{24}-[0-9a-f]{146}"
     "|key-[0-9a-f]{32}(?![0-9a-f])"
     "|SK[0-9a-f]{32}(?![0-9a-f])"
     "|[0-9a-f]{32}-us[0-9]{1,2}(?![\\w-])"
     "|[0-9a-f]{36}NRAL"
     "|NR(?:JS|II|IQ|RA)-[\\w-]{19,32}(?![\\w-])"
     "|1//0[\\w-]{40,}+"
     "|p8e-[a-z0-9]{32}(?![\\w-])"
     "|A{22}%?[\\w%]{60,}+"
     "|xprv[1-9A-HJ-NP-Za-km-z]{100,}+"
     "|(?=[5KL][A-Za-z]{0,20}[0-9])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![\\w+/=-]))",
     NULL},
    {"api-key", /* Azure */ "(?<![\\w~.-])[\\w~.-]{3}[78]Q~[\\w~.-]{31,34}", "7q~ 8q~"},
    {"github-token", WORD_PART "(?:gh[pousr]_[^\\W_]{36,}+|github_pat_\\w{50,}+)",
     "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"},
    {"gitlab-token", WORD_PART "gl(?:pat|rt|dt|ptt|cbt|ft|oas)-[\\w.-]{20,}(?<!\\.)",
     "glpat- glrt- gldt- glptt- glcbt- glft- gloas-"},
    {"discord-webhook", "discord(?:app)?\\.com/api/webhooks/" MIXED16 "[\\w/-]{60,}+",
     "api/webhooks"},
    {"aws-key", WORD_PART "A[KS]IA(?![A-Z0-9]{0,9}EXAMPLE)[A-Z0-9]{16}(?![A-Z0-9])", "akia asia"},
    {"slack-token",
     WORD_PART "(?:xapp-|xox[abceoprs]-|xoxd-|xoxe\\.)" MIXED10
               "(?:(?<=d-)[\\w%+/=-]{20,}+|[A-Za-z0-9.-]{20,}(?<!\\.))",
     "xapp- xox"},
    {"slack-webhook", "hooks\\.slack\\.com/" MIXED16 "[A-Za-z0-9/]{40,}+", "hooks.slack"},
    {"google-key",
     WORD_PART "(?:AIza[\\w-]{35,}+|ya29\\." MIXED8 "[\\w.-]{20,}(?<!\\.)"
               "|GOCSPX-[\\w-]{20,}+)",
     "aiza ya29. gocspx-"},
    {"jwt",
     "(?:" WORD "|(?<=[_-])(?=[\\w-]{0,512}\\.))eyJ[\\w-]{7,}+\\."
     "(?:[\\w-]*+\\.[\\w-]{16,}+\\.[\\w-]++\\.[\\w-]{21,}+|eyJ[\\w-]{7,}+\\.[\\w-]{10,}+)",
     "eyj"},
    {"discord-token", /* its first part is the number of an account in Base64 */
     WORD "(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4,6}[\\w-]{0,4}\\.[\\w-]{6,7}\\.[\\w-]{27,}+"
          "|" WORD "[MNO](?=[A-Za-z-]*+[0-9])[\\w-]{22,27}\\.(?=[\\w-]{6}\\.)[\\w-]{6}\\."
          "(?=[\\w-]{0,26}[0-9])(?=[\\w-]{0,26}[A-Z])(?=[\\w-]{0,26}[a-z])[\\w-]{27,40}(?![\\w.-])"
          "|" WORD "mfa\\.[\\w-]{84}",
     NULL},
    {"teams-webhook", "webhook\\.office\\.com/webhookb2/" HEX "[^\\s\"'<>\\\\]{60,}+", "webhookb2"},
    {"private-key", /* a private part of a JSON Web Key, and PEM in Base64 */
     "\"(?:d|p|q|dp|dq|qi|k)\"[ ]?:[ ]?\"\\K(?=[\\w-]*?[0-9])(?=[\\w-]*?[A-Z])(?=[\\w-]*?[a-z])"
     "[\\w-]{40,}+(?=\")"
     "|LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURSBLRVk|BQUklWQVRFIEtFWS|BFQyBQUklWQVRFIEtFWS|"
     "BPUEVOU1NIIFBSSVZBVEUgS0VZ|BEU0EgUFJJVkFURSBLRVk|BFTkNSWVBURUQgUFJJVkFURSBLRVk)[\\w+/"
     "=]{40,}+",
     "\"d\" \"p\" \"q\" \"dp\" \"dq\" \"qi\" \"k\" ls0tls1c"},
    {"telegram-token", "(?<=[0-9]{6}:)AA[\\w-]{33,}+", ":aa"},
    {"password-hash",
     "\\$(?:2[abxy]\\$[0-9]{2}\\$[./A-Za-z0-9]{53}"
     "|(?:[156y]|apr1|gy|7)\\$(?:rounds=[0-9]{1,9}\\$)?+(?:[./A-Za-z0-9]{1,64}\\$){1,2}+"
     "[./A-Za-z0-9]{22,86}+|argon2(?:id|i|d)\\$[\\w=,$+/.-]{40,}+|scrypt\\$[\\w=,$+/.-]{40,}+)"
     "|\\bpbkdf2[_:-]sha[0-9]{1,3}[$:][0-9]{1,8}[$:][\\w+/=.-]{1,64}[$:][\\w+/=.-]{20,}+"
     "|\\{S?SHA[0-9]{0,3}\\}[A-Za-z0-9+/]{27,}+=*+"
     "|:[0-9]{1,10}:\\K(?:" HEX "{32}:" HEX "{32})(?=:::)",
     "$2 $1 $5 $6 $y$ $apr1 $gy $7 $argon2 $scrypt pbkdf2 sha} sha256} sha512} :::"},
    {"api-key", /* headers */
     "(?i)" WORD "(?:(?:proxy-)?authorization|x-api-key|api-key|x-auth-token|x-goog-api-key|"
     "private-token)[\"'\\\\\\] \\t]{0,8}+(?:[:=]|,(?=[ \\t]{0,8}\\\\?[\"']))[\"'\\\\ "
     "\\t" VALUE_BEGIN "]{0,8}+"
     "(?!bearer|basic)(?:[a-z]++" BLANKS ")?+\\K(?!" PLACEHOLDER ")(?:(?![\\w~+/-]*+\\.)" MIXED8
     "|" MIXED16 "|" RUN32 ")[\\w.~+/-]{16,}+=*+(?![(\\[])",
     "authorization api-key auth-token goog-api private-token"},
    {"cookie",
     "(?i)" WORD "(?:set-)?cookie[\"'\\\\]{0,3}+[ \\t]*+[:=][ \\t]*+[\"'\\\\]{0,3}+\\K"
     "[^=\\s;\"'\\\\]{1,64}+=(?!" PLACEHOLDER ")[^;\\s\"'\\\\]{8}[^\\r\\n\"'\\\\]*+",
     "cookie"},
    {"secret", /* values whose name ends in key, token, secret, credential or auth */
     "(?i)" SECRET_NAME "(?:" SEP "\\K" RANDOM "|[ \\t]{1,4}+\\K" MIXED16 RANDOM ")",
     "key token secret cred auth salt"},
    {"secret",
     /* a signature of Azure */ "(?i)" WORD "sig=\\K(?!" PLACEHOLDER ")[a-z0-9%+/=_-]{20,}+",
     "sig="},
    {"secret", /* in quotes with punctuation, such as the keys of Django, WordPress and Laravel */
     "(?i)" SECRET_NAME "(?:" SEP "|[\"'],[ \\t]{0,8}+[\"'])"
     "(?<=[\"'`=" VALUE_BEGIN "])(?:base64:)?+\\K(?!" PLACEHOLDER "|[a-z]++://|[./~])"
     "(?=[^\\s\"'`\\\\]{0,60}?[0-9])(?=[^\\s\"'`\\\\]{0,60}?[a-z])"
     "(?:(?=[^\\s\"'`\\\\]{0,60}?[!@#$%^&*()+=])[^\\s\"'`\\\\<>]{20,200}+(?=[\"'`])"
     "|(?<=base64:)[a-z0-9+/"
     "]{40,}+=*+|(?=[^\\s]{0,40}?[!#$%^&*]{1})[^\"'\\\\\\r\\n]{60,80}+(?=[\"']))",
     "key token secret cred auth salt"},
    {"password", /* in quotes any text, else no words of prose and programs */
     "(?i)" PASSWORD_NAME "(?:" SEP QUOTED "\\K(?!" PLACEHOLDER
     ")[^\\s\"'`\\\\<>]{4,200}+(?=[\"'`\\\\])|" SEP NOT_QUOTED "\\K(?!" PLACEHOLDER
     "|@?[~.]{0,2}/|(?<=:)[-+?]"
     "|[a-z_]\\w*+(?:(?:\\.|::|->)[a-z_]\\w*+)++(?![^\\s]))[#@*(\\[]{0,2}+"
     "(?=[a-z_.]*+[^\\sa-z_.\"'`,;&<>\\\\()\\[\\]{}])"
     "[^\\s\"'`,;&<>\\\\(){}\\[\\]]{4,}+(?![(\\[])"
     "|=\\K(?!" PLACEHOLDER ")#?+[a-z]{6,64}+(?=[&;\\s\"'\\\\]|\\z)"
     "|" SEP QUOTED "\\K" NO_PROSE "[a-z]{2,20}(?:[ -][a-z]{2,20}){2,15}+(?=[\"'`\\\\])"
     "|" SEP QUOTED VALUE_PAIR ")",
     "pass pwd psk kennwort pw"},
    {"password", /* whose name is only `pass`: a symbol, or a digit and letters of both cases */
     "(?i)" BARE_PASS SEP "\\K(?!" PLACEHOLDER "|@?[~.]{0,2}/|[0-9][0-9.,:]*+[a-z%]{0,4}(?![\\w-]))"
     "(?=[^\\s\"'`,;]{0,40}?[a-z])(?:(?=[a-z0-9_.-]{1,40}+[!@#$%^&*+=?~])|(?-i:(?=[^\\s\"']{0,40}?["
     "a-z])"
     "(?=[^\\s\"']{0,40}?[A-Z]))(?=[^\\s\"']{0,40}?[0-9]))"
     "[^\\s\"'`,;&<>\\\\(){}\\[\\]]{5,}+(?![(\\[])",
     "pass"},
    {"password", /* words in a row that are a passphrase or the words of a wallet */
     "(?i)passphrase[\"']?+[ \\t]{0,4}+[:=][ \\t]{0,4}+\\K" NO_PROSE
     "[a-z]{2,20}+(?:[ -][a-z]{2,20}+){3,15}+(?=[ \\t]*+(?:[\\r\\n]|\\\\n|\\z))"
     "|\\b(?:mnemonic|(?:seed|recovery|backup)[ _-]?(?:phrase|words)?)(?:[ _-]?(?:phrase|words))?"
     "(?:[ \\t]{1,4}is)?+[\"']{0,2}+[ \\t]{0,4}+[:=]?+[ \\t\"'`]{0,4}+\\K[a-z]{3,8}(?: "
     "[a-z]{3,8}){11,23}+"
     "(?![a-z])",
     "passphrase mnemonic seed recovery backup"},
    {"password", /* in a sentence: the password is … */
     "(?i)\\b(?:passwor[dt]|passwd|passphrase|passcode|pwd|kennwort)[\"'`*]{0,2}"
     "(?: (?:for|of|to|on|at) [^\\r\\n.:;!?]{1,60}?)?"
     " (?:is|was|ist|will be)(?: (?:now|still|just|currently|set to|changed to))?:?[ \\t]{1,2}+"
     "(?:[\"'`*]{1,2}\\K(?!" PLACEHOLDER ")(?=[^\\s\"'`*]{0,60}?[^a-z\\s\"'`*.,_-])"
     "[^\\s\"'`]{4,100}?(?=[\"'`*])"
     "|(?![\"'`*])\\K(?!" PLACEHOLDER "|" HASHES "|[0-9.]{1,5}[^0-9]|[^\\s]{0,60}?[/(])(?:"
     "(?=[a-z]*+[0-9])(?=[0-9]*+[a-z])[a-z0-9]{6,}+" TOKEN_END "|[0-9]{6,}+" TOKEN_END
     "|(?=[^\\s]{0,60}?[a-z])(?=[^\\s]{0,60}?[0-9])(?=[^\\s]{0,60}?[!@#$%^&*+=?_~])[^\\s\"'`<>]{6,}"
     "(?<![.,;:!?])"
     "|(?-i:(?=[^\\s]{0,60}?[a-z])(?=[^\\s]{0,60}?[A-Z])(?=[^\\s]{0,60}?[0-9]))[\\w.-]{8,}(?<![.,;:"
     "!?-])"
     "|(?=[^\\s]{0,60}?[a-z])[^\\s\"'`<>(]{0,60}[!@#$%^&*+=~][a-z0-9][^\\s\"'`<>]{2,60}(?<![.,;:!?]"
     ")"
     "))",
     "passw passphrase passcode pwd kennwort"},
    {"password", /* the value of a variable that is named beside it */
     "(?i)" PASSWORD_NAME BESIDE "(?!" PLACEHOLDER "|@?[~.]{0,2}/)[^\\s\"'`\\\\<>]{4,200}+",
     "value val"},
    {"secret", "(?i)" SECRET_NAME BESIDE RANDOM, "value val"},
    {"password", /* in XML */
     "(?i)<(?:[\\w.:-]{0,40}?)(?:password|passwd|passphrase|pwd|(?:api|secret|access)[-_]?key|"
     "token|secret)>"
     "\\K(?!" PLACEHOLDER ")[^<>\\s]{4,200}+(?=</)",
     "pass pwd key> token> secret>"},
    {"password", /* in calls and statements of programs */
     "(?i)(?:\\bdefine\\([ ]?[\"']\\w*?(?:password|pass|secret)[\"'],[ \\t]{0,8}+[\"']"
     "|\\b(?:identified[ \\t]++by|with[ \\t]++(?:encrypted[ \\t]++)?password|password)[ \\t]{1,4}+'"
     "|\\bpassword\\('|\\bset_?password\\([\"']|ConvertTo-SecureString[ \\t]++(?:-String[ "
     "\\t]++)?[\"']"
     "|(?:\\bauth[ ]?=[ ]?\\(|BasicAuth\\(|\\.login\\()[ ]?[\"'][^\"'\\r\\n]{1,80}[\"'],[ ]?[\"'])"
     "\\K(?!" PLACEHOLDER ")[^\\s\"'\\\\]{4,200}+(?=[\"'])",
     "define( identified password auth basicauth( .login( securestring"},
    {"password", /* of commands and in .netrc */
     "(?:\\bcurl\\b[^\\r\\n]{0,200}?[ \\t](?:-u|--user)[ =]{0,2}[\"']?[^\\s:\"'$]{1,64}+:"
     "|\\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\\b[^\\r\\n|;]{0,200}?[ \\t]-p[\"']?"
     "|\\bsshpass(?:[ \\t]{1,4}+|\"[^\\r\\n\\[]{0,40}\\[ )-p[ \\t\"']{0,3}+"
     "|--(?:[a-z]{1,16}-)?(?:password|passwd|passphrase|pass)(?:[ \\t]{1,4}+|=)[\"']?"
     "|-(?:store|key|src|dest)(?:store)?pass[ \\t]{1,4}+[\"']?|-(?:pass|passin|passout)[ "
     "\\t]{1,4}+pass:"
     "|\\bredis-cli\\b[^\\r\\n|;]{0,200}?[ \\t](?:-a|--pass)[ \\t]{1,4}+[\"']?"
     "|\\bdocker\\b[^\\r\\n|;]{0,40}?\\blogin\\b[^\\r\\n|;]{0,200}?[ \\t]-p[ \\t]{1,4}+[\"']?"
     "|\\b(?:ldapsearch|ldapadd|ldapmodify)\\b[^\\r\\n|;]{0,200}?[ \\t]-w[ \\t]{1,4}+[\"']?"
     "|\\b(?:mongo|mongosh|mongodump|mongorestore)\\b[^\\r\\n|;]{0,200}?[ \\t]-p[ \\t]{1,4}+[\"']?"
     "|\\b(?:7z|zip|unzip)\\b[^\\r\\n|;]{0,60}?[ \\t](?:-P[ \\t]{1,4}+|-p)[\"']?(?![ \\t])"
     "|\\bhtpasswd\\b[ \\t]-[a-zA-Z]{0,5}b[a-zA-Z]{0,5}[ \\t][^\\s]{1,80}[ \\t][^\\s]{1,80}[ "
     "\\t][\"']?"
     "|\\b(?:smbclient|wget|net)\\b[^\\r\\n|;]{0,200}?[ \\t]-U[ \\t]{0,4}+[^\\s%]{1,64}%"
     "|\\bnmcli\\b[^\\r\\n|;]{0,200}?[ \\t]password[ \\t]{1,4}+[\"']?"
     "|\\bsqlplus[ \\t]{1,4}+[^\\s/]{1,64}/|\\bjdbc:oracle:thin:[^\\s/:@]{1,64}/"
     "|\\becho[ \\t]{1,4}+[\"']?(?=[^\\s|]{1,80}[\"']?[ \\t]{1,4}\\|[ \\t]{0,4}sudo[ \\t]-S)"
     "|\\becho[ \\t]{1,4}+[\"']?[^\\s:\"']{1,40}:(?=[^\\s|]{1,80}[\"']?[ \\t]{1,4}\\|[ "
     "\\t]{0,4}(?:sudo[ \\t])?chpasswd)"
     "|:(?:543[0-9]|6432):[^:\\s]{1,64}:[^:\\s]{1,64}:|\\b(?:requirepass|masterauth)[ \\t]{1,4}+"
     "|\\bWIFI:(?:[A-RT-Z]:[^;]{0,40};|S:[^;]{0,64};){0,4}P:"
     "|\\b(?:username|enable|secret|password)\\b[^\\r\\n]{0,60}?[ ](?:password|secret)[ ][05789][ "
     "](?=[^\\s]*[0-9$])"
     "|\\blogin(?:\\s|\\\\n){1,8}+[^\\s\\\\]{1,128}+(?:\\s|\\\\n){1,8}+password(?:\\s|\\\\n){1,8}+)"
     "\\K(?!(?i:" PLACEHOLDER "))[^\\s\"'\\\\]{3,}+",
     "curl mysql mariadb sshpass --pass --passw -pass storepass keypass redis-cli docker ldap "
     "mongo 7z zip htpasswd smbclient wget nmcli sqlplus oracle sudo chpasswd :543 :6432 "
     "requirepass masterauth wifi: password login secret"},
    {"password", /* a token as the user of a URL */
     ":(?://|\\\\/\\\\/)\\K(?=[^@:?#,()" URL_END "]{20})" MIXED16 "[^" URL_END "]+(?=@)",
     ":// :\\/"},
};

#define RULES (sizeof rules / sizeof *rules)

/* The name of a secret, up to the word that says so: "Password field", `input[name="pw"]`. */
static const char secret_names[] =
    "(?i)\\A[\\s\\S]*?(?:passwor[dt]|passwd|passphrase|passcode|pass|pwd|kennwort|psk|pw|key|token|"
    "secret|"
    "salt|authorization|auth|credential|cookie|requirepass|masterauth|mnemonic|phrase)"
    "(?=s?(?:[^a-z0-9]|text|box|field|input|data)*+\\z)";

_Static_assert(RULES <= 64, "a rule is a bit of a word");

#define WORDS_MAX 320
#define WORD_BUCKETS 1024

struct word {
    struct str text;
    uint64_t rules;
    uint16_t next; /* the next one with the same two first bytes, from 1, or 0 */
};

struct redactor {
    struct regex *regex[RULES];   /* NULL until a text may match */
    struct regex *name;           /* the name of a secret (secret_name) */
    size_t at[RULES], end[RULES]; /* the next match of each rule; at is SIZE_MAX without one */
    struct word words[WORDS_MAX];
    size_t word_n;
    uint16_t buckets[WORD_BUCKETS]; /* the first word, from 1, or 0 */
    uint64_t wordless;              /* the rules that have no words */
};

/* ---- words ---- */

static size_t bucket_of(const char *p)
{
    unsigned a = (unsigned char)ascii_lower(p[0]), b = (unsigned char)ascii_lower(p[1]);

    return (a * 33 ^ b * 5) % WORD_BUCKETS;
}

static void join_words(struct redactor *r, size_t rule)
{
    struct str rest = str_of(rules[rule].words), text;

    if (!rest.p)
        r->wordless |= (uint64_t)1 << rule;
    while ((text = str_word(&rest)).p && r->word_n < WORDS_MAX) {
        uint16_t *bucket = &r->buckets[bucket_of(text.p)];

        r->words[r->word_n] = (struct word){text, (uint64_t)1 << rule, *bucket};
        *bucket = (uint16_t)++r->word_n;
    }
}

static bool starts_lower(const char *p, struct str word)
{
    size_t i = 0;

    while (i < word.n && ascii_lower(p[i]) == word.p[i])
        i++;
    return i == word.n;
}

/* Returns the rules that can match in a text. */
static uint64_t rules_for(const struct redactor *r, struct str text)
{
    uint64_t found = r->wordless;

    for (size_t i = 0; i + 1 < text.n; i++) {
        for (size_t w = r->buckets[bucket_of(text.p + i)]; w > 0; w = r->words[w - 1].next) {
            const struct word *word = &r->words[w - 1];

            if ((found & word->rules) != word->rules && text.n - i >= word->text.n &&
                starts_lower(text.p + i, word->text))
                found |= word->rules;
        }
    }
    return found;
}

struct redactor *redactor_new(struct err *e)
{
    struct redactor *r = mem_zalloc(sizeof *r);

    r->name = regex_new_bytes(str_of(secret_names), e);
    for (size_t i = 0; i < RULES; i++)
        join_words(r, i);
    if (r->name)
        return r;
    redactor_free(r);
    return NULL;
}

/* Returns the expression of a rule, or NULL if PCRE2 refuses it. Most texts need few of them, and to
 * compile all takes longer than a search. */
static struct regex *regex_of(struct redactor *r, size_t rule)
{
    if (!r->regex[rule])
        r->regex[rule] = regex_new_bytes(str_of(rules[rule].pattern), NULL);
    return r->regex[rule];
}

void redactor_free(struct redactor *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < RULES; i++)
        regex_free(r->regex[i]);
    regex_free(r->name);
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

/* ---- matches ---- */

/* A part of a text that a rule matches, and of the text in which it is replaced. */
struct span {
    size_t begin, end;
    const char *kind;
};

struct spans {
    struct span *items;
    size_t n, cap;
};

static void add_span(struct spans *s, size_t begin, size_t end, const char *kind)
{
    s->items = mem_grow(s->items, &s->cap, s->n + 1, sizeof *s->items);
    s->items[s->n++] = (struct span){begin, end, kind};
}

/* Finds the match of each rule that comes next after `from`. Returns -1 if that is too expensive.
 */
static int find_matches_after(struct redactor *r, struct str text, size_t from, uint64_t possible)
{
    for (size_t i = 0; i < RULES; i++) {
        size_t n = 0;
        int found;

        if (from > 0 ? r->at[i] >= from : !(possible >> i & 1)) {
            r->at[i] = from > 0 ? r->at[i] : SIZE_MAX;
            continue;
        }
        found =
            regex_of(r, i) ? regex_find(r->regex[i], text, from, false, &r->at[i], &n, NULL) : -1;
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

/* Adds the secrets in text, in order. Returns -1 if a search is too expensive. */
static int find_secrets(struct redactor *r, struct str text, struct spans *found)
{
    struct buf without = BUF_INIT(SIZE_MAX);
    size_t *place = make_plain(text, &without);
    struct str plain = place ? buf_str(&without) : text;
    uint64_t possible = rules_for(r, plain);
    size_t end = 0, rule = 0;
    int rc;

    while ((rc = find_matches_after(r, plain, end, possible)) == 0 &&
           (rule = first_match(r, &end)) < RULES)
        add_span(found, place ? place[r->at[rule]] : r->at[rule], place ? place[end - 1] + 1 : end,
                 rules[rule].kind);
    free(place);
    buf_release(&without);
    return rc;
}

/* Adds the text with the spans replaced, which are in order. Returns how many that are; one that
 * begins in the one before only makes that longer. */
static size_t replace_spans(struct str text, const struct span *span, size_t n, struct buf *out)
{
    size_t from = 0, count = 0;

    for (size_t i = 0; i < n; i++) {
        if (count == 0 || span[i].begin >= from) {
            buf_add(out, text.p + from, span[i].begin - from);
            buf_addf(out, "[redacted %s]", span[i].kind);
            count++;
        }
        if (span[i].end > from)
            from = span[i].end;
    }
    buf_add_str(out, str_skip(text, from));
    return count;
}

/*
 * ---- JSON ----
 *
 * A secret in JSON is known by its name, and the two are in different strings. So
 * the rules search one text that is made of the whole value, its view:
 *
 *   - keys and strings without their escapes, in quotes; numbers unchanged: "password":"x", "n":1
 *   - the elements of an array without quotes, with blanks between them: [mysql -u root -px ]
 *   - then, as "NAME":"VALUE", pairs that are not side by side above: of members such as "name" and
 *     "value" of one object, of a member and the elements of its array, of an option and the
 *     element after it; and members whose name is that of a password, with marks round the value
 *
 * Each leaf, a key or a value that is no object or array, knows where its text is in the view. What
 * a match has in common with that text is replaced in the leaf. A string that is itself an object
 * or array has its own view.
 */

#define NO_LEAF SIZE_MAX
/* The longest name of a pair, its shortest and longest value, and the number of pairs in a view. */
#define PAIR_NAME_MAX 100
#define PAIR_VALUE_MIN 4
#define PAIR_VALUE_MAX 4096
#define PAIRS_MAX 4096
/* The number of elements of an array that have the name of the array. */
#define NAMED_ELEMENTS 64
/* How many times JSON is looked for in a string of JSON. */
#define NESTED_MAX 4

struct leaf {
    const char *json; /* the token */
    size_t at, n;     /* its text in the view */
};

/* A string that is JSON and has secrets: what replaces its text, in view.clean. */
struct nested {
    size_t leaf, at, n, count;
};

struct pair {
    size_t name, value; /* leaves */
    bool quoted;        /* false: the value has to look like a secret, too */
    size_t at;          /* the offset of the value in the view */
};

/* An object or array that is open. Names are leaves. */
struct level {
    bool object, at_key;
    size_t inherited;   /* the name of the object or array itself */
    size_t key;         /* the offset of the next member's name */
    size_t name, value; /* the members that are called so; in an array the first two strings */
    size_t count;       /* of elements of an array */
    size_t last;        /* the element before, if it is a string */
};

/* The part of a leaf that a match covers. */
struct hit {
    size_t leaf;
    struct span span;
};

struct view {
    struct buf text, clean;
    struct leaf *leaves;
    struct nested *nested;
    struct pair *pairs;
    struct level *levels;
    struct hit *hits;
    size_t leaf_n, leaf_cap, nested_n, nested_cap, pair_n, pair_cap, level_n, level_cap, hit_n,
        hit_cap;
};

#define VIEW_INIT                                                                                  \
    {                                                                                              \
        .text = BUF_INIT(SIZE_MAX), .clean = BUF_INIT(SIZE_MAX)                                    \
    }

static void view_release(struct view *v)
{
    buf_release(&v->text);
    buf_release(&v->clean);
    free(v->leaves);
    free(v->nested);
    free(v->pairs);
    free(v->levels);
    free(v->hits);
}

static struct str leaf_text(const struct view *v, size_t leaf)
{
    return (struct str){buf_c(&v->text) + v->leaves[leaf].at, v->leaves[leaf].n};
}

/* Returns the text of a leaf up to the word that makes it the name of a secret, or STR_NONE. */
static struct str secret_name(struct redactor *r, const struct view *v, size_t leaf)
{
    struct str name = leaf_text(v, leaf);
    size_t at, n;

    if (name.n > PAIR_NAME_MAX || regex_find(r->name, name, 0, false, &at, &n, NULL) <= 0)
        return STR_NONE;
    return (struct str){name.p, at + n};
}

static void add_pair(struct redactor *r, struct view *v, size_t name, size_t value, bool quoted)
{
    if (name == NO_LEAF || value == NO_LEAF || v->pair_n == PAIRS_MAX ||
        v->leaves[value].n < PAIR_VALUE_MIN || v->leaves[value].n > PAIR_VALUE_MAX ||
        !secret_name(r, v, name).p)
        return;
    v->pairs = mem_grow(v->pairs, &v->pair_cap, v->pair_n + 1, sizeof *v->pairs);
    v->pairs[v->pair_n++] = (struct pair){.name = name, .value = value, .quoted = quoted};
}

/* Returns whether a key is one of the words, in any case, or ends in the last one. */
static bool key_is_called(struct str key, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);

        if (str_eq_lower(!words[1] && key.n > n ? str_skip(key, key.n - n) : key, *words))
            return true;
    }
    return false;
}

/* Returns the innermost object or array that is open, or NULL. */
static struct level *top_level(const struct view *v)
{
    return v->level_n > 0 ? &v->levels[v->level_n - 1] : NULL;
}

/* An element or the value of a member. */
static void add_view_value(struct redactor *r, struct view *v, size_t leaf, bool string)
{
    static const char *const names[] = {"key",      "header",    "field",   "variable", "var",
                                        "env",      "option",    "flag",    "arg",      "argument",
                                        "param",    "parameter", "prop",    "property", "setting",
                                        "selector", "element",   "label",   "id",       "attribute",
                                        "column",   "target",    "locator", "name",     NULL};
    static const char *const values[] = {"val",    "text",    "content", "data",
                                         "string", "v",       "plain",   "plaintext",
                                         "secure", "default", "value",   NULL};
    struct level *l = top_level(v);

    if (!l)
        return;
    if (!l->object) {
        size_t option =
            l->last != NO_LEAF && v->leaves[l->last].n > 0 && *leaf_text(v, l->last).p == '-'
                ? l->last
                : NO_LEAF;

        add_pair(r, v, option, leaf, true);
        if (l->count < NAMED_ELEMENTS)
            add_pair(r, v, l->inherited, leaf, true);
        l->last = string ? leaf : NO_LEAF;
        if (l->count == 0)
            l->name = l->last;
        else if (l->count == 1)
            l->value = l->last;
        return;
    }
    if (key_is_called(leaf_text(v, l->key), values)) {
        if (l->value == NO_LEAF)
            l->value = leaf;
        add_pair(r, v, l->inherited, leaf, true);
        return;
    }
    if (string && l->name == NO_LEAF && key_is_called(leaf_text(v, l->key), names))
        l->name = leaf;
    add_pair(r, v, l->key, leaf, true);
}

static void open_container(struct view *v, bool object)
{
    const struct level *parent = top_level(v);
    size_t name = !parent ? NO_LEAF : parent->object ? parent->key : parent->inherited;

    v->levels = mem_grow(v->levels, &v->level_cap, v->level_n + 1, sizeof *v->levels);
    v->levels[v->level_n++] = (struct level){.object = object,
                                             .at_key = object,
                                             .inherited = name,
                                             .key = NO_LEAF,
                                             .name = NO_LEAF,
                                             .value = NO_LEAF,
                                             .last = NO_LEAF};
    buf_add_c(&v->text, object ? "{" : "[ ");
}

static void close_level(struct redactor *r, struct view *v)
{
    const struct level *l = top_level(v);

    if (!l)
        return;
    v->level_n--;
    if (l->object || l->count == 1)
        add_pair(r, v, l->name, l->value, l->object);
    buf_add_c(&v->text, l->object ? "}" : " ]");
}

static size_t redact_nested(struct redactor *r, struct str json, struct buf *out, int depth);

/* Adds the text of a leaf to the view, unless it is JSON. */
static void add_leaf(struct redactor *r, struct view *v, struct str token, int depth)
{
    struct leaf leaf = {token.p, v->text.len, 0};
    struct str text, json;

    if (*token.p == '"')
        json_decode(token, &v->text);
    else
        buf_add_str(&v->text, token);
    text = str_skip(buf_str(&v->text), leaf.at);
    json = str_trim(text);
    if (*token.p == '"' && depth < NESTED_MAX && json.n > 1 && (*json.p == '{' || *json.p == '[') &&
        json_check(text, &json, NULL)) {
        struct nested nested = {.leaf = v->leaf_n, .at = v->clean.len};

        buf_add(&v->clean, text.p, (size_t)(json.p - text.p));
        nested.count = redact_nested(r, json, &v->clean, depth + 1);
        buf_add_str(&v->clean, str_skip(text, (size_t)(json.p + json.n - text.p)));
        nested.n = v->clean.len - nested.at;
        buf_truncate(&v->text, leaf.at);
        if (nested.count > 0) {
            v->nested = mem_grow(v->nested, &v->nested_cap, v->nested_n + 1, sizeof nested);
            v->nested[v->nested_n++] = nested;
        }
    }
    leaf.n = v->text.len - leaf.at;
    v->leaves = mem_grow(v->leaves, &v->leaf_cap, v->leaf_n + 1, sizeof leaf);
    v->leaves[v->leaf_n++] = leaf;
}

/* Returns the length of the token at the start of s: a JSON string with its quotes, a number or a
 * word. */
static size_t leaf_length(struct str s)
{
    size_t n = 0;

    if (*s.p == '"') {
        for (n = 1; s.p[n] != '"'; n++)
            n += s.p[n] == '\\';
        return n + 1;
    }
    while (n < s.n && !strchr(",]} \t\r\n", s.p[n]))
        n++;
    return n;
}

static void add_string_or_number(struct redactor *r, struct view *v, struct str token, int depth)
{
    struct level *l = top_level(v);
    const char *quote = *token.p == '"' && (!l || l->object) ? "\"" : "";
    size_t leaf = v->leaf_n;

    buf_add_c(&v->text, quote);
    add_leaf(r, v, token, l && l->at_key ? NESTED_MAX : depth);
    buf_add_c(&v->text, quote);
    if (l && l->at_key)
        l->key = leaf;
    else
        add_view_value(r, v, leaf, *token.p == '"');
}

/* Adds the whole of a JSON value to the view, without its pairs. */
static void add_json_to_view(struct redactor *r, struct view *v, struct str json, int depth)
{
    while (json.n > 0) {
        struct level *l = top_level(v);
        size_t n = 1;

        switch (*json.p) {
        case ' ':
        case '\t':
        case '\r':
        case '\n':
            break;
        case '{':
        case '[':
            open_container(v, *json.p == '{');
            break;
        case '}':
        case ']':
            close_level(r, v);
            break;
        case ':':
            if (l)
                l->at_key = false;
            buf_add_byte(&v->text, ':');
            break;
        case ',':
            if (!l)
                break;
            l->at_key = l->object;
            l->count++;
            buf_add_c(&v->text, l->object ? ", " : " ");
            break;
        default:
            n = leaf_length(json);
            add_string_or_number(r, v, (struct str){json.p, n}, depth);
        }
        json = str_skip(json, n);
    }
}

static void add_pairs(struct redactor *r, struct view *v)
{
    struct buf text = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < v->pair_n; i++) {
        struct pair *p = &v->pairs[i];

        buf_add_c(&text, p->quoted ? "\n\"" : "\n");
        buf_add_str(&text, secret_name(r, v, p->name));
        buf_add_c(&text, p->quoted ? "\":\"" VALUE_BEGIN : ": ");
        p->at = v->text.len + text.len;
        buf_add_str(&text, leaf_text(v, p->value));
        buf_add_c(&text, p->quoted ? VALUE_END "\"" : "");
    }
    buf_add_c(&text, "\n");
    buf_add_str(&v->text, buf_str(&text));
    buf_release(&text);
}

/* Notes what a match has in common with a leaf whose text is at `at` in the view. */
static void add_hit(struct view *v, size_t leaf, size_t at, const struct span *match)
{
    const struct leaf *l = &v->leaves[leaf];
    size_t begin = match->begin > at ? match->begin - at : 0;
    size_t end = match->end > at ? match->end - at : 0;

    if (*l->json != '"' && begin < l->n && end > 0)
        begin = 0, end = l->n; /* a part of a number would not be JSON */
    if (end > l->n)
        end = l->n;
    if (begin >= end)
        return;
    v->hits = mem_grow(v->hits, &v->hit_cap, v->hit_n + 1, sizeof *v->hits);
    v->hits[v->hit_n++] = (struct hit){leaf, {begin, end, match->kind}};
}

/* Notes the leaves that a match covers. */
static void add_match(struct view *v, const struct span *match)
{
    size_t low = 0, high = v->leaf_n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (v->leaves[middle].at + v->leaves[middle].n <= match->begin)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < v->leaf_n && v->leaves[low].at < match->end; low++)
        add_hit(v, low, v->leaves[low].at, match);
    for (high = v->pair_n; high > 0 && v->pairs[high - 1].at >= match->begin; high--)
        ;
    for (low = high > 0 ? high - 1 : 0; low < v->pair_n && v->pairs[low].at < match->end; low++)
        add_hit(v, v->pairs[low].value, v->pairs[low].at, match);
}

static int by_place(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;

    if (x->leaf != y->leaf)
        return x->leaf < y->leaf ? -1 : 1;
    return x->span.begin != y->span.begin ? (x->span.begin < y->span.begin ? -1 : 1)
           : x->span.end != y->span.end   ? (x->span.end > y->span.end ? -1 : 1)
                                          : 0;
}

/* Finds the secrets in the view; if that is too expensive, in each leaf alone. */
static void find_view_secrets(struct redactor *r, struct view *v)
{
    struct spans found = {0};

    if (find_secrets(r, buf_str(&v->text), &found) == 0) {
        for (size_t i = 0; i < found.n; i++)
            add_match(v, &found.items[i]);
    } else {
        for (size_t i = 0; i < v->leaf_n; i++) {
            found.n = 0;
            if (find_secrets(r, leaf_text(v, i), &found) < 0)
                found.n = 0, add_span(&found, 0, v->leaves[i].n, "text");
            for (size_t k = 0; k < found.n; k++) {
                found.items[k].begin += v->leaves[i].at;
                found.items[k].end += v->leaves[i].at;
                add_hit(v, i, v->leaves[i].at, &found.items[k]);
            }
        }
    }
    free(found.items);
    if (v->hit_n > 0)
        qsort(v->hits, v->hit_n, sizeof *v->hits, by_place);
}

/* Adds the JSON with the hits and the nested JSON replaced. Returns how many secrets that are. */
static size_t add_redacted(struct view *v, struct str json, struct buf *out)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct spans spans = {0};
    size_t count = 0, hit = 0, nested = 0;
    const char *from = json.p, *end = json.p + json.n;

    while (hit < v->hit_n || nested < v->nested_n) {
        bool inside =
            hit == v->hit_n || (nested < v->nested_n && v->nested[nested].leaf < v->hits[hit].leaf);
        size_t leaf = inside ? v->nested[nested].leaf : v->hits[hit].leaf;
        const char *at = v->leaves[leaf].json;

        buf_add(out, from, (size_t)(at - from));
        from = at + leaf_length((struct str){at, (size_t)(end - at)});
        if (inside) {
            struct nested *n = &v->nested[nested++];

            json_add_string(out, (struct str){buf_c(&v->clean) + n->at, n->n});
            count += n->count;
            continue;
        }
        for (spans.n = 0; hit < v->hit_n && v->hits[hit].leaf == leaf; hit++)
            add_span(&spans, v->hits[hit].span.begin, v->hits[hit].span.end,
                     v->hits[hit].span.kind);
        buf_clear(&text);
        count += replace_spans(leaf_text(v, leaf), spans.items, spans.n, &text);
        json_add_string(out, buf_str(&text));
    }
    buf_add(out, from, (size_t)(end - from));
    free(spans.items);
    buf_release(&text);
    return count;
}

static size_t redact_nested(struct redactor *r, struct str json, struct buf *out, int depth)
{
    struct view v = VIEW_INIT;
    size_t count;

    add_json_to_view(r, &v, json, depth);
    add_pairs(r, &v);
    find_view_secrets(r, &v);
    count = add_redacted(&v, json, out);
    view_release(&v);
    return count;
}

size_t redact_json(struct redactor *r, struct str json, struct buf *out)
{
    return redact_nested(r, json, out, 0);
}
