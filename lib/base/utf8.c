#include "chathist/base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "chathist/base/memory.h"
#include "chathist/base/simd.h"

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

size_t utf8_ascii(struct str s)
{
    uint64_t eight;
    size_t i = 0;

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

struct str utf8_without_bom(struct str text)
{
    return str_starts(text, UTF8_BOM) ? str_skip(text, UTF8_BOM.n) : text;
}

const char *text_fault(struct str bytes)
{
    if (str_starts(bytes, STR("\xff\xfe")) || str_starts(bytes, STR("\xfe\xff")))
        return "it is UTF-16 (iconv -f UTF-16 -t UTF-8 converts it)";
    return bytes.n > 0 && memchr(bytes.p, '\0', bytes.n) ? "it is a binary file" : NULL;
}

int text_clean(struct buf *text, const char *file, struct err *e)
{
    const char *fault = text_fault(buf_str(text));
    size_t to = 0;

    if (!fault && utf8_valid(buf_str(text)) < text->len)
        fault = "it is not UTF-8 (iconv converts it)";
    if (fault)
        return err_set(e, ERR_USAGE, "cannot read '%s': %s", file, fault);
    if (str_starts(buf_str(text), UTF8_BOM))
        buf_consume(text, UTF8_BOM.n);
    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] != '\r' || (i + 1 < text->len && text->data[i + 1] != '\n'))
            text->data[to++] = text->data[i];
    buf_truncate(text, to);
    return 0;
}

struct str text_value(const char *value)
{
    return str_trim(utf8_without_bom(str_of(value)));
}

const char *text_value_fault(struct str value)
{
    if (str_find(value, STR(" #")) || str_find(value, STR("\t#")))
        return "a comment has a line to itself";
    for (size_t i = 0; i < value.n; i++)
        if (((unsigned char)value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] == 0x7f)
            return "a control character is in it";
    return utf8_valid(value) < value.n ? "it is not UTF-8" : NULL;
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
            length = utf8_decode(str_skip(s, i), &cp);
        if (cp < 0)
            break;
        i += length;
    }
    return i;
}

size_t utf8_valid(struct str s)
{
    size_t i = 0, n;

    do {
        i += utf8_ascii(str_skip(s, i));
        n = utf8_valid_beyond_ascii(str_skip(s, i));
        i += n;
    } while (n > 0);
    return i;
}

/* The step of every loop over text that may be ill-formed. A sequence that the end of s cuts off
 * counts as ill-formed. */
static size_t decode_whole(struct str s, int32_t *cp)
{
    size_t length = utf8_decode(s, cp);

    return length ? length : s.n;
}

void utf8_add_repaired(struct buf *out, struct str s)
{
    while (s.n) {
        size_t valid = utf8_valid(s);
        int32_t cp;

        buf_add(out, s.p, valid);
        s = str_skip(s, valid);
        if (!s.n)
            break;

        buf_add_c(out, UTF8_REPLACEMENT);
        s = str_skip(s, decode_whole(s, &cp));
    }
}

struct str utf8_first(struct str s, size_t count)
{
    size_t i = 0;

    for (; count && i < s.n; count--) {
        int32_t cp;

        i += decode_whole(str_skip(s, i), &cp);
    }
    return (struct str){s.p, i};
}

size_t utf8_count(struct str s)
{
    size_t count = 0;

    for (; s.n; count++) {
        int32_t cp;

        s = str_skip(s, decode_whole(s, &cp));
    }
    return count;
}

/* Adds the ASCII text at the start of s, folded. Returns the rest. */
static struct str add_ascii_folded(struct buf *out, struct str s)
{
    char *to = buf_room(out, s.n);
    size_t n = to ? simd_lower(to, s.p, s.n) : s.n;

    if (to)
        buf_grew(out, n);
    return str_skip(s, n);
}

void utf8_add_folded(struct buf *out, struct str s)
{
    while (s.n) {
        size_t same = 0; /* the length of the start of s that is its own folding */

        s = add_ascii_folded(out, s);
        while (same < s.n && byte_at(s, same) >= 0x80) {
            int32_t cp;
            size_t length = decode_whole(str_skip(s, same), &cp);
            int32_t folded = cp < 0 ? cp : utf8_fold(cp);

            if (folded == cp) {
                same += length;
                continue;
            }

            char bytes[4];

            buf_add(out, s.p, same);
            buf_add(out, bytes, utf8_encode(folded, bytes));
            s = str_skip(s, same + length);
            same = 0;
        }
        buf_add(out, s.p, same);
        s = str_skip(s, same);
    }
}

/* Circled and squared letters are symbols by their category, but are alphabetic, too. */
static bool is_enclosed_letter(int32_t cp)
{
    return (cp >= 0x24b6 && cp <= 0x24e9) || (cp >= 0x1f130 && cp <= 0x1f149) ||
           (cp >= 0x1f150 && cp <= 0x1f169) || (cp >= 0x1f170 && cp <= 0x1f189);
}

static void add_normalized(struct buf *out, struct str s, utf8proc_option_t form)
{
    utf8proc_uint8_t *text = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)s.p, (utf8proc_ssize_t)s.n, &text,
                                      (utf8proc_option_t)(UTF8PROC_STABLE | form));

    if (n == UTF8PROC_ERROR_NOMEM)
        mem_exhausted();
    buf_add_str(out, n >= 0 ? (struct str){(const char *)text, (size_t)n} : s);
    free(text);
}

void utf8_add_composed(struct buf *out, struct str s)
{
    add_normalized(out, s, UTF8PROC_COMPOSE);
}

void utf8_add_decomposed(struct buf *out, struct str s)
{
    add_normalized(out, s, UTF8PROC_DECOMPOSE);
}

void utf8_add_unmarked(struct buf *out, struct str s)
{
    add_normalized(out, s, UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK);
}

bool utf8_is_mark(int32_t cp)
{
    utf8proc_category_t category = utf8proc_category(cp);

    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME;
}

bool utf8_is_word(int32_t cp)
{
    if (cp < 0x80)
        return ascii_is_digit((char)cp) || ascii_is_letter((char)cp) || cp == '_';
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

bool utf8_joins(int32_t cp, bool wide)
{
    return cp == 0x200d || (cp >= 0xfe00 && cp <= 0xfe0f) || (cp >= 0xe0100 && cp <= 0xe01ef) ||
           (wide && cp >= 0x1f3fb && cp <= 0x1f3ff);
}

struct str utf8_fit(struct str s, size_t columns)
{
    size_t end = 0;

    while (end < s.n) {
        int32_t cp;
        size_t n = decode_whole(str_skip(s, end), &cp);
        size_t width = cp < 0 ? 1 : (size_t)utf8_width(cp);

        if (width > columns)
            break;
        columns -= width;
        end += n;
    }
    return (struct str){s.p, end};
}

/* ---- case folding ---- */

/* Code points that fold by the same distance: all from first to last, or every second one. */
struct range {
    int32_t first, last;
    int32_t step, distance;
};

/* In ascending order. */
static const struct range ranges[] = {
    {0x00b5, 0x00b5, 1, 775},    {0x00c0, 0x00d6, 1, 32},     {0x00d8, 0x00de, 1, 32},
    {0x0100, 0x012e, 2, 1},      {0x0132, 0x0136, 2, 1},      {0x0139, 0x0147, 2, 1},
    {0x014a, 0x0176, 2, 1},      {0x0178, 0x0178, 1, -121},   {0x0179, 0x017d, 2, 1},
    {0x017f, 0x017f, 1, -268},   {0x0181, 0x0181, 1, 210},    {0x0182, 0x0184, 2, 1},
    {0x0186, 0x0186, 1, 206},    {0x0187, 0x0187, 1, 1},      {0x0189, 0x018a, 1, 205},
    {0x018b, 0x018b, 1, 1},      {0x018e, 0x018e, 1, 79},     {0x018f, 0x018f, 1, 202},
    {0x0190, 0x0190, 1, 203},    {0x0191, 0x0191, 1, 1},      {0x0193, 0x0193, 1, 205},
    {0x0194, 0x0194, 1, 207},    {0x0196, 0x0196, 1, 211},    {0x0197, 0x0197, 1, 209},
    {0x0198, 0x0198, 1, 1},      {0x019c, 0x019c, 1, 211},    {0x019d, 0x019d, 1, 213},
    {0x019f, 0x019f, 1, 214},    {0x01a0, 0x01a4, 2, 1},      {0x01a6, 0x01a6, 1, 218},
    {0x01a7, 0x01a7, 1, 1},      {0x01a9, 0x01a9, 1, 218},    {0x01ac, 0x01ac, 1, 1},
    {0x01ae, 0x01ae, 1, 218},    {0x01af, 0x01af, 1, 1},      {0x01b1, 0x01b2, 1, 217},
    {0x01b3, 0x01b5, 2, 1},      {0x01b7, 0x01b7, 1, 219},    {0x01b8, 0x01b8, 1, 1},
    {0x01bc, 0x01bc, 1, 1},      {0x01c4, 0x01c4, 1, 2},      {0x01c5, 0x01c5, 1, 1},
    {0x01c7, 0x01c7, 1, 2},      {0x01c8, 0x01c8, 1, 1},      {0x01ca, 0x01ca, 1, 2},
    {0x01cb, 0x01db, 2, 1},      {0x01de, 0x01ee, 2, 1},      {0x01f1, 0x01f1, 1, 2},
    {0x01f2, 0x01f4, 2, 1},      {0x01f6, 0x01f6, 1, -97},    {0x01f7, 0x01f7, 1, -56},
    {0x01f8, 0x021e, 2, 1},      {0x0220, 0x0220, 1, -130},   {0x0222, 0x0232, 2, 1},
    {0x023a, 0x023a, 1, 10795},  {0x023b, 0x023b, 1, 1},      {0x023d, 0x023d, 1, -163},
    {0x023e, 0x023e, 1, 10792},  {0x0241, 0x0241, 1, 1},      {0x0243, 0x0243, 1, -195},
    {0x0244, 0x0244, 1, 69},     {0x0245, 0x0245, 1, 71},     {0x0246, 0x024e, 2, 1},
    {0x0345, 0x0345, 1, 116},    {0x0370, 0x0372, 2, 1},      {0x0376, 0x0376, 1, 1},
    {0x037f, 0x037f, 1, 116},    {0x0386, 0x0386, 1, 38},     {0x0388, 0x038a, 1, 37},
    {0x038c, 0x038c, 1, 64},     {0x038e, 0x038f, 1, 63},     {0x0391, 0x03a1, 1, 32},
    {0x03a3, 0x03ab, 1, 32},     {0x03c2, 0x03c2, 1, 1},      {0x03cf, 0x03cf, 1, 8},
    {0x03d0, 0x03d0, 1, -30},    {0x03d1, 0x03d1, 1, -25},    {0x03d5, 0x03d5, 1, -15},
    {0x03d6, 0x03d6, 1, -22},    {0x03d8, 0x03ee, 2, 1},      {0x03f0, 0x03f0, 1, -54},
    {0x03f1, 0x03f1, 1, -48},    {0x03f4, 0x03f4, 1, -60},    {0x03f5, 0x03f5, 1, -64},
    {0x03f7, 0x03f7, 1, 1},      {0x03f9, 0x03f9, 1, -7},     {0x03fa, 0x03fa, 1, 1},
    {0x03fd, 0x03ff, 1, -130},   {0x0400, 0x040f, 1, 80},     {0x0410, 0x042f, 1, 32},
    {0x0460, 0x0480, 2, 1},      {0x048a, 0x04be, 2, 1},      {0x04c0, 0x04c0, 1, 15},
    {0x04c1, 0x04cd, 2, 1},      {0x04d0, 0x052e, 2, 1},      {0x0531, 0x0556, 1, 48},
    {0x10a0, 0x10c5, 1, 7264},   {0x10c7, 0x10c7, 1, 7264},   {0x10cd, 0x10cd, 1, 7264},
    {0x13f8, 0x13fd, 1, -8},     {0x1c80, 0x1c80, 1, -6222},  {0x1c81, 0x1c81, 1, -6221},
    {0x1c82, 0x1c82, 1, -6212},  {0x1c83, 0x1c84, 1, -6210},  {0x1c85, 0x1c85, 1, -6211},
    {0x1c86, 0x1c86, 1, -6204},  {0x1c87, 0x1c87, 1, -6180},  {0x1c88, 0x1c88, 1, 35267},
    {0x1c89, 0x1c89, 1, 1},      {0x1c90, 0x1cba, 1, -3008},  {0x1cbd, 0x1cbf, 1, -3008},
    {0x1e00, 0x1e94, 2, 1},      {0x1e9b, 0x1e9b, 1, -58},    {0x1e9e, 0x1e9e, 1, -7615},
    {0x1ea0, 0x1efe, 2, 1},      {0x1f08, 0x1f0f, 1, -8},     {0x1f18, 0x1f1d, 1, -8},
    {0x1f28, 0x1f2f, 1, -8},     {0x1f38, 0x1f3f, 1, -8},     {0x1f48, 0x1f4d, 1, -8},
    {0x1f59, 0x1f5f, 2, -8},     {0x1f68, 0x1f6f, 1, -8},     {0x1f88, 0x1f8f, 1, -8},
    {0x1f98, 0x1f9f, 1, -8},     {0x1fa8, 0x1faf, 1, -8},     {0x1fb8, 0x1fb9, 1, -8},
    {0x1fba, 0x1fbb, 1, -74},    {0x1fbc, 0x1fbc, 1, -9},     {0x1fbe, 0x1fbe, 1, -7173},
    {0x1fc8, 0x1fcb, 1, -86},    {0x1fcc, 0x1fcc, 1, -9},     {0x1fd3, 0x1fd3, 1, -7235},
    {0x1fd8, 0x1fd9, 1, -8},     {0x1fda, 0x1fdb, 1, -100},   {0x1fe3, 0x1fe3, 1, -7219},
    {0x1fe8, 0x1fe9, 1, -8},     {0x1fea, 0x1feb, 1, -112},   {0x1fec, 0x1fec, 1, -7},
    {0x1ff8, 0x1ff9, 1, -128},   {0x1ffa, 0x1ffb, 1, -126},   {0x1ffc, 0x1ffc, 1, -9},
    {0x2126, 0x2126, 1, -7517},  {0x212a, 0x212a, 1, -8383},  {0x212b, 0x212b, 1, -8262},
    {0x2132, 0x2132, 1, 28},     {0x2160, 0x216f, 1, 16},     {0x2183, 0x2183, 1, 1},
    {0x24b6, 0x24cf, 1, 26},     {0x2c00, 0x2c2f, 1, 48},     {0x2c60, 0x2c60, 1, 1},
    {0x2c62, 0x2c62, 1, -10743}, {0x2c63, 0x2c63, 1, -3814},  {0x2c64, 0x2c64, 1, -10727},
    {0x2c67, 0x2c6b, 2, 1},      {0x2c6d, 0x2c6d, 1, -10780}, {0x2c6e, 0x2c6e, 1, -10749},
    {0x2c6f, 0x2c6f, 1, -10783}, {0x2c70, 0x2c70, 1, -10782}, {0x2c72, 0x2c72, 1, 1},
    {0x2c75, 0x2c75, 1, 1},      {0x2c7e, 0x2c7f, 1, -10815}, {0x2c80, 0x2ce2, 2, 1},
    {0x2ceb, 0x2ced, 2, 1},      {0x2cf2, 0x2cf2, 1, 1},      {0xa640, 0xa66c, 2, 1},
    {0xa680, 0xa69a, 2, 1},      {0xa722, 0xa72e, 2, 1},      {0xa732, 0xa76e, 2, 1},
    {0xa779, 0xa77b, 2, 1},      {0xa77d, 0xa77d, 1, -35332}, {0xa77e, 0xa786, 2, 1},
    {0xa78b, 0xa78b, 1, 1},      {0xa78d, 0xa78d, 1, -42280}, {0xa790, 0xa792, 2, 1},
    {0xa796, 0xa7a8, 2, 1},      {0xa7aa, 0xa7aa, 1, -42308}, {0xa7ab, 0xa7ab, 1, -42319},
    {0xa7ac, 0xa7ac, 1, -42315}, {0xa7ad, 0xa7ad, 1, -42305}, {0xa7ae, 0xa7ae, 1, -42308},
    {0xa7b0, 0xa7b0, 1, -42258}, {0xa7b1, 0xa7b1, 1, -42282}, {0xa7b2, 0xa7b2, 1, -42261},
    {0xa7b3, 0xa7b3, 1, 928},    {0xa7b4, 0xa7c2, 2, 1},      {0xa7c4, 0xa7c4, 1, -48},
    {0xa7c5, 0xa7c5, 1, -42307}, {0xa7c6, 0xa7c6, 1, -35384}, {0xa7c7, 0xa7c9, 2, 1},
    {0xa7cb, 0xa7cb, 1, -42343}, {0xa7cc, 0xa7da, 2, 1},      {0xa7dc, 0xa7dc, 1, -42561},
    {0xa7f5, 0xa7f5, 1, 1},      {0xab70, 0xabbf, 1, -38864}, {0xfb05, 0xfb05, 1, 1},
    {0xff21, 0xff3a, 1, 32},     {0x10400, 0x10427, 1, 40},   {0x104b0, 0x104d3, 1, 40},
    {0x10570, 0x1057a, 1, 39},   {0x1057c, 0x1058a, 1, 39},   {0x1058c, 0x10592, 1, 39},
    {0x10594, 0x10595, 1, 39},   {0x10c80, 0x10cb2, 1, 64},   {0x10d50, 0x10d65, 1, 32},
    {0x118a0, 0x118bf, 1, 32},   {0x16e40, 0x16e5f, 1, 32},   {0x16ea0, 0x16eb8, 1, 27},
    {0x1e900, 0x1e921, 1, 34},
};

int32_t utf8_fold(int32_t cp)
{
    size_t low = 0, high = sizeof(ranges) / sizeof(ranges[0]);

    if (cp < 0x80)
        return ascii_lower((char)cp);

    /* Most other characters belong to scripts without case. */
    if ((cp >= 0x2d2e && cp < 0xa640) || cp > 0x1e921)
        return cp;

    /* Finds the last range that begins at or before cp. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ranges[middle].first <= cp)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return cp;

    const struct range *r = &ranges[low - 1];

    return cp <= r->last && (cp - r->first) % r->step == 0 ? cp + r->distance : cp;
}

size_t utf8_fold_same(int32_t cp, int32_t out[UTF8_FOLD_SAME])
{
    int32_t folded = utf8_fold(cp);
    size_t n = 0;

    out[n++] = folded;
    if (folded >= 'a' && folded <= 'z')
        out[n++] = folded - ('a' - 'A');
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && n < UTF8_FOLD_SAME; i++) {
        int32_t from = folded - ranges[i].distance;

        if (from >= ranges[i].first && from <= ranges[i].last && utf8_fold(from) == folded)
            out[n++] = from;
    }
    return n;
}

/* ---- text made visible ---- */

/* The unsafe code points above ASCII, in order. */
static const struct {
    int32_t first, last;
} unsafe_ranges[] = {
    {0x80, 0x9f},     {0xad, 0xad},       {0x34f, 0x34f},        {0x61c, 0x61c},   {0x115f, 0x1160},
    {0x180e, 0x180e}, {0x200b, 0x200b},   {0x200e, 0x200f},      {0x2028, 0x202e}, {0x2060, 0x206f},
    {0x3164, 0x3164}, {0xd800, 0xdfff},   {0xfe00, 0xfe0d},      {0xfeff, 0xfeff}, {0xffa0, 0xffa0},
    {0xfff9, 0xfffb}, {0xe0000, 0xe01ef}, {0x110000, INT32_MAX},
};

bool vis_unsafe(int32_t cp)
{
    if (cp < 0x20)
        return cp != '\n' && cp != '\t';
    if (cp < 0x7f)
        return false;
    if (cp == 0x7f)
        return true;
    for (size_t i = 0; i < sizeof(unsafe_ranges) / sizeof(unsafe_ranges[0]); i++) {
        if (cp <= unsafe_ranges[i].last)
            return cp >= unsafe_ranges[i].first;
    }
    return false;
}

bool vis_hidden(int32_t cp)
{
    utf8proc_category_t category = utf8proc_category(cp);

    return vis_unsafe(cp) || (cp >= 0xfe00 && cp <= 0xfe0f) || category == UTF8PROC_CATEGORY_CF ||
           (category == UTF8PROC_CATEGORY_ZS && cp != ' ');
}

static void add_visible_escape(struct buf *out, int32_t cp)
{
    if (cp < 0x80)
        buf_addf(out, "^%c", (int)(cp ^ 0x40));
    else
        buf_addf(out, "<U+%04X>", (unsigned)cp);
}

static void show_bytes(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "<%02X>", (unsigned)(unsigned char)p[i]);
}

/* Returns the length of the text at the start of s that is safe byte by byte. */
static size_t safe_length(struct str s)
{
    size_t i = 0;

    while (i < s.n && ((s.p[i] >= 0x20 && s.p[i] < 0x7f) || s.p[i] == '\n' || s.p[i] == '\t'))
        i++;
    return i;
}

/* Adds the first character of s (s.n > 0) in its safe form and returns its length. Returns 0 if the
 * following bytes decide about it. */
static size_t add_one(struct buf *out, struct str s)
{
    int32_t cp;
    size_t n = utf8_decode(s, &cp);

    if (n == 0 || (cp == '\r' && s.n == 1))
        return 0;
    if (cp < 0)
        show_bytes(out, s.p, n);
    else if (vis_unsafe(cp) && !(cp == '\r' && s.p[1] == '\n'))
        add_visible_escape(out, cp);
    else
        buf_add(out, s.p, n);
    return n;
}

/* Adds the decided part of s. Returns the number of undecided bytes at its end. */
static size_t add_decided(struct buf *out, struct str s)
{
    for (;;) {
        size_t n = safe_length(s);

        buf_add(out, s.p, n);
        s = str_skip(s, n);
        if (!s.n)
            return 0;
        n = add_one(out, s);
        if (!n)
            return s.n;
        s = str_skip(s, n);
    }
}

/* Adds the undecided bytes at the end of a text. */
static void add_undecided(struct buf *out, const char *p, size_t n)
{
    if (n && p[0] == '\r')
        add_visible_escape(out, '\r');
    else
        show_bytes(out, p, n);
}

void vis_feed(struct vis *v, struct str piece, struct buf *out)
{
    /* Decides the held bytes one by one. At most 4 bytes are together: 3 of a code point, and the
     * one that completes or breaks it. */
    while (v->held_len && piece.n) {
        v->held[v->held_len++] = piece.p[0];
        piece = str_skip(piece, 1);

        size_t n = add_one(out, (struct str){v->held, v->held_len});

        v->held_len -= n;
        memmove(v->held, v->held + n, v->held_len);

        /* The byte that broke the sequence may be a whole character. */
        if (n && v->held_len) {
            n = add_one(out, (struct str){v->held, v->held_len});
            v->held_len -= n;
        }
    }
    if (!piece.n)
        return;

    size_t rest = add_decided(out, piece);

    memcpy(v->held, piece.p + piece.n - rest, rest);
    v->held_len = rest;
}

void vis_end(struct vis *v, struct buf *out)
{
    add_undecided(out, v->held, v->held_len);
    v->held_len = 0;
}

void vis_add(struct buf *out, struct str text)
{
    if (!text.n)
        return;

    size_t rest = add_decided(out, text);

    add_undecided(out, text.p + text.n - rest, rest);
}

/* Returns the length of the white space at the start of s, including line and paragraph separators.
 */
static size_t space_length(struct str s)
{
    size_t i = 0;

    while (i < s.n) {
        unsigned char c = (unsigned char)s.p[i];
        int32_t cp = c;
        size_t n = c < 0x80 ? 1 : utf8_decode(str_skip(s, i), &cp);

        if (n == 0 || !(cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0x85 || cp == 0x2028 ||
                        cp == 0x2029))
            break;
        i += n;
    }
    return i;
}

/* Returns the length of the text before the next white space; with `several`, before the next one
 * that is not a single blank. Only bytes that can begin white space are tested closely; no
 * continuation byte is one of them. */
static size_t word_length(struct str s, bool several)
{
    size_t i;

    for (i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i], next;

        if (c > ' ' && c != 0xc2 && c != 0xe2)
            continue;
        next = i + 1 < s.n ? (unsigned char)s.p[i + 1] : ' ';
        if (several && c == ' ' && next > ' ' && next < 0x80)
            continue;
        if (space_length(str_skip(s, i)))
            break;
    }
    return i;
}

void vis_add_line(struct buf *out, struct str text, bool safe)
{
    bool has_room = text.n <= out->max - out->len; /* else the first words are added */

    text = str_skip(text, space_length(text));
    while (text.n) {
        struct str words = {text.p, word_length(text, has_room)};

        if (safe)
            vis_add(out, words);
        else
            buf_add_str(out, words);
        text = str_skip(text, words.n);
        text = str_skip(text, space_length(text));
        if (text.n)
            buf_add_byte(out, ' ');
    }
}
