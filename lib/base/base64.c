#include "chathist/base/base64.h"

void base64_add(struct buf *out, struct str bytes)
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
