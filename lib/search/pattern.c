#include "chathist/search/pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "chathist/search/skip_index.h"
#include "search/literal_scan.h"
#include "search/regex_literals.h"

struct pattern_needle {
    struct regex *regex;             /* NULL: a fixed string */
    struct regex_literals *literals; /* of the expression; owned */
    struct buf bytes;                /* folded unless the case counts */
    unsigned group;
    unsigned looked, lacked; /* texts in which the literals were looked for, and without one */
    size_t rare;             /* the clause that was missing last */
    /* for the current text: */
    size_t text_at, folded_at; /* the same place in the text and in the folded piece */
    size_t piece_at;           /* of that piece */
    bool known;                /* `result`, `at` and `len` are those of the next match */
    int result;
    size_t at, len;
};

void pattern_init(struct pattern *p)
{
    *p = (struct pattern){0};
    buf_init(&p->folded, SIZE_MAX);
}

void pattern_release(struct pattern *p)
{
    for (size_t i = 0; i < p->count; i++) {
        regex_free(p->needles[i].regex);
        free(p->needles[i].literals);
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

/* For lacks_clause. What looks for these texts otherwise folds them itself. */
static void make_lower_case(struct regex_literals *l)
{
    for (size_t i = 0; i < l->count; i++) {
        for (size_t k = 0; k < l->clause[i].count; k++) {
            struct literal_text *text = &l->clause[i].at[k];

            for (size_t b = 0; b < text->n; b++)
                text->bytes[b] = ascii_lower(text->bytes[b]);
        }
    }
}

static int add_regex(const struct pattern *p, struct pattern_needle *n, struct str text,
                     struct err *e)
{
    struct buf repaired = BUF_INIT(SIZE_MAX);

    n->regex = regex_new(text, !p->case_sensitive, p->words, e);
    if (!n->regex)
        return -1;
    utf8_add_repaired(&repaired, text);
    n->literals = mem_zalloc(sizeof *n->literals);
    regex_literals_find(n->literals, buf_str(&repaired));
    if (!p->case_sensitive)
        make_lower_case(n->literals);
    buf_release(&repaired);
    return 0;
}

int pattern_next_group(struct pattern *p, struct err *e)
{
    if (p->group + 1 == PATTERN_GROUPS)
        return err_set(e, ERR_USAGE, "at most %d texts can be searched for at once",
                       PATTERN_GROUPS);
    p->group++;
    return 0;
}

int pattern_add(struct pattern *p, struct str text, struct err *e)
{
    struct pattern_needle n = {.bytes = BUF_INIT(SIZE_MAX), .group = p->group};

    if (p->regex) {
        if (add_regex(p, &n, text, e) < 0)
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
    to->group = from->group;
    to->needles = mem_grow(NULL, &to->cap, from->count, sizeof *to->needles);
    for (size_t i = 0; i < from->count; i++) {
        struct pattern_needle *n = &to->needles[to->count++];

        *n = from->needles[i];
        if (n->regex) {
            n->regex = regex_share(n->regex);
            n->literals = mem_resize(NULL, 1, sizeof *n->literals);
            *n->literals = *from->needles[i].literals;
        }
        buf_init(&n->bytes, SIZE_MAX);
        buf_add_str(&n->bytes, buf_str(&from->needles[i].bytes));
    }
}

/* ---- texts of which a message must hold one ---- */

#define CLAUSE_TEXTS 64

struct clause {
    struct {
        struct str text;
        bool exact; /* its case counts */
    } at[CLAUSE_TEXTS];
    size_t count;
};

/* Adds the texts of a clause of one needle. Returns false if it has none, or there are too many. */
static bool add_needle(struct clause *c, const struct pattern *p, const struct pattern_needle *n,
                       size_t number)
{
    const struct literal_set *set = n->regex ? &n->literals->clause[number] : NULL;
    size_t count = set ? set->count : 1;

    if (set ? number >= n->literals->count : number > 0 || n->bytes.len == 0)
        return false;
    if (c->count + count > CLAUSE_TEXTS)
        return false;
    for (size_t i = 0; i < count; i++) {
        c->at[c->count].exact = p->case_sensitive;
        c->at[c->count++].text =
            set ? (struct str){set->at[i].bytes, set->at[i].n} : buf_str(&n->bytes);
    }
    return true;
}

/* Sets *c to a clause of a group. If the group has several needles, that is the best one of each.
 * Returns false if one of them has no such clause. */
static bool find_clause(struct clause *c, const struct pattern *p, unsigned group, size_t number)
{
    size_t needles = 0;

    c->count = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (p->needles[i].group != group)
            continue;
        if ((needles++ > 0 && number > 0) || !add_needle(c, p, &p->needles[i], number))
            return false;
    }
    return needles > 0;
}

/* Makes *s the scan for a clause if that takes less time. */
static void offer(const struct clause *c, bool wide, struct literal_scan *s)
{
    struct literal_scan other, worse;
    bool fits;

    literal_scan_init(&other, wide);
    for (size_t i = 0; i < c->count; i++)
        literal_scan_add(&other, c->at[i].text, c->at[i].exact);
    fits = literal_scan_ready(&other) && (s->count == 0 || other.cost < s->cost);
    worse = fits ? *s : other;
    if (fits)
        *s = other;
    literal_scan_release(&worse);
}

bool pattern_literals(const struct pattern *p, bool wide, struct literal_scan *s,
                      struct skip_query *q)
{
    struct clause c;

    literal_scan_init(s, wide);
    for (unsigned group = 0; group <= p->group; group++) {
        for (size_t number = 0; find_clause(&c, p, group, number); number++) {
            offer(&c, wide, s);
            for (size_t i = 0; i < c.count; i++)
                skip_query_add(q, c.at[i].text);
            skip_query_end(q);
        }
    }
    return s->count > 0;
}

bool pattern_is_literal(const struct pattern *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->needles[i].regex && !p->needles[i].literals->all)
            return false;
    return p->group == 0 && !p->words;
}

/* ---- fixed strings ---- */

/* Returns the length of the code point at an offset before the end. *cp is -1 for invalid bytes. */
static size_t step_at(struct str text, size_t at, int32_t *cp)
{
    size_t n = utf8_decode(str_skip(text, at), cp);

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

#define PIECE ((size_t)1 << 20)
/* A code point has at most four bytes and its folded form at least one, so that a match has at most
 * this many bytes for each of the needle. */
#define LONGEST 4

/* Returns an offset that is not inside a code point: this one or one soon after it. */
static size_t next_boundary(struct str text, size_t at)
{
    while (at < text.n && utf8_inside(text, at))
        at++;
    return at < text.n ? at : text.n;
}

/* Folds a piece of the text that holds every match at `from`, unless the current piece does. */
static void fold_piece(struct pattern *p, size_t from, size_t longest)
{
    struct str piece;

    if (from >= p->piece_at && from < p->piece_end &&
        (p->piece_end == p->text.n || p->piece_end - from > longest))
        return;
    p->piece_at = from;
    p->piece_end = next_boundary(
        p->text, p->text.n - from > PIECE + longest ? from + PIECE + longest : p->text.n);
    piece = (struct str){p->text.p + from, p->piece_end - from};
    buf_clear(&p->folded);
    utf8_add_folded(&p->folded, piece);
    p->moved = utf8_ascii(piece) < piece.n;
}

/* Finds a needle in the folded text at `from` or after it, and sets n->at and n->len. */
static bool find_folded(struct pattern *p, struct pattern_needle *n, size_t from)
{
    struct str needle = buf_str(&n->bytes), folded;
    size_t longest = LONGEST * needle.n, at, end, folded_end;
    const char *found;

    for (;; from = next_boundary(p->text, p->piece_end - longest)) {
        if (from >= p->text.n)
            return false;
        fold_piece(p, from, longest);
        if (n->piece_at != p->piece_at || n->text_at < p->piece_at || n->text_at > from) {
            n->piece_at = n->text_at = p->piece_at;
            n->folded_at = 0;
        }
        if (p->moved)
            advance(p->text, &n->text_at, &n->folded_at, from, SIZE_MAX);
        at = p->moved ? n->folded_at : from - p->piece_at;
        folded = buf_str(&p->folded);
        found = str_find(str_skip(folded, at), needle);
        if (found)
            break;
        if (p->piece_end == p->text.n)
            return false;
    }
    at = (size_t)(found - folded.p);
    n->at = p->piece_at + at;
    n->len = needle.n;
    if (p->moved) {
        advance(p->text, &n->text_at, &n->folded_at, SIZE_MAX, at);
        /* The next search may begin inside this match, so the two offsets stay at its beginning. */
        end = n->text_at;
        folded_end = n->folded_at;
        advance(p->text, &end, &folded_end, SIZE_MAX, at + needle.n);
        n->at = n->text_at;
        n->len = end - n->at;
    }
    return true;
}

static bool find_exact(const struct pattern *p, struct pattern_needle *n, size_t from)
{
    const char *found = str_find(str_skip(p->text, from), buf_str(&n->bytes));

    n->at = found ? (size_t)(found - p->text.p) : 0;
    n->len = n->bytes.len;
    return found != NULL;
}

static int find_fixed(struct pattern *p, struct pattern_needle *n, size_t from, bool empty_too)
{
    int32_t cp;

    if (n->bytes.len == 0)
        return empty_too ? find_empty(p, n, from) : 0;
    while (from < p->text.n) {
        if (!(p->case_sensitive ? find_exact(p, n, from) : find_folded(p, n, from)))
            return 0;
        if (!p->words || (!word_before(p->text, n->at) && !word_after(p->text, n->at + n->len)))
            return 1;
        from = n->at + step_at(p->text, n->at, &cp);
    }
    return 0;
}

/* ---- expressions ---- */

/* Returns whether the text holds one of a set. In a folded text, texts beyond ASCII count as
 * held. */
static bool holds_one(struct str text, const struct literal_set *set, bool folded)
{
    for (size_t i = 0; i < set->count; i++) {
        struct str one = {set->at[i].bytes, set->at[i].n};

        if ((folded && utf8_ascii(one) < one.n) || str_find(text, one))
            return true;
    }
    return false;
}

/* The literals are looked for in these many texts, and then as long as most texts lack one: where
 * all are there, the time is lost. */
#define LOOKS 64

/* Returns whether the text certainly has no match, because it holds no text of some clause of the
 * expression. That takes a fraction of the time of PCRE2. An only clause is not looked for: the
 * scan for it has found this text. */
static bool lacks_clause(struct pattern *p, struct pattern_needle *n)
{
    const struct regex_literals *l = n->literals;
    bool folded = !p->case_sensitive, lacks = false;

    if (l->count < 2 || p->text.n > PIECE || (n->looked >= LOOKS && n->lacked < n->looked / 4 * 3))
        return false;
    if (folded)
        fold_piece(p, 0, 0);
    for (size_t i = 0; i < l->count && !lacks; i++) {
        size_t k = (n->rare + i) % l->count;

        lacks = !holds_one(folded ? buf_str(&p->folded) : p->text, &l->clause[k], folded);
        if (lacks)
            n->rare = k;
    }
    n->looked++;
    n->lacked += lacks;
    return lacks;
}

static int find_regex(struct pattern *p, struct pattern_needle *n, bool empty_too, struct err *e)
{
    if (p->from == 0 && lacks_clause(p, n))
        return 0;
    return regex_find(n->regex, p->text, p->from, empty_too, &n->at, &n->len, e);
}

/* ---- all of them ---- */

void pattern_start(struct pattern *p, struct str text)
{
    p->text = text;
    p->piece_at = p->piece_end = 0;
    p->from = 0;
    p->ended = false;
    for (size_t i = 0; i < p->count; i++) {
        p->needles[i].piece_at = p->needles[i].text_at = p->needles[i].folded_at = 0;
        p->needles[i].known = false;
    }
}

/* Finds the next match of a needle if it is not known. Returns as pattern_find does. */
static int find_needle(struct pattern *p, struct pattern_needle *n, bool empty_too, struct err *e)
{
    if (n->known && (n->result == 0 || n->at >= p->from))
        return n->result;
    n->result = n->regex ? find_regex(p, n, empty_too, e) : find_fixed(p, n, p->from, empty_too);
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

uint64_t pattern_all_groups(const struct pattern *p)
{
    return UINT64_MAX >> (PATTERN_GROUPS - 1 - p->group);
}

int pattern_find_groups(struct pattern *p, struct str text, uint64_t *missing, size_t *at,
                        size_t *len, struct err *e)
{
    int found = pattern_find(p, text, at, len, e);

    for (size_t i = 0; i < p->count && found > 0; i++)
        if (p->needles[i].result > 0)
            *missing &= ~(UINT64_C(1) << p->needles[i].group);
    return found;
}

int pattern_find_message(struct pattern *p, struct searched_text *t, struct text_match *m,
                         struct err *e)
{
    uint64_t missing = pattern_all_groups(p);
    size_t at, len;

    *m = (struct text_match){.number = SIZE_MAX};
    while (missing != 0 && searched_text_next(t, &m->text)) {
        int found = pattern_find_groups(p, m->text, &missing, &at, &len, e);

        if (found < 0)
            return -1;
        if (found > 0 && m->number == SIZE_MAX) {
            m->number = m->count;
            m->at = at;
            m->len = len;
        }
        m->count++;
    }
    return missing == 0;
}

int pattern_next(struct pattern *p, size_t *at, size_t *len, struct err *e)
{
    return next_match(p, false, at, len, e);
}
