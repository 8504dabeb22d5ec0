#include "chathist/terminal/highlight.h"

#include <string.h>

struct language {
    const char *names, *line, *block, *quotes, *words;
};

#define LANGUAGE(names, line, block, quotes, words) {names, line, block, quotes, words},
static const struct language languages[] = {
#include "terminal/languages.def"
};
static const struct language diff = {"diff patch", "", "", "", ""};

/* Returns whether a list has the word; with any_case also if the word has capitals. */
static bool has_word(const char *list, struct str word, bool any_case)
{
    struct str rest = str_of(list), one;

    while ((one = str_word(&rest)).p) {
        size_t i = 0;

        while (one.n == word.n && i < one.n &&
               (one.p[i] == word.p[i] ||
                (any_case && ascii_is_letter(word.p[i]) && one.p[i] == (word.p[i] | 0x20))))
            i++;
        if (one.n == word.n && i == one.n)
            return true;
    }
    return false;
}

const struct language *language_find(struct str name)
{
    if (has_word(diff.names, name, true))
        return &diff;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (has_word(languages[i].names, name, true))
            return &languages[i];
    return NULL;
}

/* Pieces of one kind are passed on together. */
struct pieces {
    highlight_fn *fn;
    void *arg;
    enum highlight_kind kind;
    char bytes[256];
    size_t n;
};

static void pass_pieces(struct pieces *p)
{
    if (p->n > 0)
        p->fn(p->arg, p->kind, (struct str){p->bytes, p->n});
    p->n = 0;
}

/* Passes on the first n bytes that are held. Returns n. */
static size_t pass_held(struct highlight *h, size_t n, enum highlight_kind kind, struct pieces *p)
{
    if (p->kind != kind || p->n + n > sizeof p->bytes)
        pass_pieces(p);
    p->kind = kind;
    memcpy(p->bytes + p->n, h->held, n);
    p->n += n;
    h->before = h->held[n - 1];
    h->begun = true;
    h->n -= n;
    memmove(h->held, h->held + n, h->n);
    return n;
}

static bool is_word_byte(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

/* ---- tokens: each function passes on bytes that are held and returns their number, or 0 if it must
 * see more; `last` means that no more come in this line ---- */

static size_t pass_word(struct highlight *h, struct pieces *p, bool last)
{
    bool keyword, any_case = str_starts(str_of(h->language->names), STR("sql"));
    size_t n = 0;

    while (n < h->n && is_word_byte(h->held[n]))
        n++;
    if (n == HIGHLIGHT_HELD) {
        h->state = LEX_WORD;
        return pass_held(h, n, HIGHLIGHT_NONE, p);
    }
    if (n == h->n && !last)
        return 0;
    keyword = has_word(h->language->words, (struct str){h->held, n}, any_case);
    return pass_held(h, n, keyword ? HIGHLIGHT_KEYWORD : HIGHLIGHT_NONE, p);
}

/* Returns the longest word of the list that begins the bytes that are held. Sets *more if a longer
 * one may. */
static struct str find_opener(const struct highlight *h, const char *list, bool *more)
{
    struct str rest = str_of(list), held = {h->held, h->n}, one, found = STR_NONE;

    while ((one = str_word(&rest)).p) {
        /* `#` and `;` are part of other words and signs, too. */
        if (one.n == 1 && list == h->language->line && h->begun && !ascii_is_space(h->before))
            continue;
        if (str_starts(held, one) && one.n > found.n)
            found = one;
        *more = *more || (held.n < one.n && str_starts(one, held));
    }
    return found;
}

/* Begins a comment or a string, or passes on one byte. */
static size_t pass_opener(struct highlight *h, struct pieces *p, bool last)
{
    struct str ends = str_of(h->language->block), open = str_word(&ends), close = str_word(&ends);
    bool more = false;
    struct str line = find_opener(h, h->language->line, &more);
    struct str quote = find_opener(h, h->language->quotes, &more);
    struct str held = {h->held, h->n};
    bool block = open.n > 0 && str_starts(held, open);

    more = more || (open.n > held.n && str_starts(open, held));
    if (more && !last)
        return 0;
    if (block && open.n > line.n) {
        h->state = LEX_COMMENT;
        h->end = close;
        return pass_held(h, open.n, HIGHLIGHT_COMMENT, p);
    }
    if (line.n > 0) {
        h->state = LEX_LINE;
        h->line = HIGHLIGHT_COMMENT;
        return pass_held(h, line.n, HIGHLIGHT_COMMENT, p);
    }
    if (quote.n > 0) {
        h->state = LEX_STRING;
        h->end = quote;
        return pass_held(h, quote.n, HIGHLIGHT_STRING, p);
    }
    return pass_held(h, 1, HIGHLIGHT_NONE, p);
}

/* Passes on a part of a comment of several lines, or of a string. */
static size_t pass_inside(struct highlight *h, struct pieces *p, bool last)
{
    enum highlight_kind kind = h->state == LEX_STRING ? HIGHLIGHT_STRING : HIGHLIGHT_COMMENT;
    struct str held = {h->held, h->n};

    if (h->escaped || (kind == HIGHLIGHT_STRING && h->held[0] == '\\')) {
        h->escaped = !h->escaped;
        return pass_held(h, 1, kind, p);
    }
    if (str_starts(held, h->end)) {
        h->state = LEX_CODE;
        return pass_held(h, h->end.n, kind, p);
    }
    return !last && str_starts(h->end, held) ? 0 : pass_held(h, 1, kind, p);
}

static size_t pass_token(struct highlight *h, struct pieces *p, bool last)
{
    char c = h->held[0];

    if (h->language == &diff && !h->begun) {
        h->state = LEX_LINE;
        h->line = c == '+'   ? HIGHLIGHT_ADDED
                  : c == '-' ? HIGHLIGHT_REMOVED
                  : c == '@' ? HIGHLIGHT_COMMENT
                             : HIGHLIGHT_NONE;
    }
    if (h->state == LEX_NUMBER && !is_word_byte(c) && c != '.')
        h->state = LEX_CODE;
    if (h->state == LEX_WORD && !is_word_byte(c))
        h->state = LEX_CODE;
    switch (h->state) {
    case LEX_LINE:
        return pass_held(h, 1, h->line, p);
    case LEX_WORD:
        return pass_held(h, 1, HIGHLIGHT_NONE, p);
    case LEX_NUMBER:
        return pass_held(h, 1, HIGHLIGHT_NUMBER, p);
    case LEX_COMMENT:
    case LEX_STRING:
        return pass_inside(h, p, last);
    case LEX_CODE:
        break;
    }
    if (ascii_is_digit(c)) {
        h->state = LEX_NUMBER;
        return pass_held(h, 1, HIGHLIGHT_NUMBER, p);
    }
    return is_word_byte(c) ? pass_word(h, p, last) : pass_opener(h, p, last);
}

void highlight_feed(struct highlight *h, struct str text, highlight_fn *fn, void *arg)
{
    struct pieces p = {.fn = fn, .arg = arg};

    if (!h->language) {
        fn(arg, HIGHLIGHT_NONE, text);
        return;
    }
    for (size_t i = 0; i < text.n; i++) {
        h->held[h->n++] = text.p[i];
        while (h->n > 0 && pass_token(h, &p, false) > 0)
            continue;
    }
    pass_pieces(&p);
}

void highlight_end_line(struct highlight *h, highlight_fn *fn, void *arg)
{
    struct pieces p = {.fn = fn, .arg = arg};
    while (h->n > 0)
        (void)pass_token(h, &p, true);
    pass_pieces(&p);
    if (h->state != LEX_COMMENT &&
        (h->state != LEX_STRING || (h->end.n == 1 && h->end.p[0] != '`')))
        h->state = LEX_CODE;
    h->escaped = h->begun = false;
    h->before = '\0';
}
