#include "chathist/base/vis.h"

#include <string.h>

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
    return vis_unsafe(cp) || (cp >= 0xfe00 && cp <= 0xfe0f) || utf8_is_format_or_space(cp);
}

static void show(struct buf *out, int32_t cp)
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
static size_t plain_length(struct str s)
{
    size_t i = 0;

    while (i < s.n && ((s.p[i] >= 0x20 && s.p[i] < 0x7f) || s.p[i] == '\n' || s.p[i] == '\t'))
        i++;
    return i;
}

static struct str skip(struct str s, size_t n)
{
    return (struct str){s.p + n, s.n - n};
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
        show(out, cp);
    else
        buf_add(out, s.p, n);
    return n;
}

/* Adds the decided part of s. Returns the number of undecided bytes at its end. */
static size_t add_decided(struct buf *out, struct str s)
{
    for (;;) {
        size_t n = plain_length(s);

        buf_add(out, s.p, n);
        s = skip(s, n);
        if (!s.n)
            return 0;
        n = add_one(out, s);
        if (!n)
            return s.n;
        s = skip(s, n);
    }
}

/* Adds the undecided bytes at the end of a text. */
static void add_rest(struct buf *out, const char *p, size_t n)
{
    if (n && p[0] == '\r')
        show(out, '\r');
    else
        show_bytes(out, p, n);
}

void vis_feed(struct vis *v, struct str piece, struct buf *out)
{
    /* Decides the held bytes one by one. At most 4 bytes are together: 3 of a code point, and the
     * one that completes or breaks it. */
    while (v->held_len && piece.n) {
        v->held[v->held_len++] = piece.p[0];
        piece = skip(piece, 1);

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
    add_rest(out, v->held, v->held_len);
    v->held_len = 0;
}

void vis_add(struct buf *out, struct str text)
{
    if (!text.n)
        return;

    size_t rest = add_decided(out, text);

    add_rest(out, text.p + text.n - rest, rest);
}

static bool is_ascii_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Returns the length of the white space at the start of s, including line and paragraph separators.
 */
static size_t space_length(struct str s)
{
    size_t i = 0;

    while (i < s.n && is_ascii_space(s.p[i]))
        i++;
    if (i < s.n && (unsigned char)s.p[i] < 0x80)
        return i;
    while (i < s.n) {
        int32_t cp;
        size_t n = utf8_decode(skip(s, i), &cp);

        if (n == 0 || !(cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0x85 || cp == 0x2028 ||
                        cp == 0x2029))
            break;
        i += n;
    }
    return i;
}

/* Returns the length of the text before the next white space. Only bytes that can begin white space
 * are tested closely; no continuation byte is one of them. */
static size_t word_length(struct str s)
{
    size_t i = 0;

    while (i < s.n) {
        unsigned char c = (unsigned char)s.p[i];

        if ((c <= ' ' || c == 0xc2 || c == 0xe2) && space_length(skip(s, i)))
            break;
        i++;
    }
    return i;
}

#define EVERY(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Sets the highest bit of each byte that equals c. With x = w ^ c, adding low7 carries into the
 * highest bit of each byte of x that is not 0, so exactly the zero bytes remain. */
static uint64_t bytes_that_are(uint64_t w, unsigned char c)
{
    uint64_t x = w ^ EVERY(c), low7 = (x & EVERY(0x7f)) + EVERY(0x7f);

    return ~(low7 | x | EVERY(0x7f));
}

/* Returns true if the eight bytes are printable ASCII without two adjacent blanks. */
static bool is_tidy(uint64_t w)
{
    uint64_t blanks = bytes_that_are(w, ' '), del = w ^ EVERY(0x7f);
    uint64_t others = w | ((w - EVERY(' ')) & ~w) | ((del - EVERY(1)) & ~del);

    return !(others & EVERY(0x80)) && !(blanks & blanks << 8);
}

static uint64_t newlines_as_blanks(uint64_t w)
{
    return w ^ (bytes_that_are(w, '\n') >> 7) * ('\n' ^ ' ');
}

/* Adds the ASCII words at the start of s that single blanks or newlines separate, with blanks for
 * newlines. Returns their length. */
static size_t add_tidy(struct buf *out, struct str s)
{
    /* If there is no room for all of it, words are added one by one. */
    char *to = s.n <= out->max - out->len ? buf_room(out, s.n) : NULL;
    size_t i = 0;
    uint64_t w;

    if (!to)
        return 0;
    for (; s.n - i >= sizeof(w); i += sizeof(w)) {
        memcpy(&w, s.p + i, sizeof(w));
        w = newlines_as_blanks(w);
        memcpy(to + i, &w, sizeof(w));
        if (!is_tidy(w) || (to[i] == ' ' && i > 0 && to[i - 1] == ' '))
            break;
    }
    for (; i < s.n; i++) {
        to[i] = s.p[i] == '\n' ? ' ' : s.p[i];
        if (to[i] < ' ' || to[i] >= 0x7f || (to[i] == ' ' && i > 0 && to[i - 1] == ' '))
            break;
    }
    /* Unless white space follows, the next bytes may belong to the last word. */
    if ((i < s.n && !is_ascii_space(s.p[i])) || (i > 0 && to[i - 1] == ' ')) {
        while (i > 0 && to[i - 1] != ' ')
            i--;
        i -= i > 0;
    }
    buf_grew(out, i);
    return i;
}

void vis_add_line(struct buf *out, struct str text, bool safe)
{
    if (text.n)
        text = skip(text, space_length(text));
    while (text.n) {
        size_t tidy = add_tidy(out, text);
        struct str word = {text.p, tidy ? tidy : word_length(text)};

        if (safe && !tidy)
            vis_add(out, word);
        else if (!tidy)
            buf_add_str(out, word);
        text = skip(text, word.n);
        text = skip(text, space_length(text));
        if (text.n)
            buf_add_byte(out, ' ');
    }
}
