#include "hist/search.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "base/vis.h"

/* U+017F and U+212A: the two characters beyond ASCII whose folding is ASCII (`s` and `k`). */
#define LONG_S "\xc5\xbf"
#define KELVIN "\xe2\x84\xaa"

int search_open(struct search *s, const char *history_path, struct str needle,
                const struct filter *filter, enum scan_way way, struct err *e)
{
    struct buf repaired = BUF_INIT(BUF_LINE);

    *s = (struct search){.message = MESSAGE_INIT};
    if (scan_open(&s->scan, history_path, way, e) < 0)
        return -1;
    buf_init(&s->needle, BUF_LINE);
    buf_init(&s->decoded, BUF_LINE);
    /* Folding makes text longer: by a half at the most, from two bytes to three. */
    buf_init(&s->folded, BUF_LINE * 2);
    if (filter)
        s->filter = *filter;
    if (s->filter.session.p)
        scan_only(&s->scan, s->filter.session);

    /* Bytes that are not UTF-8 became U+FFFD when they were stored. */
    utf8_add_repaired(&repaired, needle);
    utf8_add_folded(&s->needle, buf_str(&repaired));
    buf_release(&repaired);
    return 0;
}

void search_close(struct search *s)
{
    scan_close(&s->scan);
    buf_release(&s->needle);
    buf_release(&s->decoded);
    buf_release(&s->folded);
    message_release(&s->message);
}

/* Is the message that was read a hit? */
static bool match(struct search *s, struct hit *h)
{
    if (!filter_match(&s->filter, &s->message))
        return false;
    h->message = &s->message;
    h->content = message_content(&s->message, &s->decoded);
    return search_find(h->content, buf_str(&s->needle), &s->folded, &h->at, &h->len);
}

int search_next(struct search *s, struct hit *h, struct err *e)
{
    int result;

    do
        result = scan_message(&s->scan, &s->message, &h->line, e);
    while (result > 0 && !match(s, h));
    return result;
}

bool search_line(struct search *s, struct str line, struct hit *h)
{
    return message_parse(&s->message, line) && match(s, h);
}

/* ---- finding ---- */

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

static bool same_folded(const char *text, struct str needle)
{
    for (size_t i = 0; i < needle.n; i++) {
        if (lower((unsigned char)text[i]) != (unsigned char)needle.p[i])
            return false;
    }
    return true;
}

/* The first place of an ASCII needle in text, only ASCII folded; text.n when there is none.
 * Horspool's search: `step` is how far the byte under the needle's end lets it move on. */
static size_t find_ascii(struct str text, struct str needle)
{
    unsigned char step[256];
    size_t most = needle.n < 255 ? needle.n : 255;

    if (text.n < needle.n)
        return text.n;
    memset(step, (int)most, sizeof(step));
    for (size_t i = needle.n - most; i + 1 < needle.n; i++) {
        unsigned char c = (unsigned char)needle.p[i];
        unsigned char distance = (unsigned char)(needle.n - 1 - i);

        step[c] = distance;
        if (c >= 'a' && c <= 'z')
            step[c - 0x20] = distance;
    }

    unsigned char end = (unsigned char)needle.p[needle.n - 1];

    for (size_t i = 0; i <= text.n - needle.n;) {
        unsigned char c = (unsigned char)text.p[i + needle.n - 1];

        if (lower(c) == end && same_folded(text.p + i, needle))
            return i;
        i += step[c];
    }
    return text.n;
}

static bool is_ascii(struct str s)
{
    uint64_t eight;
    size_t i = 0;

    for (; s.n - i >= sizeof(eight); i += sizeof(eight)) {
        memcpy(&eight, s.p + i, sizeof(eight));
        if (eight & UINT64_C(0x8080808080808080))
            return false;
    }
    while (i < s.n && (unsigned char)s.p[i] < 0x80)
        i++;
    return i == s.n;
}

/* Has text characters beyond ASCII that an ASCII needle could match? */
static bool folds_to_ascii(struct str text, struct str needle)
{
    return (memchr(needle.p, 's', needle.n) && str_find(text, STR(LONG_S))) ||
           (memchr(needle.p, 'k', needle.n) && str_find(text, STR(KELVIN)));
}

/* Moves from *folded_at, an offset in the folded form of text, to the offset in text itself that
 * belongs to `target`, code point by code point: folding changes their lengths. */
static void advance(struct str text, size_t *at, size_t *folded_at, size_t target)
{
    while (*folded_at < target && *at < text.n) {
        struct str rest = {text.p + *at, text.n - *at};
        char bytes[4];
        int32_t cp;
        size_t n = utf8_decode(rest, &cp);

        if (n == 0)
            n = rest.n;
        *folded_at += cp < 0 ? n : utf8_encode(utf8_fold(cp), bytes);
        *at += n;
    }
}

static bool find_folded(struct str text, struct str needle, struct buf *scratch, size_t *at,
                        size_t *len)
{
    size_t folded_at = 0;

    buf_clear(scratch);
    utf8_add_folded(scratch, text);

    struct str folded = buf_str(scratch);
    const char *found = str_find(folded, needle);

    if (!found)
        return false;

    size_t start = (size_t)(found - folded.p);

    *at = 0;
    advance(text, at, &folded_at, start);

    size_t end = *at;

    advance(text, &end, &folded_at, start + needle.n);
    *len = end - *at;
    return true;
}

bool search_find(struct str text, struct str folded_needle, struct buf *scratch, size_t *at,
                 size_t *len)
{
    *at = 0;
    *len = 0;
    if (folded_needle.n == 0)
        return true;
    if (text.n == 0)
        return false;
    if (!is_ascii(folded_needle))
        return !is_ascii(text) && find_folded(text, folded_needle, scratch, at, len);
    if (folds_to_ascii(text, folded_needle))
        return find_folded(text, folded_needle, scratch, at, len);

    *at = find_ascii(text, folded_needle);
    *len = folded_needle.n;
    return *at < text.n;
}

/* ---- snippets ---- */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The offset of up to `count` code points before `at`. Continuation bytes that continue nothing are
 * passed together with what stands before them. */
static size_t step_back(struct str s, size_t at, size_t count)
{
    while (count-- && at) {
        at--;
        while (at && is_continuation(s.p[at]))
            at--;
    }
    return at;
}

static size_t step_on(struct str s, size_t at, size_t count)
{
    return at + utf8_first((struct str){s.p + at, s.n - at}, count).n;
}

#define ELLIPSIS "\xe2\x80\xa6"

void search_snippet(struct buf *out, struct str content, size_t at, size_t len, size_t width,
                    bool safe, size_t *mark, size_t *mark_len)
{
    /* A match that is wider than the snippet fills it. */
    struct str match = utf8_first((struct str){content.p + at, len}, width);
    size_t left = width - utf8_count(match);
    size_t begin = step_back(content, at, left / 2);
    size_t before = utf8_count((struct str){content.p + begin, at - begin});
    size_t end = step_on(content, at + match.n, left - before);

    /* What is not used behind the match goes before it. */
    size_t behind = utf8_count((struct str){content.p + at + match.n, end - at - match.n});

    begin = step_back(content, begin, left - before - behind);

    struct buf line = BUF_INIT(SIZE_MAX);
    size_t from, to;

    if (begin > 0)
        buf_add_c(out, ELLIPSIS);
    from = out->len;

    /* The line is made three times, each with one more part, to see where in it the match is. White
     * space that ends a part is one blank when something follows. */
    vis_add_line(&line, (struct str){content.p + begin, at - begin}, safe);
    from += line.len;
    buf_clear(&line);
    vis_add_line(&line, (struct str){content.p + begin, at + match.n - begin}, safe);
    to = out->len + line.len;
    buf_clear(&line);
    vis_add_line(&line, (struct str){content.p + begin, end - begin}, safe);
    buf_add_str(out, buf_str(&line));
    if (from < to && out->data[from] == ' ')
        from++;
    if (end < content.n)
        buf_add_c(out, ELLIPSIS);
    if (mark)
        *mark = from;
    if (mark_len)
        *mark_len = to - from;
    buf_release(&line);
}
