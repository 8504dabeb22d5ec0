#include "chathist/search/pattern.h"

#include <stdint.h>
#include <stdlib.h>

#include "chathist/base/memory.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "chathist/search/skip_index.h"
#include "search/literal_scan.h"
#include "search/regex_literals.h"

struct pattern_needle {
    struct regex *regex;
    struct regex_literals *literals; /* of an expression; owned; NULL: a fixed string, */
    struct buf bytes;                /* this one */
    unsigned group;
    unsigned looked, lacked; /* texts in which the literals were looked for, and without one */
    size_t rare;             /* the clause that was missing last */
    /* for the current text: */
    bool known; /* `result`, `at` and `len` are those of the next match */
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

/* Adds an expression for a fixed string. A letter beyond ASCII stands with all letters of the same
 * folding: PCRE2 may fold by an older version of Unicode. */
static void add_quoted(struct buf *out, struct str text, bool case_sensitive)
{
    while (text.n > 0) {
        int32_t same[UTF8_FOLD_SAME], cp;
        size_t n = utf8_decode(text, &cp);
        size_t count = cp < 0x80 || case_sensitive ? 1 : utf8_fold_same(cp, same);

        if (count == 1)
            regex_add_quoted(out, (struct str){text.p, n});
        else
            buf_add_byte(out, '[');
        for (size_t i = 0; count > 1 && i < count; i++) {
            char bytes[4];

            buf_add(out, bytes, utf8_encode(same[i], bytes));
        }
        if (count > 1)
            buf_add_byte(out, ']');
        text = str_skip(text, n);
    }
}

static int add_fixed(const struct pattern *p, struct pattern_needle *n, struct str text,
                     struct err *e)
{
    struct buf expression = BUF_INIT(SIZE_MAX);

    /* Bytes that are not UTF-8 were stored as U+FFFD. */
    utf8_add_repaired(&n->bytes, text);
    add_quoted(&expression, buf_str(&n->bytes), p->case_sensitive);
    n->regex = regex_new(buf_str(&expression), !p->case_sensitive, p->words, NULL);
    buf_release(&expression);
    if (n->regex)
        return 0;
    buf_release(&n->bytes);
    return err_set(e, ERR_USAGE, "'%.*s' is too long to be searched for", ERR_SHOWN(text));
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

    if ((p->regex ? add_regex(p, &n, text, e) : add_fixed(p, &n, text, e)) < 0)
        return -1;
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
        n->regex = regex_share(n->regex);
        buf_init(&n->bytes, SIZE_MAX);
        if (n->literals) {
            n->literals = mem_resize(NULL, 1, sizeof *n->literals);
            *n->literals = *from->needles[i].literals;
        }
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
    const struct literal_set *set = n->literals ? &n->literals->clause[number] : NULL;
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
    if (p->bare.n > 0) {
        skip_query_add(q, p->bare);
        skip_query_end(q);
    }
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
        if (p->needles[i].literals && !p->needles[i].literals->all)
            return false;
    return p->group == 0 && !p->words;
}

/* ---- matching ---- */

/* Longer texts are not looked through for literals. */
#define LOOKED_THROUGH ((size_t)1 << 20)

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

    if (!l || l->count < 2 || p->text.n > LOOKED_THROUGH ||
        (n->looked >= LOOKS && n->lacked < n->looked / 4 * 3))
        return false;
    if (folded && !p->is_folded) {
        buf_clear(&p->folded);
        utf8_add_folded(&p->folded, p->text);
        p->is_folded = true;
    }
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

void pattern_start(struct pattern *p, struct str text)
{
    p->text = text;
    p->is_folded = false;
    p->from = 0;
    p->ended = false;
    for (size_t i = 0; i < p->count; i++)
        p->needles[i].known = false;
}

/* Finds the next match of a needle if it is not known. Returns as pattern_find does. */
static int find_needle(struct pattern *p, struct pattern_needle *n, bool empty_too, struct err *e)
{
    if (n->known && (n->result == 0 || n->at >= p->from))
        return n->result;
    if (p->from == 0 && lacks_clause(p, n))
        n->result = 0;
    else
        n->result = regex_find(n->regex, p->text, p->from, empty_too, &n->at, &n->len, e);
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

int pattern_find_any(struct pattern *p, struct searched_text *t, struct err *e)
{
    struct str text;
    size_t at, len;
    int found = 0;

    while (found == 0 && searched_text_next(t, &text))
        found = pattern_find(p, text, &at, &len, e);
    return found;
}

int pattern_next(struct pattern *p, size_t *at, size_t *len, struct err *e)
{
    return next_match(p, false, at, len, e);
}
