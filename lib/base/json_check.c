#include "chathist/base/json_check.h"

#include <stdint.h>
#include <string.h>

#include "chathist/base/simd_text.h"
#include "chathist/base/utf8.h"

/*
 * One scanner reads every byte of a history, so its common case is a tight loop: the plain text
 * inside strings. It builds nothing and recurses nowhere; open brackets wait on a stack of
 * JSON_DEPTH bytes.
 */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex_digit(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* The following move *at behind what they take; on failure it stays on the offending byte. */

static bool take_escape(const char **at, const char *end)
{
    const char *p = *at + 1;
    int digits = 0;

    *at = p;
    if (p == end)
        return false;
    switch (*p) {
    case 'u':
        digits = 4;
        break;
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        break;
    default:
        return false;
    }
    for (p++; digits; digits--, p++) {
        *at = p;
        if (p == end || !is_hex_digit(*p))
            return false;
    }
    *at = p;
    return true;
}

/* A run of text beyond ASCII, whose words may be parted by single blanks. */
static bool take_utf8(const char **at, const char *end)
{
    do {
        *at += utf8_valid_beyond_ascii((struct str){*at, (size_t)(end - *at)});
    } while (end - *at > 1 && (*at)[0] == ' ' && (unsigned char)(*at)[1] >= 0x80 && ++*at);
    return *at == end || (unsigned char)**at < 0x80;
}

static bool take_string(const char **at, const char *end)
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
        if (!(*p == '\\' ? take_escape(&p, end) : take_utf8(&p, end))) {
            *at = p;
            return false;
        }
    }
}

static bool take_digits(const char **at, const char *end)
{
    const char *p = *at;

    while (p < end && is_digit(*p))
        p++;

    bool some = p > *at;

    *at = p;
    return some;
}

static bool take_number(const char **at, const char *end)
{
    if (*at < end && **at == '-')
        (*at)++;
    if (*at < end && **at == '0')
        (*at)++;
    else if (!take_digits(at, end))
        return false;
    if (*at < end && **at == '.') {
        (*at)++;
        if (!take_digits(at, end))
            return false;
    }
    if (*at < end && (**at == 'e' || **at == 'E')) {
        (*at)++;
        if (*at < end && (**at == '+' || **at == '-'))
            (*at)++;
        if (!take_digits(at, end))
            return false;
    }
    return true;
}

static bool take_word(const char **at, const char *end, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

/* `"key" :` with the white space round it. */
static bool take_key(const char **at, const char *end, struct str *key)
{
    *at = skip_space(*at, end);
    key->p = *at + 1;
    if (!take_string(at, end))
        return false;
    key->n = (size_t)(*at - 1 - key->p);
    *at = skip_space(*at, end);
    return take_word(at, end, ":");
}

static bool take_scalar(const char **at, const char *end)
{
    switch (**at) {
    case '"':
        return take_string(at, end);
    case 't':
        return take_word(at, end, "true");
    case 'f':
        return take_word(at, end, "false");
    case 'n':
        return take_word(at, end, "null");
    default:
        return take_number(at, end);
    }
}

/* The brackets that are open, each as the one that will close it. */
struct nest {
    json_member *member; /* is told those of the outermost object; NULL: nobody is */
    void *ctx;
    struct str key;       /* the last one */
    struct str outer_key; /* the last of the outermost object, and where its value begins */
    const char *value;
    size_t depth;
    bool too_deep;
    char close[JSON_DEPTH];
};

/* Not all of it is set: the stack is large, and there is much to be checked. */
static void nest_begin(struct nest *nest, json_member *member, void *ctx)
{
    nest->member = member;
    nest->ctx = ctx;
    nest->depth = 0;
    nest->too_deep = false;
}

/* `[` or `{`, and the first key. *empty when it closes at once. */
static bool take_open(const char **at, const char *end, struct nest *nest, bool *empty)
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
    return close == ']' || take_key(at, end, &nest->key);
}

/* What follows a value: closing brackets, or a comma and the next key; nothing at depth 0. */
static bool take_after(const char **at, const char *end, struct nest *nest)
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
        return take_word(at, end, ",") && (close == ']' || take_key(at, end, &nest->key));
    }
    return true;
}

static bool take_value(const char **at, const char *end, struct nest *nest)
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

            if (!take_open(at, end, nest, &empty))
                return false;
            taken = empty;
        } else {
            if (!take_scalar(at, end))
                return false;
            taken = true;
        }
        if (taken && !take_after(at, end, nest))
            return false;
    } while (nest->depth);
    return true;
}

static bool check(struct str text, struct str *value, size_t *at, json_member *member, void *ctx)
{
    const char *start = text.n ? text.p : "";
    const char *end = start + text.n;
    const char *first = skip_space(start, end);
    const char *p = first;
    struct nest nest;

    nest_begin(&nest, member, ctx);

    bool valid = take_value(&p, end, &nest);

    if (valid) {
        *value = (struct str){first, (size_t)(p - first)};
        p = skip_space(p, end);
        valid = p == end;
    }
    if (!valid && at)
        *at = (size_t)(p - start);
    return valid;
}

bool json_check_behind(struct str object, size_t at, struct str *value, json_member *member,
                       void *ctx)
{
    const char *end = object.p + object.n;
    const char *p = object.p + at;
    struct nest nest;

    nest_begin(&nest, member, ctx);
    nest.close[nest.depth++] = '}';
    if (!take_key(&p, end, &nest.key) || !take_value(&p, end, &nest))
        return false;
    *value = (struct str){object.p, (size_t)(p - object.p)};
    return skip_space(p, end) == end;
}

bool json_check(struct str text, struct str *value, size_t *at)
{
    return check(text, value, at, NULL, NULL);
}

bool json_check_members(struct str text, struct str *value, json_member *member, void *ctx)
{
    return check(text, value, NULL, member, ctx);
}

bool json_too_deep(struct str text)
{
    const char *p = text.n ? text.p : "";
    const char *end = p + text.n;
    struct nest nest;

    nest_begin(&nest, NULL, NULL);
    return !take_value(&p, end, &nest) && nest.too_deep;
}
