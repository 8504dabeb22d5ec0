#include "llm/uri.h"

#include <string.h>

/* The components; p is NULL where one is absent. */
struct uri {
    struct str scheme, authority, path, query, fragment;
};

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* How long the scheme at the start is, 0 when there is none. */
static size_t scheme_length(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == ':')
            return i;
        if (!is_alpha(c) &&
            (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')))
            return 0;
    }
    return 0;
}

static struct str part(const char *from, const char *to)
{
    return (struct str){from, (size_t)(to - from)};
}

/* Where one of the characters stands first, or the end. */
static const char *find_any(const char *p, const char *end, const char *chars)
{
    while (p < end && !(*p && strchr(chars, *p)))
        p++;
    return p;
}

static struct uri parse(struct str s)
{
    struct uri u = {STR_NONE, STR_NONE, STR_NONE, STR_NONE, STR_NONE};
    const char *p = s.n ? s.p : "", *end = p + s.n, *next;
    size_t scheme = scheme_length(s);

    if (scheme) {
        u.scheme = part(p, p + scheme);
        p += scheme + 1;
    }
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        next = find_any(p + 2, end, "/?#");
        u.authority = part(p + 2, next);
        p = next;
    }
    next = find_any(p, end, "?#");
    u.path = part(p, next);
    p = next;
    if (p < end && *p == '?') {
        next = find_any(p, end, "#");
        u.query = part(p + 1, next);
        p = next;
    }
    if (p < end)
        u.fragment = part(p + 1, end);
    return u;
}

/* Adds a path without its `.` and `..` segments (section 5.2.4). */
static void add_path(struct buf *out, struct str path)
{
    size_t start = out->len;

    for (struct str rest = path; rest.p;) {
        struct str segment = str_cut(&rest, '/');
        bool up = str_eq_c(segment, "..");

        if (up) {
            /* Drops the segment before, and its slash comes anew. */
            size_t len = out->len > start ? out->len - 1 : start;

            while (len > start && out->data[len - 1] != '/')
                len--;
            buf_truncate(out, len);
            if (len == start && path.n && path.p[0] == '/')
                buf_add_byte(out, '/');
        } else if (!str_eq_c(segment, ".")) {
            buf_add_str(out, segment);
            if (rest.p)
                buf_add_byte(out, '/');
        }
    }
}

/* The reference's path seen from the base's (section 5.2.3). */
static void add_merged(struct buf *out, const struct uri *base, struct str path)
{
    struct buf merged = BUF_INIT(BUF_SMALL);
    size_t kept = base->path.n;

    while (kept && base->path.p[kept - 1] != '/')
        kept--;
    if (base->authority.p && base->path.n == 0)
        buf_add_byte(&merged, '/');
    buf_add(&merged, base->path.p, kept);
    buf_add_str(&merged, path);
    add_path(out, buf_str(&merged));
    buf_release(&merged);
}

void uri_resolve(struct buf *out, struct str base, struct str reference, struct str *fragment)
{
    struct uri b = parse(base), r = parse(reference);
    struct str query = r.query;
    const struct uri *place = r.scheme.p ? &r : &b;
    struct str authority = r.scheme.p || r.authority.p ? r.authority : b.authority;

    *fragment = r.fragment;
    if (place->scheme.p) {
        buf_add_str(out, place->scheme);
        buf_add_byte(out, ':');
    }
    if (authority.p) {
        buf_add_c(out, "//");
        buf_add_str(out, authority);
    }
    if (r.scheme.p || r.authority.p || (r.path.n && r.path.p[0] == '/')) {
        add_path(out, r.path);
    } else if (r.path.n == 0) {
        buf_add_str(out, b.path);
        if (!r.query.p)
            query = b.query;
    } else {
        add_merged(out, &b, r.path);
    }
    if (query.p) {
        buf_add_byte(out, '?');
        buf_add_str(out, query);
    }
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool uri_decode(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '%') {
            buf_add_byte(out, text.p[i]);
            continue;
        }
        if (text.n - i < 3 || hex(text.p[i + 1]) < 0 || hex(text.p[i + 2]) < 0)
            return false;
        buf_add_byte(out, (char)(hex(text.p[i + 1]) * 16 + hex(text.p[i + 2])));
        i += 2;
    }
    return true;
}
