#include "port/redact.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "port/redact_shapes.h"

/* The first part of a token behind `_` or `-` is not longer. */
#define NEAR ((size_t)512)
#define HEX DIGITS "abcdefABCDEF"

/* How many bytes at the end of s are of the set. */
static size_t run_before(struct str s, const char *set)
{
    size_t n = 0;

    while (n < s.n && is_one_of(s.p[s.n - 1 - n], set))
        n++;
    return n;
}

static struct str without_last(struct str s, size_t n)
{
    return (struct str){s.p, s.n > n ? s.n - n : 0};
}

/* Does s end in an escape? Its letters and digits are no part of a word: `\n`, `\033`, `\x1b`,
 * `\u003d` of JSON within JSON and of programs; `%3D` of URLs, also when it was escaped twice;
 * `[32m` of terminals (ECMA-48). */
static bool ends_escape(struct str s)
{
    char last = s.p[s.n - 1];
    struct str before;

    if (is_one_of(last, "nrtbfvae0") && str_ends(without_last(s, 1), STR("\\")))
        return true;
    if (is_one_of(last, LOWER UPPER)) {
        before = without_last(s, 1);
        if (str_ends(without_last(before, run_before(before, DIGITS ";")), STR("[")))
            return true;
    }
    before = without_last(s, 2);
    if (!is_one_of(last, HEX) || before.n == 0 || !is_one_of(s.p[s.n - 2], HEX))
        return false;
    return str_ends(before, STR("%")) || str_ends(before, STR("%25")) ||
           str_ends(before, STR("\\x")) || str_ends(without_last(s, 3), STR("\\")) ||
           str_ends(without_last(s, 4), STR("\\u"));
}

/* May a word begin at text[i]? */
static bool begins_word(struct str text, size_t i)
{
    if (i == 0 || !(is_alnum(text.p[i - 1]) || is_one_of(text.p[i - 1], "_-")))
        return true;
    return is_alnum(text.p[i - 1]) && ends_escape((struct str){text.p, i});
}

/* A row of `eyJ-` is not read to its end from each of them. */
static bool has_near(struct str s, char c)
{
    return memchr(s.p, c, s.n < NEAR ? s.n : NEAR);
}

static bool find_at(struct str text, size_t i, struct secret *found)
{
    struct str s = skip(text, i);
    bool word;

    if (s.p[0] == ':')
        return find_userinfo(s, found) ||
               (run_before((struct str){text.p, i}, DIGITS) >= 6 && find_telegram(s, found));
    if (s.p[0] == '-')
        return find_pem(s, found);
    if (!is_alnum(s.p[0]))
        return false;
    word = begins_word(text, i);
    /* A token may be the last part of a name: `token_…`, `--key-…`. */
    if (!word && text.p[i - 1] != '_' && text.p[i - 1] != '-')
        return false;
    if (find_token(s, found) || ((word || has_near(s, '.')) && find_jwt(s, found)))
        return true;
    if (!word)
        return false;
    switch (s.p[0]) {
    case 'b':
    case 'B':
        return find_bearer(s, found) || find_basic(s, found);
    case 'a':
    case 'A':
    case 'p':
    case 'P':
    case 'x':
    case 'X':
        return find_header(s, found);
    default:
        return false;
    }
}

/* How far the next place is that find_at has to look at: within letters and digits there is none,
 * but behind an escape that they begin with. */
static size_t to_next(struct str text, size_t i)
{
    size_t n = 1;

    if (!is_alnum(text.p[i]) ||
        (i > 0 && (is_alnum(text.p[i - 1]) || is_one_of(text.p[i - 1], "\\%[;"))))
        return 1;
    while (i + n < text.n && is_alnum(text.p[i + n]))
        n++;
    return n;
}

bool redact_text(struct str text, struct buf *out)
{
    struct secret found;
    size_t from = 0, i = 0;

    while (i < text.n) {
        if (!find_at(text, i, &found)) {
            i += to_next(text, i);
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
