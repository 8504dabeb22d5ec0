#include "chathist/base/json.h"

#include <string.h>

#include "chathist/base/utf8.h"

/*
 * What json_check has accepted is not validated again, but nothing is read beyond the end of the
 * value, so that a caller who forgot to check gets wrong values, not foreign memory.
 */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* ---- walking ---- */

enum json_type json_type(struct str value)
{
    if (!value.n)
        return JSON_INVALID;
    switch (value.p[0]) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

/* From the opening quote to behind the closing one. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end;) {
        const char *quote = memchr(p, '"', (size_t)(end - p));

        if (!quote)
            return end;

        /* The quote is text when an odd number of backslashes stands before it. */
        const char *back = quote;

        while (back > p && back[-1] == '\\')
            back--;
        if ((quote - back) % 2 == 0)
            return quote + 1;
        p = quote + 1;
    }
    return end;
}

static const char *skip_value(const char *p, const char *end)
{
    size_t depth = 0;

    while (p < end) {
        char c = *p;

        if (c == '"') {
            p = skip_string(p, end);
            if (!depth)
                return p;
            continue;
        }
        if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (!depth)
                return p; /* the end of what holds a number or a word */
            if (--depth == 0)
                return p + 1;
        } else if (!depth && (c == ',' || is_space(c))) {
            return p;
        }
        p++;
    }
    return p;
}

struct json_iter json_iter(struct str value)
{
    struct json_iter it = {STR_NONE, STR_NONE, STR_NONE, json_type(value) == JSON_OBJECT};

    if (it.object || json_type(value) == JSON_ARRAY)
        it.rest = (struct str){value.p + 1, value.n - 1};
    return it;
}

bool json_next(struct json_iter *it)
{
    if (!it->rest.n)
        return false;

    const char *end = it->rest.p + it->rest.n;
    const char *p = skip_space(it->rest.p, end);

    if (p < end && *p == ',')
        p = skip_space(p + 1, end);
    if (p == end || *p == '}' || *p == ']') {
        it->rest = STR_NONE;
        return false;
    }
    if (it->object) {
        const char *key = p + 1;

        p = skip_string(p, end);
        it->key = (struct str){key, p > key ? (size_t)(p - key) - 1 : 0};
        p = skip_space(p, end);
        if (p < end && *p == ':')
            p = skip_space(p + 1, end);
    }

    const char *value = p;

    p = skip_value(p, end);
    it->value = (struct str){value, (size_t)(p - value)};
    it->rest = (struct str){p, (size_t)(end - p)};
    return true;
}

void json_pick(struct str object, const char *const *keys, struct str *values, size_t n)
{
    struct json_iter it = json_iter(object);

    for (size_t i = 0; i < n; i++)
        values[i] = STR_NONE;
    if (!it.object)
        return;
    while (json_next(&it)) {
        for (size_t i = 0; i < n; i++)
            if (json_key_is(it.key, keys[i]))
                values[i] = it.value;
    }
}

struct str json_get(struct str object, const char *key)
{
    struct str found;

    json_pick(object, &key, &found, 1);
    return found;
}

struct str json_at(struct str array, size_t i)
{
    struct json_iter it = json_iter(array);

    if (it.object)
        return STR_NONE;
    while (json_next(&it)) {
        if (i-- == 0)
            return it.value;
    }
    return STR_NONE;
}

bool json_is_null(struct str value)
{
    return json_type(value) == JSON_NULL || json_type(value) == JSON_INVALID;
}

bool json_is_true(struct str value)
{
    return str_eq(value, STR("true"));
}

/* ---- strings ---- */

int32_t json_hex4(const char *p, const char *end)
{
    int32_t value = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = is_digit(c)            ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

bool json_is_surrogate(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdfff;
}

int32_t json_pair(int32_t first, int32_t second)
{
    if (first < 0xd800 || first > 0xdbff || second < 0xdc00 || second > 0xdfff)
        return -1;
    return 0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00));
}

/* Puts what the escape at *at (a backslash) stands for into out as UTF-8; returns its length and
 * moves *at behind the escape. */
static size_t decode_escape(const char **at, const char *end, char out[4])
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *p = *at + 1;

    if (p == end) {
        *at = p;
        return 0;
    }
    if (*p != 'u') {
        const char *name = memchr(names, *p, sizeof(names) - 1);

        out[0] = name ? values[name - names] : *p;
        *at = p + 1;
        return 1;
    }

    int32_t cp = json_hex4(p + 1, end);

    p = end - p > 5 ? p + 5 : end;
    if (end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        int32_t pair = json_pair(cp, json_hex4(p + 2, end));

        if (pair >= 0) {
            cp = pair;
            p += 6;
        }
    }
    *at = p;
    return utf8_encode(cp < 0 || json_is_surrogate(cp) ? 0xfffd : cp, out);
}

static bool has_escape(struct str body)
{
    return body.n && memchr(body.p, '\\', body.n);
}

bool json_key_is(struct str raw_key, const char *name)
{
    /* Most keys are told apart by their first byte. */
    if (raw_key.n > 0 && raw_key.p[0] != name[0] && raw_key.p[0] != '\\')
        return false;

    struct str want = str_of(name);

    if (!has_escape(raw_key))
        return str_eq(raw_key, want);

    const char *p = raw_key.p;
    const char *end = p + raw_key.n;

    while (p < end) {
        char bytes[4] = {*p};
        size_t n = 1;

        if (*p == '\\')
            n = decode_escape(&p, end, bytes);
        else
            p++;
        if (!str_starts(want, (struct str){bytes, n}))
            return false;
        want.p += n;
        want.n -= n;
    }
    return want.n == 0;
}

struct str json_body(struct str string)
{
    if (json_type(string) != JSON_STRING || string.n < 2)
        return STR_NONE;
    return (struct str){string.p + 1, string.n - 2};
}

bool json_plain(struct str string)
{
    struct str body = json_body(string);

    return body.p && !has_escape(body);
}

struct str json_text(struct str string, struct buf *scratch)
{
    if (json_plain(string))
        return json_body(string);
    buf_clear(scratch);
    return json_decode(string, scratch) ? buf_str(scratch) : STR_NONE;
}

bool json_has_type(struct str object, const char *type)
{
    struct buf scratch = BUF_INIT(BUF_LINE);
    bool has = str_eq_c(json_text(json_get(object, "type"), &scratch), type);

    buf_release(&scratch);
    return has;
}

void json_decode_body(struct str body, struct buf *out)
{
    const char *p = body.p;
    const char *end = p + body.n;

    /* It becomes no longer. */
    if (!out->overflow && body.n <= out->max - out->len)
        buf_room(out, body.n);
    while (p < end) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        char bytes[4];

        if (!escape)
            escape = end;
        buf_add(out, p, (size_t)(escape - p));
        p = escape;
        if (p < end) {
            size_t n = decode_escape(&p, end, bytes);

            buf_add(out, bytes, n);
        }
    }
}

bool json_decode(struct str string, struct buf *out)
{
    struct str body = json_body(string);

    if (body.p)
        json_decode_body(body, out);
    return body.p != NULL;
}

/* ---- numbers ---- */

/* The exponent behind `e`, held far beyond what any mantissa can make up for. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t value = 0;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end && is_digit(*p); p++) {
        if (value < INT64_MAX / 100)
            value = value * 10 + (*p - '0');
    }
    return negative ? -value : value;
}

/* m * 10^power + digit; false beyond 64 bits. */
static bool append_digit(uint64_t *m, int64_t power, unsigned digit)
{
    for (; power && *m; power--) {
        if (*m > UINT64_MAX / 10)
            return false;
        *m *= 10;
    }
    if (*m > UINT64_MAX - digit)
        return false;
    *m += digit;
    return true;
}

bool json_int(struct str number, int64_t *out)
{
    if (json_type(number) != JSON_NUMBER)
        return false;

    const char *p = number.p;
    const char *end = p + number.n;
    bool negative = *p == '-';
    bool fraction = false;
    uint64_t m = 0;    /* the digits as far as the last that is not 0 */
    int64_t zeros = 0; /* how many 0 follow it */
    int64_t power = 0; /* minus the digits behind the point */

    /* A value that needs more than 64 bits from its first to its last digit that is not 0 is out
     * of range or no integer, whatever its exponent. */
    for (p += negative; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        power -= fraction;
        zeros++;
        if (*p == '0')
            continue;
        if (!append_digit(&m, zeros, (unsigned)(*p - '0')))
            return false;
        zeros = 0;
    }
    if (p < end)
        power += read_exponent(p + 1, end);
    power += zeros;
    if (m == 0) {
        *out = 0;
        return true;
    }

    uint64_t most = (uint64_t)INT64_MAX + negative;

    if (power < 0 || !append_digit(&m, power, 0) || m > most)
        return false;
    *out = negative ? (int64_t)(~m + 1) : (int64_t)m;
    return true;
}
