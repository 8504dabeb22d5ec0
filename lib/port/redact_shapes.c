#include "port/redact_shapes.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define BASE64 ALNUM "+/="

/* A private key is not longer. */
#define PEM_MAX ((size_t)32 << 10)

static bool starts_nocase(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.n >= n && strncasecmp(s.p, prefix, n) == 0;
}

/* ---- private keys ---- */

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

/* The names of functions in a program that reads such keys do not. */
static bool looks_base64(struct str run)
{
    bool digit = false, upper = false, lower = false;

    for (size_t i = 0; i < run.n; i++) {
        digit = digit || is_one_of(run.p[i], DIGITS);
        upper = upper || is_one_of(run.p[i], UPPER);
        lower = lower || is_one_of(run.p[i], LOWER);
    }
    return run.n >= 20 && digit && upper && lower;
}

/* May a line of a key begin at s.p[at]? Numbers, quotes and the name of a file may stand before it,
 * words may not. */
static bool begins_line(struct str s, size_t at)
{
    size_t from = at;

    while (from > 0 && !is_one_of(s.p[from - 1], "\r\n\\"))
        from--;
    while (from < at && !is_one_of(s.p[from], UPPER LOWER))
        from++;
    return from == at || !memchr(s.p + from, ' ', at - from);
}

/* The start of the next run of Base64 in s that looks like a line of a key, with its length in *n;
 * s.n when there is none among the first `within` bytes. */
static size_t next_body(struct str s, size_t within, size_t *n)
{
    for (size_t at = 0; at < s.n && at <= within; at += *n ? *n : 1) {
        *n = run_of(skip(s, at), BASE64);
        if (looks_base64((struct str){s.p + at, *n}))
            return at;
    }
    return s.n;
}

/* The rest of a key's last line: as in the lines before, no word stands before it. */
static size_t last_body(struct str s)
{
    size_t at = 0, n;

    while (at < s.n && at <= 24 && !is_one_of(s.p[at], UPPER LOWER "+/="))
        at++;
    if (at == 0 || !memchr(s.p, '\n', at))
        return 0;
    n = run_of(skip(s, at), BASE64);
    return at + n == s.n || is_one_of(s.p[at + n], "\r\n") ? at + n : 0;
}

/* How far one goes that has no end: line after line, headers before the first. */
static size_t cut_off(struct str s)
{
    size_t end = 0, n = 0, at, within = 512;

    while ((at = next_body(skip(s, end), within, &n)) < s.n - end &&
           begins_line(skip(s, end), at)) {
        end += at + n;
        within = 24;
    }
    return end > 0 ? end + last_body(skip(s, end)) : 0;
}

bool find_pem(struct str s, struct secret *found)
{
    size_t begin = pem_line(s, "-----BEGIN "), at = begin, n;

    if (begin == 0)
        return false;
    if (s.n > PEM_MAX)
        s.n = PEM_MAX;
    while (at < s.n) {
        const char *dash = memchr(s.p + at, '-', s.n - at);

        at = dash ? (size_t)(dash - s.p) : s.n;
        if ((n = pem_line(skip(s, at), "-----END ")) > 0) {
            struct str body = {s.p + begin, at - begin};

            *found = (struct secret){"private-key", 0, at + n};
            return next_body(body, body.n, &n) < body.n;
        }
        /* That of another key, the first was cut off. */
        if (pem_line(skip(s, at), "-----BEGIN ") > 0)
            break;
        at += at < s.n;
    }
    n = cut_off((struct str){s.p + begin, at - begin});
    *found = (struct secret){"private-key", 0, begin + n};
    return n > 0;
}

/* ---- headers ---- */

/* Blanks, also as they are written in URLs and in JSON within JSON. */
static size_t blanks(struct str s)
{
    size_t n = 0;

    for (;;) {
        struct str rest = skip(s, n);

        if (str_starts(rest, STR(" ")) || str_starts(rest, STR("\t")))
            n++;
        else if (str_starts(rest, STR("%20")))
            n += strlen("%20");
        else if (str_starts(rest, STR("\\t")))
            n += strlen("\\t");
        else
            return n;
    }
}

/* No word is so long, and no name in a program but few. */
static bool looks_random(struct str value)
{
    return longest_run(value, true) >= 8 || longest_run(value, false) >= 32;
}

bool find_bearer(struct str s, struct secret *found)
{
    size_t at = strlen("Bearer"), n;

    if (!starts_nocase(s, "Bearer") || blanks(skip(s, at)) == 0)
        return false;
    at += blanks(skip(s, at));
    n = run_of(skip(s, at), ALNUM "._~+/=-");
    *found = (struct secret){"bearer-token", at, n};
    return n >= 20 && looks_random((struct str){s.p + at, n});
}

/* Is it Base64 of `user:password`? (RFC 7617) */
static bool is_user_pass(struct str base64)
{
    static const char digits[] = UPPER LOWER DIGITS "+/";
    struct buf text = BUF_INIT(BUF_SMALL);
    unsigned bits = 0, have = 0;
    bool plain = base64.n % 4 != 1;

    for (size_t i = 0; i < base64.n && plain; i++) {
        bits = (bits << 6 | (unsigned)(strchr(digits, base64.p[i]) - digits)) & 0xffff;
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        buf_add_byte(&text, (char)(bits >> have & 0xff));
        plain = (bits >> have & 0xff) >= ' ' && (bits >> have & 0xff) != 0x7f;
    }
    plain = plain && text.len > 0 && memchr(text.data, ':', text.len) &&
            utf8_valid(buf_str(&text)) == text.len;
    buf_release(&text);
    return plain;
}

bool find_basic(struct str s, struct secret *found)
{
    size_t at = strlen("Basic"), n;

    if (!starts_nocase(s, "Basic") || blanks(skip(s, at)) == 0)
        return false;
    at += blanks(skip(s, at));
    n = run_of(skip(s, at), ALNUM "+/");
    *found = (struct secret){"basic-auth", at, n + run_of(skip(s, at + n), "=")};
    return n >= 6 && is_user_pass((struct str){s.p + at, n});
}

/* What stands between a header's name and its value: `: `, `": "`, `'] = '`, `", "`. */
static size_t header_mark(struct str s)
{
    size_t at = run_of(s, "\"'\\] \t"), more;
    char mark;

    if (at == s.n || !is_one_of(s.p[at], ":=,"))
        return 0;
    mark = s.p[at++];
    more = run_of(skip(s, at), "\"'\\ \t");
    if (mark == ',' && !memchr(s.p + at, '"', more) && !memchr(s.p + at, '\'', more))
        return 0;
    return at + more;
}

/* The word before the value of `Authorization`. */
static size_t scheme_mark(struct str s)
{
    size_t n = run_of(s, UPPER LOWER), gap = blanks(skip(s, n));

    return n > 0 && gap > 0 ? n + gap : 0;
}

bool find_header(struct str s, struct secret *found)
{
    static const char *const names[] = {
        "authorization", "proxy-authorization", "x-api-key",     "api-key",
        "x-auth-token",  "x-goog-api-key",      "private-token",
    };
    const char *name = NULL;
    struct str value;
    size_t at, mark;

    for (size_t i = 0; i < sizeof names / sizeof *names && !name; i++)
        name = starts_nocase(s, names[i]) ? names[i] : NULL;
    if (!name || (mark = header_mark(skip(s, strlen(name)))) == 0)
        return false;
    at = strlen(name) + mark;
    /* They have finders of their own. */
    if (starts_nocase(skip(s, at), "Bearer") || starts_nocase(skip(s, at), "Basic"))
        return false;
    if (strstr(name, "authorization"))
        at += scheme_mark(skip(s, at));
    value = (struct str){s.p + at, run_of(skip(s, at), ALNUM "._~+/-")};
    value.n += run_of(skip(s, at + value.n), "=");
    /* The caller comes to a token of another kind; what is called or indexed is a program's. */
    if (value.n < 16 || find_token(skip(s, at), found) || find_jwt(skip(s, at), found) ||
        (at + value.n < s.n && is_one_of(s.p[at + value.n], "([_")) ||
        longest_run(value, true) < (memchr(value.p, '.', value.n) ? 16 : 8))
        if (longest_run(value, false) < 32)
            return false;
    *found = (struct secret){"api-key", at, value.n};
    return true;
}

/* ---- URLs ---- */

/* Is it all of `OPEN…CLOSE`, closed once? */
static bool is_within(struct str s, const char *open, char close)
{
    struct str start = str_of(open);

    return str_starts(s, start) && s.n > start.n && memchr(s.p, close, s.n) == s.p + s.n - 1;
}

/* Variables and formats, `$PASSWORD`, `${password}`, `{password}`, `%s`, `***`, are no
 * passwords. */
static bool is_placeholder(struct str s)
{
    return run_of(s, "*") == s.n ||
           (s.p[0] == '$' && run_of(skip(s, 1), UPPER DIGITS "_") == s.n - 1) ||
           is_within(s, "${", '}') || is_within(s, "$(", ')') || is_within(s, "{", '}') ||
           is_within(s, "#{", '}') || is_within(s, "@{", '}') || str_starts(s, STR("&lt;")) ||
           str_ends(s, STR("}}")) ||
           (s.p[0] == '%' && ((str_starts(s, STR("%(")) && str_ends(s, STR(")s"))) ||
                              (s.n == 2 && is_one_of(s.p[1], "sdvq@")) ||
                              (s.p[s.n - 1] == '%' && run_of(skip(s, 1), ALNUM "_") == s.n - 2)));
}

/* `host:8080?…` and `(http://host:8080),…` have a port there. */
static bool is_port(struct str s)
{
    size_t n = run_of(s, DIGITS);

    return n > 0 && n < s.n && is_one_of(s.p[n], "?#,;()[]");
}

/* A token without a password or with one that is none, as `x-oauth-basic`. */
static bool find_user_token(struct str user, size_t at, size_t n, struct secret *found)
{
    if (!find_token(user, found) && !find_jwt(user, found)) {
        if (user.n < 20 || longest_run(user, true) < 16)
            return false;
        found->kind = "password";
    }
    found->at = at;
    found->n = n;
    return true;
}

bool find_userinfo(struct str s, struct secret *found)
{
    static const char ends[] = " \t\r\n\\\"'`<>/";
    struct str scheme = str_starts(s, STR(":\\/\\/")) ? STR(":\\/\\/") : STR("://"), info, user,
               pass;
    size_t n = 0, last = 0;

    if (!str_starts(s, scheme))
        return false;
    info = skip(s, scheme.n);
    for (; n < info.n && info.p[n] != '\0' && !is_one_of(info.p[n], ends); n++)
        if (info.p[n] == '@')
            last = n;
    info.n = last;
    pass = info;
    user = str_cut(&pass, ':');
    if (last == 0 || memchr(user.p, '?', user.n) || memchr(user.p, '#', user.n) ||
        memchr(user.p, ',', user.n) || memchr(user.p, '(', user.n) || memchr(user.p, ')', user.n))
        return false;
    if (find_user_token(user, scheme.n, info.n, found))
        return true;
    if (!pass.p || pass.n == 0 || is_placeholder(pass) || is_port(pass))
        return false;
    *found = (struct secret){"password", (size_t)(pass.p - s.p), pass.n};
    return true;
}
