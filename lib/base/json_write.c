#include "chathist/base/json_write.h"

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"
#include "chathist/base/vis.h"

static struct str skip(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

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
    switch (cp) {
    case '"':
        buf_add_c(out, "\\\"");
        break;
    case '\\':
        buf_add_c(out, "\\\\");
        break;
    case '\b':
        buf_add_c(out, "\\b");
        break;
    case '\f':
        buf_add_c(out, "\\f");
        break;
    case '\n':
        buf_add_c(out, "\\n");
        break;
    case '\r':
        buf_add_c(out, "\\r");
        break;
    case '\t':
        buf_add_c(out, "\\t");
        break;
    default:
        if (cp >= 0x10000) {
            cp -= 0x10000;
            buf_addf(out, "\\u%04x", 0xd800u | (unsigned)cp >> 10);
            cp = 0xdc00 | (cp & 0x3ff);
        }
        buf_addf(out, "\\u%04x", (unsigned)cp);
    }
}

void json_add_string(struct buf *out, struct str text)
{
    buf_add_byte(out, '"');
    while (text.n) {
        size_t n = plain_length(text);
        int32_t cp;

        buf_add(out, text.p, n);
        text = skip(text, n);
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
        text = skip(text, n ? n : text.n);
    }
    buf_add_byte(out, '"');
}

static void add_visible(struct buf *out, struct str json, bool (*hidden)(int32_t cp))
{
    while (json.n) {
        size_t plain = 0, n;
        int32_t cp;

        while (plain < json.n && json.p[plain] >= 0x20 && json.p[plain] < 0x7f)
            plain++;
        buf_add(out, json.p, plain);
        json = skip(json, plain);
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
        json = skip(json, n ? n : json.n);
    }
}

void json_add_visible(struct buf *out, struct str json)
{
    add_visible(out, json, vis_unsafe);
}

void json_add_all_visible(struct buf *out, struct str json)
{
    add_visible(out, json, vis_hidden);
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
    bool in_string = false;
    size_t from = 0; /* where the text that is not yet copied begins */

    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];

        if (in_string && c == '\\') {
            i++; /* the byte after it is not a closing quote */
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            buf_add(out, value.p + from, i - from);
            from = i + 1;
        }
    }
    if (from < value.n)
        buf_add(out, value.p + from, value.n - from);
}

bool json_add_unpacked(struct buf *out, struct str value)
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
