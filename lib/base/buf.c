#include "chathist/base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"

struct str str_of(const char *s)
{
    return s ? (struct str){s, strlen(s)} : STR_NONE;
}

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_eq_lower(struct str a, const char *lower)
{
    size_t i = 0;

    while (i < a.n && ascii_lower(a.p[i]) == lower[i] && lower[i])
        i++;
    return i == a.n && !lower[i];
}

int str_compare(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return true;
    return false;
}

size_t str_count(struct str s, char byte)
{
    size_t count = 0;

    for (size_t i = 0; i < s.n; i++)
        count += s.p[i] == byte;
    return count;
}

bool str_eq_c(struct str a, const char *b)
{
    return str_eq(a, str_of(b));
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq((struct str){s.p, prefix.n}, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    if (s.n < suffix.n)
        return false;
    if (suffix.n == 0)
        return true;
    return memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n) == 0;
}

struct str str_trim(struct str s)
{
    while (s.n && ascii_is_space(s.p[s.n - 1]))
        s.n--;
    while (s.n && ascii_is_space(s.p[0]))
        s = str_skip(s, 1);
    return s;
}

struct str str_word(struct str *rest)
{
    struct str word = str_trim(*rest);
    size_t n = 0;

    while (n < word.n && !ascii_is_space(word.p[n]))
        n++;
    *rest = n > 0 ? str_skip(word, n) : STR_NONE;
    return n > 0 ? (struct str){word.p, n} : STR_NONE;
}

struct str str_cut(struct str *rest, char c)
{
    struct str whole = *rest;
    const char *at = whole.n ? memchr(whole.p, c, whole.n) : NULL;

    if (!at) {
        *rest = STR_NONE;
        return whole;
    }

    size_t n = (size_t)(at - whole.p);

    *rest = (struct str){at + 1, whole.n - n - 1};
    return (struct str){whole.p, n};
}

const char *str_find(struct str s, struct str part)
{
    if (!s.p)
        return NULL;
    while (s.n >= part.n) {
        const char *at = part.n ? memchr(s.p, part.p[0], s.n - part.n + 1) : s.p;

        if (!at || part.n == 0 || memcmp(at, part.p, part.n) == 0)
            return at;
        s = str_skip(s, (size_t)(at + 1 - s.p));
    }
    return NULL;
}

size_t str_distance(struct str a, struct str b, size_t enough)
{
    static const size_t steps[][2] = {{1, 0}, {0, 1}, {1, 1}, {2, 2}};
    size_t best = enough;
    bool swapped;

    while (a.n > 0 && b.n > 0 && *a.p == *b.p) {
        a = str_skip(a, 1);
        b = str_skip(b, 1);
    }
    if ((a.n == 0 && b.n == 0) || enough == 0)
        return 0;
    swapped = a.n > 1 && b.n > 1 && a.p[0] == b.p[1] && a.p[1] == b.p[0];
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t n;

        if (a.n < steps[i][0] || b.n < steps[i][1] || (steps[i][0] == 2 && !swapped))
            continue;
        n = 1 + str_distance(str_skip(a, steps[i][0]), str_skip(b, steps[i][1]), best - 1);
        best = n < best ? n : best;
    }
    return best;
}

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf)BUF_INIT(max);
}

void buf_release(struct buf *b)
{
    free(b->data);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
    b->overflow = false;
    buf_truncate(b, 0);
}

void buf_truncate(struct buf *b, size_t len)
{
    if (len > b->len || !b->data)
        return;
    b->len = len;
    b->data[len] = '\0';
}

char *buf_detach(struct buf *b)
{
    char *data = b->data ? b->data : mem_copy("", 0);

    b->data = NULL;
    buf_release(b);
    return data;
}

char *buf_room(struct buf *b, size_t n)
{
    if (b->overflow || n > b->max - b->len) {
        b->overflow = true;
        return NULL;
    }
    if (n == SIZE_MAX - b->len)
        mem_exhausted();

    /* cap includes the NUL byte. */
    size_t need = b->len + n + 1;

    if (need > b->cap || !b->data) {
        size_t cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;

        if (cap < 64)
            cap = 64;
        if (b->max < cap)
            cap = b->max + 1;
        if (cap < need)
            cap = need;
        b->data = mem_resize(b->data, cap, 1);
        b->cap = cap;
        b->data[b->len] = '\0';
    }
    return b->data + b->len;
}

void buf_grew(struct buf *b, size_t n)
{
    b->len += n;
    b->data[b->len] = '\0';
}

/* Does the same as buf_room, and returns at once in the most frequent case: there is room already.
 */
static inline char *room(struct buf *b, size_t n)
{
    return n < b->cap - b->len && !b->overflow ? b->data + b->len : buf_room(b, n);
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    char *to = room(b, n);

    if (!to)
        return;
    if (n)
        memcpy(to, p, n);
    buf_grew(b, n);
}

void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.n);
}

void buf_set(struct buf *b, struct str s)
{
    buf_clear(b);
    buf_add_str(b, s);
}

void buf_add_c(struct buf *b, const char *s)
{
    buf_add_str(b, str_of(s));
}

void buf_add_byte(struct buf *b, char c)
{
    char *to = room(b, 1);

    if (!to)
        return;
    *to = c;
    buf_grew(b, 1);
}

void buf_end_line(struct buf *b)
{
    if (b->len > 0 && b->data[b->len - 1] != '\n')
        buf_add_byte(b, '\n');
}

void buf_add_number(struct buf *b, uint64_t n)
{
    char digits[sizeof("18446744073709551615") - 1], *end = digits + sizeof(digits), *p = end;

    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    buf_add(b, p, (size_t)(end - p));
}

void buf_add_scaled(struct buf *b, uint64_t n, const char *gap)
{
    const char *prefix = "kMGTPE";
    uint64_t unit = 1, rounded = n;

    while (rounded / unit >= 1000) {
        uint64_t half;

        unit *= 1000;
        half = n / unit < 100 ? unit / 20 : unit / 2;
        rounded = n > UINT64_MAX - half ? n : n + half;
    }
    buf_add_number(b, rounded / unit);
    if (unit > 1 && rounded / unit < 100)
        buf_addf(b, ".%d", (int)(rounded % unit * 10 / unit));
    buf_add_c(b, gap);
    for (; unit > 1000; unit /= 1000)
        prefix++;
    if (unit > 1)
        buf_add_byte(b, *prefix);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    char text[256], *to;
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(text, sizeof(text), fmt, again);
    va_end(again);
    if (n < 0) { /* the text is longer than INT_MAX */
        b->overflow = true;
    } else if ((size_t)n < sizeof(text)) {
        buf_add(b, text, (size_t)n);
    } else if ((to = buf_room(b, (size_t)n))) {
        /* vsnprintf writes its NUL byte where every buf has one anyway. */
        vsnprintf(to, (size_t)n + 1, fmt, ap);
        buf_grew(b, (size_t)n);
    }
}

void buf_consume(struct buf *b, size_t n)
{
    if (n >= b->len) {
        buf_truncate(b, 0);
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    buf_truncate(b, b->len - n);
}

struct str buf_str(const struct buf *b)
{
    return (struct str){buf_c(b), b->len};
}

const char *buf_c(const struct buf *b)
{
    return b->data ? b->data : "";
}

void buf_add_base64(struct buf *out, struct str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)bytes.p;
    char *to = buf_room(out, (bytes.n + 2) / 3 * 4);

    if (!to)
        return;
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t have = bytes.n - i;
        unsigned group = (unsigned)p[i] << 16 | (have > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                         (have > 2 ? p[i + 2] : 0);

        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = have > 1 ? digits[group >> 6 & 63] : '=';
        *to++ = have > 2 ? digits[group & 63] : '=';
    }
    buf_grew(out, (bytes.n + 2) / 3 * 4);
}
