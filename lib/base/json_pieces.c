#include "chathist/base/json_pieces.h"

#include <stddef.h>

#include "chathist/base/json.h"
#include "chathist/base/utf8.h"

/* \uXXXX */
#define ESCAPE ((size_t)6)

static struct str behind(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

/* The unit of the escape at the start of s: -1 when none is there. */
static int32_t unit_at(struct str s)
{
    if (s.n < ESCAPE || s.p[0] != '\\' || s.p[1] != 'u')
        return -1;
    return json_hex4(s.p + 2, s.p + s.n);
}

/* Adds what was held, with its second half at the start of the piece or without one; returns the
 * rest of the piece. */
static struct str add_held(struct json_pieces *p, struct str body, struct buf *out)
{
    int32_t pair = json_pair(p->half, unit_at(body));
    char bytes[4];

    if (pair < 0) {
        json_pieces_end(p, out);
        return body;
    }
    p->half = 0;
    buf_add(out, bytes, utf8_encode(pair, bytes));
    return behind(body, ESCAPE);
}

/* Takes a first half off the end of the piece. A backslash behind another one begins no escape. */
static struct str hold(struct json_pieces *p, struct str body)
{
    size_t slashes = 0, start;
    int32_t unit;

    if (body.n < ESCAPE)
        return body;
    start = body.n - ESCAPE;
    unit = unit_at(behind(body, start));
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
    body = hold(p, add_held(p, body, out));
    json_decode_body(body, out);
}

void json_pieces_end(struct json_pieces *p, struct buf *out)
{
    if (p->half != 0)
        buf_add_c(out, UTF8_REPLACEMENT);
    p->half = 0;
}
