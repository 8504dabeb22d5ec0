/*
 * vis: nothing unsafe comes out, valid safe text stays as it is, and it is the same however the
 * stream was cut. The first byte says where to cut.
 */
#include <stdint.h>

#include "chathist/base/utf8.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is it well-formed text without anything unsafe, a CR before a newline excepted? */
static bool is_safe(struct str s)
{
    while (s.n) {
        int32_t cp;
        size_t n = utf8_decode(s, &cp);
        bool line_end = cp == '\r' && s.n > 1 && s.p[1] == '\n';

        if (n == 0 || cp < 0 || (vis_unsafe(cp) && !line_end))
            return false;
        s.p += n;
        s.n -= n;
    }
    return true;
}

static void feed(struct str text, size_t first, size_t step, struct buf *out)
{
    struct vis v = {{0}, 0};

    for (size_t n = first; text.n; n = step) {
        if (n > text.n)
            n = text.n;
        vis_feed(&v, (struct str){text.p, n}, out);
        text.p += n;
        text.n -= n;
    }
    vis_end(&v, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = BUF_INIT(SIZE_MAX), other = BUF_INIT(SIZE_MAX);

    if (!size)
        return 0;

    struct str text = {(const char *)data + 1, size - 1};

    vis_add(&whole, text);
    demand(is_safe(buf_str(&whole)));
    demand(is_safe(text) == str_eq(text, buf_str(&whole)));
    feed(text, data[0] + 1, size, &other);
    demand(str_eq(buf_str(&whole), buf_str(&other)));
    buf_clear(&other);
    feed(text, 1, 1 + data[0] % 4, &other);
    demand(str_eq(buf_str(&whole), buf_str(&other)));

    /* A line is safe, is one line, and stays as it is when it is made a line again. */
    buf_clear(&whole);
    buf_clear(&other);
    vis_add_line(&whole, text, true);
    demand(is_safe(buf_str(&whole)));
    for (size_t i = 0; i < whole.len; i++)
        demand((unsigned char)whole.data[i] >= ' ');
    vis_add_line(&other, buf_str(&whole), true);
    demand(str_eq(buf_str(&whole), buf_str(&other)));
    buf_clear(&whole);
    buf_clear(&other);
    vis_add_line(&whole, text, false);
    vis_add_line(&other, buf_str(&whole), false);
    demand(str_eq(buf_str(&whole), buf_str(&other)));
    buf_release(&whole);
    buf_release(&other);
    return 0;
}
