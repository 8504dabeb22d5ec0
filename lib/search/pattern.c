#include "chathist/search/pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "chathist/search/skip_index.h"
#include "search/literal_scan.h"

struct pattern_needle {
    struct regex *regex; /* NULL: a fixed string */
    struct buf bytes;    /* folded unless the case counts */
    /* for the current text: */
    size_t text_at, folded_at; /* two offsets of the same place */
    bool known;                /* `result`, `at` and `len` are those of the next match */
    int result;
    size_t at, len;
};

/* The folded form of a text is kept for the next text up to this size. */
#define FOLDED_KEPT ((size_t)1 << 20)

void pattern_init(struct pattern *p)
{
    *p = (struct pattern){0};
    /* Folding makes text longer by at most a half, from two bytes to three. */
    buf_init(&p->folded, BUF_LINE * 2);
}

void pattern_release(struct pattern *p)
{
    for (size_t i = 0; i < p->count; i++) {
        regex_free(p->needles[i].regex);
        buf_release(&p->needles[i].bytes);
    }
    free(p->needles);
    buf_release(&p->folded);
    pattern_init(p);
}

static void add_fixed(struct pattern *p, struct pattern_needle *n, struct str text)
{
    struct buf repaired = BUF_INIT(SIZE_MAX);

    /* Bytes that are not UTF-8 were stored as U+FFFD. */
    utf8_add_repaired(&repaired, text);
    if (p->case_sensitive)
        buf_add_str(&n->bytes, buf_str(&repaired));
    else
        utf8_add_folded(&n->bytes, buf_str(&repaired));
    buf_release(&repaired);
}

int pattern_add(struct pattern *p, struct str text, struct err *e)
{
    struct pattern_needle n = {.bytes = BUF_INIT(SIZE_MAX)};

    if (p->regex) {
        n.regex = regex_new(text, !p->case_sensitive, p->words, e);
        if (!n.regex)
            return -1;
    } else {
        add_fixed(p, &n, text);
    }
    p->needles = mem_grow(p->needles, &p->cap, p->count + 1, sizeof *p->needles);
    p->needles[p->count++] = n;
    return 0;
}

void pattern_copy(struct pattern *to, const struct pattern *from)
{
    pattern_init(to);
    to->case_sensitive = from->case_sensitive;
    to->words = from->words;
    to->needles = mem_grow(NULL, &to->cap, from->count, sizeof *to->needles);
    for (size_t i = 0; i < from->count; i++) {
        struct pattern_needle *n = &to->needles[to->count++];

        *n = from->needles[i];
        buf_init(&n->bytes, SIZE_MAX);
        buf_add_str(&n->bytes, buf_str(&from->needles[i].bytes));
    }
}

bool pattern_add_literals(const struct pattern *p, struct literal_scan *s, struct skip_query *q)
{
    for (size_t i = 0; i < p->count; i++) {
        struct str text = buf_str(&p->needles[i].bytes);

        if (p->needles[i].regex || text.n == 0 || i == SIMD_PROBES)
            return false;
        literal_scan_add(s, text, p->case_sensitive);
        skip_query_add(q, text);
    }
    return p->count > 0 && literal_scan_ready(s);
}

/* ---- fixed strings ---- */

/* Returns the length of the code point at an offset before the end. *cp is -1 for invalid bytes. */
static size_t step_at(struct str text, size_t at, int32_t *cp)
{
    size_t n = utf8_decode((struct str){text.p + at, text.n - at}, cp);

    return n ? n : text.n - at;
}

/* Moves both offsets on, code point by code point, until one of them reaches its limit. */
static void advance(struct str text, size_t *at, size_t *folded_at, size_t until, size_t folded)
{
    while (*at < text.n && *at < until && *folded_at < folded) {
        char bytes[4];
        int32_t cp;
        size_t n = step_at(text, *at, &cp);

        *folded_at += cp < 0 ? n : utf8_encode(utf8_fold(cp), bytes);
        *at += n;
    }
}

/* word_before and word_after return whether a word character is next to the offset. */
static bool word_before(struct str text, size_t at)
{
    size_t begin = at;
    int32_t cp;

    if (at == 0)
        return false;
    do
        begin--;
    while (utf8_inside(text, begin));
    return utf8_decode((struct str){text.p + begin, at - begin}, &cp) > 0 && cp >= 0 &&
           utf8_is_word(cp);
}

static bool word_after(struct str text, size_t at)
{
    int32_t cp;

    if (at == text.n)
        return false;
    step_at(text, at, &cp);
    return cp >= 0 && utf8_is_word(cp);
}

/* An empty needle matches everywhere; as a word, wherever no word character is next to it. */
static int find_empty(const struct pattern *p, struct pattern_needle *n, size_t from)
{
    int32_t cp;

    while (p->words && (word_before(p->text, from) || word_after(p->text, from))) {
        if (from == p->text.n)
            return 0;
        from += step_at(p->text, from, &cp);
    }
    n->at = from;
    n->len = 0;
    return 1;
}

/* Returns the text that is searched for needles, folded unless case matters. */
static struct str searched_text(struct pattern *p)
{
    if (p->case_sensitive)
        return p->text;
    if (!p->is_folded) {
        buf_clear(&p->folded);
        utf8_add_folded(&p->folded, p->text);
        p->is_folded = true;
        p->moved = utf8_ascii(p->text) < p->text.n;
    }
    return buf_str(&p->folded);
}

static int find_fixed(struct pattern *p, struct pattern_needle *n, size_t from, bool empty_too)
{
    struct str needle = buf_str(&n->bytes), text;
    const char *found;
    size_t at;
    int32_t cp;

    if (needle.n == 0)
        return empty_too ? find_empty(p, n, from) : 0;
    text = searched_text(p);
    if (p->moved) {
        advance(p->text, &n->text_at, &n->folded_at, from, SIZE_MAX);
        from = n->folded_at;
    }
    for (;;) {
        found = from < text.n ? str_find((struct str){text.p + from, text.n - from}, needle) : NULL;
        if (!found)
            return 0;
        at = (size_t)(found - text.p);
        /* Folding turns word characters into word characters. */
        if (!p->words || (!word_before(text, at) && !word_after(text, at + needle.n)))
            break;
        from = at + step_at(text, at, &cp);
    }
    n->at = at;
    n->len = needle.n;
    if (p->moved) {
        advance(p->text, &n->text_at, &n->folded_at, SIZE_MAX, at);

        /* The next search may begin inside this match, so the two offsets stay at its beginning. */
        size_t end = n->text_at, folded_end = n->folded_at;

        advance(p->text, &end, &folded_end, SIZE_MAX, at + needle.n);
        n->at = n->text_at;
        n->len = end - n->at;
    }
    return 1;
}

/* ---- all of them ---- */

void pattern_start(struct pattern *p, struct str text)
{
    if (p->folded.cap > FOLDED_KEPT)
        buf_release(&p->folded);
    p->text = text;
    p->is_folded = p->moved = false;
    p->from = 0;
    p->ended = false;
    for (size_t i = 0; i < p->count; i++) {
        p->needles[i].text_at = p->needles[i].folded_at = 0;
        p->needles[i].known = false;
    }
}

/* Finds the next match of a needle if it is not known. Returns as pattern_find does. */
static int find_needle(struct pattern *p, struct pattern_needle *n, bool empty_too, struct err *e)
{
    if (n->known && (n->result == 0 || n->at >= p->from))
        return n->result;
    n->result = n->regex ? regex_find(n->regex, p->text, p->from, empty_too, &n->at, &n->len, e)
                         : find_fixed(p, n, p->from, empty_too);
    n->known = true;
    return n->result;
}

static int next_match(struct pattern *p, bool empty_too, size_t *at, size_t *len, struct err *e)
{
    const struct pattern_needle *best = NULL;

    if (p->ended)
        return 0;
    for (size_t i = 0; i < p->count; i++) {
        struct pattern_needle *n = &p->needles[i];
        int found = find_needle(p, n, empty_too, e);

        if (found < 0)
            return -1;
        if (found > 0 && (!best || n->at < best->at || (n->at == best->at && n->len > best->len)))
            best = n;
    }
    p->ended = !best;
    if (!best)
        return 0;
    *at = best->at;
    *len = best->len;
    p->from = best->at + best->len;
    return 1;
}

int pattern_find(struct pattern *p, struct str text, size_t *at, size_t *len, struct err *e)
{
    *at = 0;
    *len = 0;
    pattern_start(p, text);
    return next_match(p, true, at, len, e);
}

int pattern_next(struct pattern *p, size_t *at, size_t *len, struct err *e)
{
    return next_match(p, false, at, len, e);
}
