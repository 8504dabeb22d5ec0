#include "port/redact.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

#define DIGITS "0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define ALNUM DIGITS UPPER "abcdefghijklmnopqrstuvwxyz"

/* A private key is not longer. */
#define PEM_MAX ((size_t)32 << 10)

/* A part of a text that is to be replaced. */
struct secret {
    const char *kind;
    size_t at, n;
};

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c);
}

static size_t run_of(struct str s, const char *set)
{
    size_t n = 0;

    while (n < s.n && is_one_of(s.p[n], set))
        n++;
    return n;
}

static struct str skip(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

static bool starts_nocase(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.n >= n && strncasecmp(s.p, prefix, n) == 0;
}

/* The longest run of letters and digits that has both; words joined by hyphens have none that is
 * long. */
static size_t random_run(struct str s)
{
    size_t longest = 0;

    for (size_t i = 0; i < s.n; i++) {
        struct str part = {s.p + i, run_of(skip(s, i), ALNUM)};
        size_t digits = 0;

        for (size_t k = 0; k < part.n; k++)
            digits += is_one_of(part.p[k], DIGITS);
        if (digits > 0 && digits < part.n && part.n > longest)
            longest = part.n;
        i += part.n;
    }
    return longest;
}

/* ---- tokens with a prefix ---- */

struct shape {
    const char *kind, *prefix, *set;
    size_t least, most; /* characters behind the prefix; most 0: any number */
    size_t random; /* at least so long must a run of letters and digits be; 0: nothing is asked */
};

/* Of two that fit the first counts. */
static const struct shape shapes[] = {
    {"anthropic-key", "sk-ant-", ALNUM "_-", 20, 0, 0},
    {"api-key", "sk-", ALNUM "_-", 20, 0, 16},
    {"api-key", "gsk_", ALNUM, 40, 0, 40},
    {"api-key", "sk_live_", ALNUM, 16, 0, 16},
    {"api-key", "rk_live_", ALNUM, 16, 0, 16},
    {"api-key", "hf_", ALNUM, 30, 0, 0},
    {"api-key", "npm_", ALNUM, 36, 0, 36},
    {"api-key", "pypi-AgE", ALNUM "_-", 40, 0, 0},
    {"github-token", "ghp_", ALNUM, 36, 0, 0},
    {"github-token", "gho_", ALNUM, 36, 0, 0},
    {"github-token", "ghu_", ALNUM, 36, 0, 0},
    {"github-token", "ghs_", ALNUM, 36, 0, 0},
    {"github-token", "ghr_", ALNUM, 36, 0, 0},
    {"github-token", "github_pat_", ALNUM "_", 50, 0, 0},
    {"gitlab-token", "glpat-", ALNUM "_-.", 20, 0, 0},
    {"aws-key", "AKIA", UPPER DIGITS, 16, 16, 0},
    {"aws-key", "ASIA", UPPER DIGITS, 16, 16, 0},
    {"slack-token", "xoxa-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxb-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxe-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxo-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxp-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxr-", ALNUM "-", 20, 0, 10},
    {"slack-token", "xoxs-", ALNUM "-", 20, 0, 10},
    {"google-key", "AIza", ALNUM "_-", 35, 35, 0},
};

static bool find_token(struct str s, struct secret *found)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *shape = &shapes[i];
        struct str prefix = str_of(shape->prefix);
        size_t n;

        if (!str_starts(s, prefix))
            continue;
        n = run_of(skip(s, prefix.n), shape->set);
        /* The full stop that ends a sentence. */
        while (n > 0 && s.p[prefix.n + n - 1] == '.')
            n--;
        if (n < shape->least || (shape->most > 0 && n > shape->most) ||
            random_run((struct str){s.p + prefix.n, n}) < shape->random)
            continue;
        *found = (struct secret){shape->kind, 0, prefix.n + n};
        return true;
    }
    return false;
}

/* ---- others ---- */

/* Three parts of Base64url, the first two being objects: `{"` is `eyJ`. */
static bool find_jwt(struct str s, struct secret *found)
{
    size_t at = 0;

    for (int part = 0; part < 3; part++) {
        size_t n = run_of(skip(s, at), ALNUM "_-");

        if (n < 10 || (part < 2 && !str_starts(skip(s, at), STR("eyJ"))))
            return false;
        at += n;
        if (part < 2 && (at == s.n || s.p[at++] != '.'))
            return false;
    }
    *found = (struct secret){"jwt", 0, at};
    return true;
}

/* The length of `-----BEGIN … PRIVATE KEY…-----`, or of its END. */
static size_t pem_line(struct str s, const char *which)
{
    struct str prefix = str_of(which), label;

    if (!str_starts(s, prefix))
        return 0;
    label = (struct str){s.p + prefix.n, run_of(skip(s, prefix.n), UPPER DIGITS " ")};
    if (!str_find(label, STR("PRIVATE KEY")) ||
        !str_starts(skip(s, prefix.n + label.n), STR("-----")))
        return 0;
    return prefix.n + label.n + strlen("-----");
}

/* The body may be escaped once more (`\n`), and may have headers (RFC 1421). One that is cut off is
 * a secret as far as it goes. */
static bool find_pem(struct str s, struct secret *found)
{
    size_t at = pem_line(s, "-----BEGIN "), body = 0;

    if (at == 0)
        return false;
    if (s.n > PEM_MAX)
        s.n = PEM_MAX;
    while (at < s.n && pem_line(skip(s, at), "-----END ") == 0) {
        size_t n = run_of(skip(s, at), ALNUM "+/=");

        body = n > body ? n : body;
        if (n == 0 && !is_one_of(s.p[at], " \t\r\n\\,:-"))
            break;
        at += n > 0 ? n : 1;
    }
    if (body < 20)
        return false;
    if (at < s.n)
        at += pem_line(skip(s, at), "-----END ");
    *found = (struct secret){"private-key", 0, at};
    return true;
}

static bool find_bearer(struct str s, struct secret *found)
{
    size_t at = strlen("Bearer"), blanks, n;

    if (!starts_nocase(s, "Bearer"))
        return false;
    blanks = run_of(skip(s, at), " ");
    at += blanks;
    n = run_of(skip(s, at), ALNUM "._~+/=-");
    if (blanks == 0 || n < 20 || random_run((struct str){s.p + at, n}) < 8)
        return false;
    *found = (struct secret){"bearer-token", at, n};
    return true;
}

/* Behind the scheme. Variables and placeholders, `$PASSWORD`, `{password}`, `***`, `[redacted …]`,
 * are no passwords. */
static bool find_password(struct str s, struct secret *found)
{
    static const char ends[] = " \t\r\n\\\"'`<>()/?#@,;";
    size_t at = strlen("://"), n = 0;

    if (!str_starts(s, STR("://")))
        return false;
    while (at < s.n && s.p[at] != ':' && s.p[at] != '\0' && !is_one_of(s.p[at], ends))
        at++;
    if (at == s.n || s.p[at] != ':')
        return false;
    at++;
    while (at + n < s.n && s.p[at + n] != '\0' && !is_one_of(s.p[at + n], ends))
        n++;
    if (n == 0 || at + n == s.n || s.p[at + n] != '@' || is_one_of(s.p[at], "$%{*["))
        return false;
    *found = (struct secret){"password", at, n};
    return true;
}

/* ---- a text ---- */

/* Is text[i] the start of a word, or of a line with a hyphen before it? The letter of an escape in
 * JSON within JSON is no part of a word. */
static bool begins_word(struct str text, size_t i)
{
    if (i > 0 && text.p[i - 1] == '-')
        return i == 1 || !is_one_of(text.p[i - 2], ALNUM "_-");
    if (i == 0 || !is_one_of(text.p[i - 1], ALNUM "_"))
        return true;
    return i >= 2 && text.p[i - 2] == '\\' && is_one_of(text.p[i - 1], "nrtbf");
}

static bool find_at(struct str text, size_t i, struct secret *found)
{
    struct str s = skip(text, i);

    switch (s.p[0]) {
    case ':':
        return find_password(s, found);
    case '-':
        return find_pem(s, found);
    case 'b':
    case 'B':
        return begins_word(text, i) && find_bearer(s, found);
    case 'e':
        return begins_word(text, i) && find_jwt(s, found);
    case 's':
    case 'g':
    case 'r':
    case 'h':
    case 'n':
    case 'p':
    case 'x':
    case 'A':
        return begins_word(text, i) && find_token(s, found);
    default:
        return false;
    }
}

bool redact_text(struct str text, struct buf *out)
{
    struct secret found;
    size_t from = 0, i = 0;

    while (i < text.n) {
        if (!find_at(text, i, &found)) {
            i++;
            continue;
        }
        buf_add(out, text.p + from, i + found.at - from);
        buf_addf(out, "[redacted %s]", found.kind);
        i += found.at + found.n;
        from = i;
    }
    if (from < text.n)
        buf_add(out, text.p + from, text.n - from);
    return from > 0;
}

/* The length of the JSON string at the start of s, quotes included. */
static size_t string_length(struct str s)
{
    size_t n = 1;

    while (n < s.n && s.p[n] != '"')
        n += s.p[n] == '\\' ? 2 : 1;
    return n + 1;
}

bool redact_json(struct str json, struct buf *out)
{
    struct buf text = BUF_INIT(BUF_LINE), clean = BUF_INIT(2 * BUF_LINE);
    bool any = false;

    while (json.n > 0) {
        const char *quote = memchr(json.p, '"', json.n);
        size_t before = quote ? (size_t)(quote - json.p) : json.n;
        struct str string;

        buf_add(out, json.p, before);
        json = skip(json, before);
        if (!quote)
            break;
        string = (struct str){json.p, string_length(json)};
        buf_clear(&text);
        buf_clear(&clean);
        json_decode(string, &text);
        if (redact_text(buf_str(&text), &clean)) {
            json_add_string(out, buf_str(&clean));
            any = true;
        } else {
            buf_add_str(out, string);
        }
        json = skip(json, string.n);
    }
    buf_release(&text);
    buf_release(&clean);
    return any;
}
