#include "chathist/base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#include "chathist/base/fold.h"

static unsigned char byte_at(struct str s, size_t i)
{
    return (unsigned char)s.p[i];
}

/* Returns the length of the sequence that a lead byte begins (Unicode table 3-7), or 0 if it begins
 * none, and the range of its second byte. The range excludes overlong forms, surrogates and values
 * above U+10FFFF. Further bytes are 80 to BF. */
static size_t lead_of(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef) {
        if (c == 0xe0)
            *low = 0xa0;
        else if (c == 0xed)
            *high = 0x9f;
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (c == 0xf0)
            *low = 0x90;
        else if (c == 0xf4)
            *high = 0x8f;
        return 4;
    }
    return 0;
}

size_t utf8_decode(struct str s, int32_t *cp)
{
    unsigned char lead = byte_at(s, 0);
    unsigned char low, high;

    if (lead < 0x80) {
        *cp = lead;
        return 1;
    }

    size_t length = lead_of(lead, &low, &high);
    int32_t value = length == 2 ? lead & 0x1f : length == 3 ? lead & 0x0f : lead & 0x07;

    *cp = -1;
    if (length == 0)
        return 1;
    for (size_t i = 1; i < length; i++) {
        if (i == s.n)
            return 0;

        unsigned char c = byte_at(s, i);

        if (c < low || c > high)
            return i;
        value = value << 6 | (c & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *cp = value;
    return length;
}

size_t utf8_encode(int32_t cp, char out[4])
{
    uint32_t c = (uint32_t)cp;

    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (c >> 18 & 0x07));
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Returns the offset after the ASCII text that begins at offset i. It tests eight bytes at a time.
 */
static size_t skip_ascii(struct str s, size_t i)
{
    uint64_t eight;

    for (; s.n - i >= sizeof(eight); i += sizeof(eight)) {
        memcpy(&eight, s.p + i, sizeof(eight));
        if (eight & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < s.n && byte_at(s, i) < 0x80)
        i++;
    return i;
}

static bool continues(struct str s, size_t i)
{
    return (byte_at(s, i) & 0xc0) == 0x80;
}

bool utf8_inside(struct str s, size_t at)
{
    return at > 0 && at < s.n && continues(s, at);
}

/* Returns the length of a code point of two or three bytes whose second byte can be any
 * continuation byte. Most code points beyond ASCII are of this kind. Returns 0 for any other. */
static size_t common_length(struct str s, size_t i)
{
    unsigned char c = byte_at(s, i);

    if (c >= 0xe1 && c <= 0xef && c != 0xed)
        return s.n - i >= 3 && continues(s, i + 1) && continues(s, i + 2) ? 3 : 0;
    return c >= 0xc2 && c <= 0xdf && s.n - i >= 2 && continues(s, i + 1) ? 2 : 0;
}

/* Tests the eight bytes at offset i. Returns 8 if they are four code points of two bytes, 6 if they
 * begin with two of three bytes, otherwise 0. */
static size_t common_eight(struct str s, size_t i)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t eight;

    memcpy(&eight, s.p + i, sizeof(eight));
    /* 110xxxxx 10xxxxxx, four times, where xxxxx has a bit other than the last. */
    if ((eight & UINT64_C(0xc0e0c0e0c0e0c0e0)) == UINT64_C(0x80c080c080c080c0) &&
        !(~((eight & UINT64_C(0x001e001e001e001e)) + UINT64_C(0x7fff7fff7fff7fff)) &
          UINT64_C(0x8000800080008000)))
        return 8;
    /* 1110xxxx 10xxxxxx 10xxxxxx, twice, where xxxx is neither 0000 nor 1101. */
    if ((eight & UINT64_C(0x0000c0c0f0c0c0f0)) == UINT64_C(0x00008080e08080e0) &&
        byte_at(s, i) != 0xe0 && byte_at(s, i) != 0xed && byte_at(s, i + 3) != 0xe0 &&
        byte_at(s, i + 3) != 0xed)
        return 6;
#else
    (void)s;
    (void)i;
#endif
    return 0;
}

size_t utf8_valid_beyond_ascii(struct str s)
{
    size_t i = 0;

    while (i < s.n && byte_at(s, i) >= 0x80) {
        size_t length = s.n - i >= 8 ? common_eight(s, i) : 0;
        int32_t cp = 0;

        if (!length)
            length = common_length(s, i);
        if (!length)
            length = utf8_decode((struct str){s.p + i, s.n - i}, &cp);
        if (cp < 0)
            break;
        i += length;
    }
    return i;
}

size_t utf8_valid(struct str s)
{
    size_t i = 0;

    while (i < s.n) {
        i = skip_ascii(s, i);

        size_t n = utf8_valid_beyond_ascii((struct str){s.p + i, s.n - i});

        if (n == 0)
            break;
        i += n;
    }
    return i;
}

/* The step of every loop over text that may be ill-formed. A sequence that the end of s cuts off
 * counts as ill-formed. */
static size_t decode_whole(struct str s, int32_t *cp)
{
    size_t length = utf8_decode(s, cp);

    return length ? length : s.n;
}

static struct str skip(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
}

void utf8_add_repaired(struct buf *out, struct str s)
{
    while (s.n) {
        size_t valid = utf8_valid(s);
        int32_t cp;

        buf_add(out, s.p, valid);
        s = skip(s, valid);
        if (!s.n)
            break;

        buf_add_c(out, UTF8_REPLACEMENT);
        s = skip(s, decode_whole(s, &cp));
    }
}

struct str utf8_first(struct str s, size_t count)
{
    size_t i = 0;

    for (; count && i < s.n; count--) {
        int32_t cp;

        i += decode_whole(skip(s, i), &cp);
    }
    return (struct str){s.p, i};
}

size_t utf8_count(struct str s)
{
    size_t count = 0;

    for (; s.n; count++) {
        int32_t cp;

        s = skip(s, decode_whole(s, &cp));
    }
    return count;
}

/* Adds the ASCII text at the start of s, folded. Returns the rest. */
static struct str add_ascii_folded(struct buf *out, struct str s)
{
    size_t n = skip_ascii(s, 0);
    char *to = buf_room(out, n);

    if (to) {
        for (size_t i = 0; i < n; i++) {
            char c = s.p[i];

            to[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
        }
        buf_grew(out, n);
    }
    return skip(s, n);
}

void utf8_add_folded(struct buf *out, struct str s)
{
    while (s.n) {
        size_t same = 0; /* the length of the start of s that is its own folding */

        s = add_ascii_folded(out, s);
        while (same < s.n && byte_at(s, same) >= 0x80) {
            int32_t cp;
            size_t length = decode_whole(skip(s, same), &cp);
            int32_t folded = cp < 0 ? cp : fold(cp);

            if (folded == cp) {
                same += length;
                continue;
            }

            char bytes[4];

            buf_add(out, s.p, same);
            buf_add(out, bytes, utf8_encode(folded, bytes));
            s = skip(s, same + length);
            same = 0;
        }
        buf_add(out, s.p, same);
        s = skip(s, same);
    }
}

/* Circled and squared letters are symbols by their category, but are alphabetic, too. */
static bool is_enclosed_letter(int32_t cp)
{
    return (cp >= 0x24b6 && cp <= 0x24e9) || (cp >= 0x1f130 && cp <= 0x1f149) ||
           (cp >= 0x1f150 && cp <= 0x1f169) || (cp >= 0x1f170 && cp <= 0x1f189);
}

bool utf8_is_format_or_space(int32_t cp)
{
    utf8proc_category_t category = utf8proc_category(cp);

    return category == UTF8PROC_CATEGORY_CF || (category == UTF8PROC_CATEGORY_ZS && cp != ' ');
}

bool utf8_is_word(int32_t cp)
{
    if (cp < 0x80)
        return (cp >= '0' && cp <= '9') || (cp >= 'A' && cp <= 'Z') || cp == '_' ||
               (cp >= 'a' && cp <= 'z');
    switch (utf8proc_category(cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return cp == 0x200c || cp == 0x200d || is_enclosed_letter(cp);
    }
}

int utf8_width(int32_t cp)
{
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
        return 0;
    return cp < 0x7f ? 1 : utf8proc_charwidth(cp);
}

struct str utf8_fit(struct str s, size_t columns)
{
    size_t end = 0;

    while (end < s.n) {
        int32_t cp;
        size_t n = utf8_decode((struct str){s.p + end, s.n - end}, &cp);
        size_t width = cp < 0 || n == 0 ? 1 : (size_t)utf8_width(cp);

        if (width > columns)
            break;
        columns -= width;
        end += n ? n : s.n - end;
    }
    return (struct str){s.p, end};
}
