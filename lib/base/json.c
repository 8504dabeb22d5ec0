#include "chathist/base/json.h"

#include <string.h>

#include "chathist/base/simd.h"
#include "chathist/base/utf8.h"

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && ascii_is_space(*p))
        p++;
    return p;
}

/* ---- checking ----
 *
 * This scanner reads every byte of a history, so its common case, plain text inside strings, is a
 * tight loop. It builds nothing and does not recurse: the open brackets are on a stack of
 * JSON_DEPTH bytes. */

/* The functions below move *at past the text that they accept. On failure *at stays at the
 * offending byte. */

static bool check_escape(const char **at, const char *end)
{
    const char *p = ++*at;

    if (p == end || !strchr("u\"\\/bfnrt", *p) || *p == '\0')
        return false;
    (*at)++;
    for (int i = 0; *p == 'u' && i < 4; i++, (*at)++)
        if (*at == end || ascii_hex_value(**at) < 0)
            return false;
    return true;
}

/* Accepts a run of text beyond ASCII, including single blanks between its words. */
static bool check_utf8(const char **at, const char *end)
{
    const char *p = *at;

    for (;;) {
        p += utf8_valid_beyond_ascii((struct str){p, (size_t)(end - p)});
        if (end - p < 2 || p[0] != ' ' || (unsigned char)p[1] < 0x80)
            break;
        p++;
    }
    *at = p;
    return p == end || (unsigned char)*p < 0x80;
}

static bool check_string(const char **at, const char *end)
{
    const char *p = *at;

    if (p == end || *p != '"')
        return false;
    for (p++;;) {
        p = simd_special(p, end);
        *at = p;
        if (p == end || (unsigned char)*p < 0x20)
            return false;
        if (*p == '"') {
            *at = p + 1;
            return true;
        }
        if (!(*p == '\\' ? check_escape(&p, end) : check_utf8(&p, end))) {
            *at = p;
            return false;
        }
    }
}

static bool check_digits(const char **at, const char *end)
{
    const char *p = *at;

    while (p < end && ascii_is_digit(*p))
        p++;

    bool some = p > *at;

    *at = p;
    return some;
}

static bool check_number(const char **at, const char *end)
{
    if (*at < end && **at == '-')
        (*at)++;
    if (*at < end && **at == '0')
        (*at)++;
    else if (!check_digits(at, end))
        return false;
    if (*at < end && **at == '.') {
        (*at)++;
        if (!check_digits(at, end))
            return false;
    }
    if (*at < end && (**at == 'e' || **at == 'E')) {
        (*at)++;
        if (*at < end && (**at == '+' || **at == '-'))
            (*at)++;
        if (!check_digits(at, end))
            return false;
    }
    return true;
}

static bool check_word(const char **at, const char *end, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

/* Accepts `"key" :` with white space around it. */
static bool check_key(const char **at, const char *end, struct str *key)
{
    *at = skip_space(*at, end);
    key->p = *at + 1;
    if (!check_string(at, end))
        return false;
    key->n = (size_t)(*at - 1 - key->p);
    *at = skip_space(*at, end);
    return check_word(at, end, ":");
}

static bool check_scalar(const char **at, const char *end)
{
    switch (**at) {
    case '"':
        return check_string(at, end);
    case 't':
        return check_word(at, end, "true");
    case 'f':
        return check_word(at, end, "false");
    case 'n':
        return check_word(at, end, "null");
    default:
        return check_number(at, end);
    }
}

/* The open brackets, each stored as the bracket that closes it. */
struct nest {
    json_member *member; /* called for each member of the outermost object; may be NULL */
    void *ctx;
    struct str key;       /* the last key */
    struct str outer_key; /* the last key of the outermost object, and where its value begins */
    const char *value;
    size_t depth;
    bool too_deep;
    char close[JSON_DEPTH];
};

/* Leaves most fields unset, because the stack is large and this runs for every text. */
static void nest_begin(struct nest *nest, json_member *member, void *ctx)
{
    nest->member = member;
    nest->ctx = ctx;
    nest->depth = 0;
    nest->too_deep = false;
}

/* Accepts `[` or `{`, and the first key. *empty is set if the bracket is closed at once. */
static bool check_open(const char **at, const char *end, struct nest *nest, bool *empty)
{
    char close = **at == '{' ? '}' : ']';

    if (nest->depth == JSON_DEPTH) {
        nest->too_deep = true;
        return false;
    }
    *at = skip_space(*at + 1, end);
    *empty = *at < end && **at == close;
    if (*empty) {
        (*at)++;
        return true;
    }
    nest->close[nest->depth++] = close;
    return close == ']' || check_key(at, end, &nest->key);
}

/* Accepts the text after a value: closing brackets, or a comma and the next key. At depth 0 there
 * may be nothing. */
static bool check_after(const char **at, const char *end, struct nest *nest)
{
    while (nest->depth) {
        char close = nest->close[nest->depth - 1];

        if (nest->depth == 1 && close == '}' && nest->member)
            nest->member(nest->ctx, nest->outer_key,
                         (struct str){nest->value, (size_t)(*at - nest->value)});
        *at = skip_space(*at, end);
        if (*at == end)
            return false;
        if (**at == close) {
            (*at)++;
            nest->depth--;
            continue;
        }
        return check_word(at, end, ",") && (close == ']' || check_key(at, end, &nest->key));
    }
    return true;
}

static bool check_value(const char **at, const char *end, struct nest *nest)
{
    do {
        bool taken;

        *at = skip_space(*at, end);
        if (*at == end)
            return false;
        if (nest->depth == 1) {
            nest->outer_key = nest->key;
            nest->value = *at;
        }
        if (**at == '{' || **at == '[') {
            bool empty;

            if (!check_open(at, end, nest, &empty))
                return false;
            taken = empty;
        } else {
            if (!check_scalar(at, end))
                return false;
            taken = true;
        }
        if (taken && !check_after(at, end, nest))
            return false;
    } while (nest->depth);
    return true;
}

static bool check_text(struct str text, struct str *value, size_t *at, json_member *member,
                       void *ctx)
{
    const char *start = text.n ? text.p : "";
    const char *end = start + text.n;
    const char *first = skip_space(start, end);
    const char *p = first;
    struct nest nest;

    nest_begin(&nest, member, ctx);

    bool valid = check_value(&p, end, &nest);

    if (valid) {
        *value = (struct str){first, (size_t)(p - first)};
        p = skip_space(p, end);
        valid = p == end;
    }
    if (!valid && at)
        *at = (size_t)(p - start);
    return valid;
}

bool json_check_from(struct str object, size_t at, struct str *value, json_member *member,
                     void *ctx)
{
    const char *end = object.p + object.n;
    const char *p = object.p + at;
    struct nest nest;

    nest_begin(&nest, member, ctx);
    nest.close[nest.depth++] = '}';
    if (!check_key(&p, end, &nest.key) || !check_value(&p, end, &nest))
        return false;
    *value = (struct str){object.p, (size_t)(p - object.p)};
    return skip_space(p, end) == end;
}

bool json_check(struct str text, struct str *value, size_t *at)
{
    return check_text(text, value, at, NULL, NULL);
}

bool json_check_members(struct str text, struct str *value, json_member *member, void *ctx)
{
    return check_text(text, value, NULL, member, ctx);
}

bool json_too_deep(struct str text)
{
    const char *p = text.n ? text.p : "";
    const char *end = p + text.n;
    struct nest nest;

    nest_begin(&nest, NULL, NULL);
    return !check_value(&p, end, &nest) && nest.too_deep;
}

/* ---- walking ----
 *
 * These functions do not validate again. But they never read beyond the end of the value, so that a
 * caller who forgot json_check gets wrong values, not foreign memory. */

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

/* Returns the place after the closing quote, given the opening quote. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end;) {
        const char *quote = memchr(p, '"', (size_t)(end - p));

        if (!quote)
            return end;

        /* The quote is part of the text if an odd number of backslashes precedes it. */
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
                return p; /* a number or a word ends where its container does */
            if (--depth == 0)
                return p + 1;
        } else if (!depth && (c == ',' || ascii_is_space(c))) {
            return p;
        }
        p++;
    }
    return p;
}

bool json_next_leaf(struct str *rest, struct str *leaf)
{
    const char *p = rest->p, *end = rest->p + rest->n;

    while (rest->n > 0) {
        const char *begin;

        while (p < end && (strchr("{}[],:", *p) || ascii_is_space(*p)) && *p != '\0')
            p++;
        begin = p;
        p = skip_value(p, end);
        *rest = (struct str){p, (size_t)(end - p)};
        *leaf = (struct str){begin, (size_t)(p - begin)};
        p = skip_space(p, end);
        /* A string before a colon is a key. */
        if (leaf->n > 0 && (*begin != '"' || p == end || *p != ':'))
            return true;
    }
    return false;
}

struct json_iter json_iter(struct str value)
{
    struct json_iter it = {STR_NONE, STR_NONE, STR_NONE, json_type(value) == JSON_OBJECT};

    if (it.object || json_type(value) == JSON_ARRAY)
        it.rest = str_skip(value, 1);
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

static bool equal_arrays(struct str a, struct str b)
{
    struct json_iter x = json_iter(a), y = json_iter(b);
    bool more;

    do {
        more = json_next(&x);
        if (more != json_next(&y) || (more && !json_equal(x.value, y.value)))
            return false;
    } while (more);
    return true;
}

/* Returns whether b has every member of a, with the same value if they are compared. */
static bool has_members(struct str b, struct str a, bool compared)
{
    struct buf key = BUF_INIT(SIZE_MAX);
    bool has = true;

    for (struct json_iter it = json_iter(a); has && json_next(&it);) {
        buf_clear(&key);
        json_decode_body(it.key, &key);
        struct str other = json_get(b, buf_c(&key));
        has = other.p && (!compared || json_equal(it.value, other));
    }
    buf_release(&key);
    return has;
}

bool json_equal(struct str a, struct str b)
{
    struct buf x = BUF_INIT(SIZE_MAX), y = BUF_INIT(SIZE_MAX);
    enum json_type type = json_type(a);
    bool equal;

    if (type != json_type(b))
        return false;
    if (type == JSON_OBJECT)
        return has_members(b, a, true) && has_members(a, b, false);
    if (type == JSON_ARRAY)
        return equal_arrays(a, b);
    if (type != JSON_STRING)
        return str_eq(a, b);
    equal = str_eq(json_text(a, &x), json_text(b, &y));
    buf_release(&x);
    buf_release(&y);
    return equal;
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
        int digit = ascii_hex_value(p[i]);

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

/* Returns the code point of a surrogate pair, or -1 if the two are not a pair. */
static int32_t pair_of(int32_t first, int32_t second)
{
    if (first < 0xd800 || first > 0xdbff || second < 0xdc00 || second > 0xdfff)
        return -1;
    return 0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00));
}

/* The characters that have an escape of two characters, and its second character. */
static const char escaped[] = "\"\\\b\f\n\r\t", escape_names[] = "\"\\bfnrt";
/* What a second character stands for, if not for itself. */
static const char unescaped[256] = {
    ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};

/* Writes the character that the escape at *at (a backslash) stands for to out as UTF-8. Returns its
 * length and moves *at past the escape. */
static size_t decode_escape(const char **at, const char *end, char out[4])
{
    const char *p = *at + 1;

    if (p == end) {
        *at = p;
        return 0;
    }
    if (*p != 'u') {
        char c = unescaped[(unsigned char)*p];

        out[0] = c ? c : *p;
        *at = p + 1;
        return 1;
    }

    int32_t cp = json_hex4(p + 1, end);

    p = end - p > 5 ? p + 5 : end;
    if (end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
        int32_t pair = pair_of(cp, json_hex4(p + 2, end));

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
    /* Most keys differ in their first byte. */
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
        want = str_skip(want, n);
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

bool json_is_text(struct str value, const char *text)
{
    return json_type(value) == JSON_STRING && json_key_is(json_body(value), text);
}

bool json_has_type(struct str object, const char *type)
{
    return json_is_text(json_get(object, "type"), type);
}

/* Only an escape that the end of the body cuts off can become longer. */
#define DECODED(n) ((n) + 4)

/* Writes the text of a body to `to`, which has room for DECODED(body.n) bytes. Returns the end of
 * the text. */
static char *decode(struct str body, char *to)
{
    const char *p = body.p, *end = p + body.n;

    while (p < end) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        size_t n = (size_t)((escape ? escape : end) - p);

        memcpy(to, p, n);
        to += n;
        p += n;
        if (p < end)
            to += decode_escape(&p, end, to);
    }
    return to;
}

void json_decode_body(struct str body, struct buf *out)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    bool fits = !out->overflow && DECODED(body.n) <= out->max - out->len;
    struct buf *to = fits ? out : &text;
    char *begin = buf_room(to, DECODED(body.n));

    buf_grew(to, (size_t)(decode(body, begin) - begin));
    if (!fits)
        buf_add_str(out, buf_str(&text));
    buf_release(&text);
}

bool json_decode(struct str string, struct buf *out)
{
    struct str body = json_body(string);

    if (body.p)
        json_decode_body(body, out);
    return body.p != NULL;
}

/* ---- strings in pieces ---- */

/* the length of \uXXXX */
#define ESCAPE ((size_t)6)

/* Returns the UTF-16 unit of the escape at the start of s, or -1 without one. */
static int32_t escape_at(struct str s)
{
    if (s.n < ESCAPE || s.p[0] != '\\' || s.p[1] != 'u')
        return -1;
    return json_hex4(s.p + 2, s.p + s.n);
}

/* Adds the held half, joined with the second half if the piece begins with it. Returns the rest of
 * the piece. */
static struct str add_held(struct json_pieces *p, struct str body, struct buf *out)
{
    int32_t pair = pair_of(p->half, escape_at(body));
    char bytes[4];

    if (pair < 0) {
        json_pieces_end(p, out);
        return body;
    }
    p->half = 0;
    buf_add(out, bytes, utf8_encode(pair, bytes));
    return str_skip(body, ESCAPE);
}

/* Removes a first half from the end of the piece and holds it. A backslash that follows another one
 * does not begin an escape. */
static struct str hold_half(struct json_pieces *p, struct str body)
{
    size_t slashes = 0, start;
    int32_t unit;

    if (body.n < ESCAPE)
        return body;
    start = body.n - ESCAPE;
    unit = escape_at(str_skip(body, start));
    while (slashes < start && body.p[start - slashes - 1] == '\\')
        slashes++;
    if (!json_is_surrogate(unit) || unit > 0xdbff || slashes % 2 != 0)
        return body;
    p->half = unit;
    return (struct str){body.p, start};
}

void json_pieces_add(struct json_pieces *p, struct str string, struct buf *out)
{
    struct str body = json_body(string);

    if (body.n == 0)
        return;
    body = hold_half(p, add_held(p, body, out));
    json_decode_body(body, out);
}

void json_pieces_end(struct json_pieces *p, struct buf *out)
{
    if (p->half != 0)
        buf_add_c(out, UTF8_REPLACEMENT);
    p->half = 0;
}

/* ---- numbers ---- */

/* Reads the exponent after `e`. A huge one is limited to a value that no mantissa can offset. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t value = 0;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end && ascii_is_digit(*p); p++) {
        if (value < INT64_MAX / 100)
            value = value * 10 + (*p - '0');
    }
    return negative ? -value : value;
}

/* Computes m * 10^power + digit. Returns false if the result needs more than 64 bits. */
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
    uint64_t m = 0;    /* the digits up to the last that is not 0 */
    int64_t zeros = 0; /* how many zeros follow it */
    int64_t power = 0; /* minus the number of digits after the point */

    /* If there are more than 64 bits from the first to the last digit that is not 0, the number is
     * out of range or not an integer, whatever its exponent. */
    for (p += negative; p < end && (ascii_is_digit(*p) || *p == '.'); p++) {
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

/* ---- writing ---- */

/* Returns the length of the text at the start of s that needs no escape, neither in a JSON string
 * nor on a terminal. */
static size_t plain_length(struct str s)
{
    size_t i = 0;

    while (i < s.n && s.p[i] >= 0x20 && s.p[i] < 0x7f && s.p[i] != '"' && s.p[i] != '\\')
        i++;
    return i;
}

static void add_escape(struct buf *out, int32_t cp)
{
    const char *name = memchr(escaped, cp, cp < 0x80 ? sizeof(escaped) - 1 : 0);

    if (name) {
        buf_add_byte(out, '\\');
        buf_add_byte(out, escape_names[name - escaped]);
        return;
    }
    if (cp >= 0x10000) {
        cp -= 0x10000;
        buf_addf(out, "\\u%04x", 0xd800u | (unsigned)cp >> 10);
        cp = 0xdc00 | (cp & 0x3ff);
    }
    buf_addf(out, "\\u%04x", (unsigned)cp);
}

void json_add_string(struct buf *out, struct str text)
{
    buf_add_byte(out, '"');
    while (text.n) {
        size_t n = plain_length(text);
        int32_t cp;

        buf_add(out, text.p, n);
        text = str_skip(text, n);
        if (!text.n)
            break;
        n = utf8_decode(text, &cp);
        if (cp < 0)
            buf_add_c(out, UTF8_REPLACEMENT);
        else if (cp < 0x20 || cp == '"' || cp == '\\')
            add_escape(out, cp);
        else
            buf_add(out, text.p, n);
        /* 0: the character is cut off by the end of the text */
        text = str_skip(text, n ? n : text.n);
    }
    buf_add_byte(out, '"');
}

static void add_unhidden(struct buf *out, struct str json, bool (*hidden)(int32_t cp))
{
    while (json.n) {
        size_t plain = 0, n;
        int32_t cp;

        while (plain < json.n && json.p[plain] >= 0x20 && json.p[plain] < 0x7f)
            plain++;
        buf_add(out, json.p, plain);
        json = str_skip(json, plain);
        if (!json.n)
            break;
        n = utf8_decode(json, &cp);
        if (cp < 0)
            buf_add_c(out, UTF8_REPLACEMENT);
        else if (cp == '\r') /* only between tokens, because strings cannot hold one */
            buf_add_byte(out, ' ');
        else if (hidden(cp))
            add_escape(out, cp);
        else
            buf_add(out, json.p, n);
        json = str_skip(json, n ? n : json.n);
    }
}

void json_add_visible(struct buf *out, struct str json)
{
    add_unhidden(out, json, vis_unsafe);
}

void json_add_all_visible(struct buf *out, struct str json)
{
    add_unhidden(out, json, vis_hidden);
}

void json_add_key(struct buf *out, const char *key)
{
    char last = out->len ? out->data[out->len - 1] : '{';

    if (last != '{' && last != '[' && last != ':')
        buf_add_byte(out, ',');
    json_add_string(out, str_of(key));
    buf_add_byte(out, ':');
}

void json_add_member(struct buf *out, const char *key, struct str text)
{
    json_add_key(out, key);
    json_add_string(out, text);
}

void json_add_member_int(struct buf *out, const char *key, int64_t n)
{
    json_add_key(out, key);
    buf_addf(out, "%lld", (long long)n);
}

void json_add_compact(struct buf *out, struct str value)
{
    const char *p = value.p, *from = p; /* the text from `from` on is not copied yet */
    const char *end;

    if (value.n == 0)
        return; /* p may be NULL, to which nothing is added */
    end = p + value.n;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
        } else if (ascii_is_space(*p)) {
            buf_add(out, from, (size_t)(p - from));
            from = ++p;
        } else {
            p++;
        }
    }
    if (from < end)
        buf_add(out, from, (size_t)(end - from));
}

void json_add_plain(struct buf *out, struct str json)
{
    struct buf text = BUF_INIT(SIZE_MAX), clean = BUF_INIT(SIZE_MAX);

    for (const char *p = json.p, *end = p + json.n, *from = p; p < end; from = p) {
        p = *p == '"' ? skip_string(p, end) : p + 1;
        if (*from != '"' || !memchr(from, '\\', (size_t)(p - from))) {
            buf_add(out, from, (size_t)(p - from));
            continue;
        }
        buf_clear(&clean);
        for (struct str rest = json_text((struct str){from, (size_t)(p - from)}, &text); rest.n > 0;
             rest = str_skip(rest, 1))
            if (rest.p[0] == '\0')
                buf_add_c(&clean, "\xef\xbf\xbd");
            else
                buf_add_byte(&clean, rest.p[0]);
        json_add_string(out, buf_str(&clean));
    }
    buf_release(&text);
    buf_release(&clean);
}

bool json_add_object(struct buf *out, struct str value)
{
    struct buf text = BUF_INIT(BUF_LINE);
    bool is_text = json_type(value) == JSON_STRING;
    struct str inner;

    if (!is_text && json_type(value) != JSON_OBJECT)
        return false;
    if (is_text && json_decode(value, &text) && json_check(buf_str(&text), &inner, NULL) &&
        json_type(inner) == JSON_OBJECT)
        value = inner;
    json_add_compact(out, value);
    buf_release(&text);
    return true;
}
