#include "search/regex_literals.h"

#include <stdint.h>
#include <string.h>

#include "chathist/base/utf8.h"

/* ---- sets of texts ---- */

static struct str literal_str(const struct literal_text *t)
{
    return (struct str){t->bytes, t->n};
}

/* Returns whether each text of `a` holds one of `b`, so that nothing is gained by `b`. */
static bool implies(const struct literal_set *a, const struct literal_set *b)
{
    for (size_t i = 0; i < a->count; i++) {
        size_t k = 0;

        while (k < b->count && !str_find(literal_str(&a->at[i]), literal_str(&b->at[k])))
            k++;
        if (k == b->count)
            return false;
    }
    return true;
}

/* Adds the texts of another set. A text that holds another one is left out: the shorter one is
 * there, too. Returns false if not all fit. */
static bool unite(struct literal_set *s, const struct literal_set *other)
{
    for (size_t i = 0; i < other->count; i++) {
        struct literal_set one = {.count = 1, .at = {other->at[i]}};
        size_t kept = 0;

        if (implies(&one, s))
            continue;
        for (size_t k = 0; k < s->count; k++)
            if (!str_find(literal_str(&s->at[k]), literal_str(&one.at[0])))
                s->at[kept++] = s->at[k];
        s->count = kept;
        if (s->count == LITERAL_SET)
            return false;
        s->at[s->count++] = one.at[0];
    }
    return true;
}

/* Says how few texts a set lets through. The length of the shortest text counts most. */
static size_t worth(const struct literal_set *s)
{
    size_t shortest = LITERAL_BYTES;

    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].n < shortest)
            shortest = s->at[i].n;
    return shortest * LITERAL_SET + LITERAL_SET - s->count;
}

/* ---- parts of an expression ---- */

/* The known properties of the text that a part of the expression matches. */
struct part {
    bool exact;               /* it is `text` */
    bool all;                 /* each text with one of the first clause has a match */
    struct literal_text text; /* if not exact: the text before the end of the part, so far */
    struct literal_set clause[LITERAL_CLAUSES]; /* it holds one of each of these */
    size_t clauses;
};

/* Keeps the best clauses, in order. */
static void add_clause(struct part *p, const struct literal_set *clause)
{
    size_t i;

    for (i = 0; i < p->clauses; i++)
        if (implies(&p->clause[i], clause))
            return;
    if (i < LITERAL_CLAUSES)
        p->clauses++;
    else if (worth(&p->clause[--i]) >= worth(clause))
        return;
    for (; i > 0 && worth(&p->clause[i - 1]) < worth(clause); i--)
        p->clause[i] = p->clause[i - 1];
    p->clause[i] = *clause;
}

/* Ends the text that is known without a gap. */
static void end_text(struct part *p)
{
    struct literal_set one = {.count = 1, .at = {p->text}};

    if (p->text.n > 0)
        add_clause(p, &one);
}

static void break_text(struct part *p)
{
    end_text(p);
    p->text.n = 0;
    p->exact = p->all = false;
}

/* Appends `next`, which matches once, to a sequence. */
static void append_part(struct part *p, const struct part *next)
{
    if (!next->exact || p->text.n + next->text.n > LITERAL_BYTES)
        break_text(p);
    p->all = p->all && next->all;
    if (next->exact) {
        memcpy(p->text.bytes + p->text.n, next->text.bytes, next->text.n);
        p->text.n += next->text.n;
        return;
    }
    for (size_t i = 0; i < next->clauses; i++)
        add_clause(p, &next->clause[i]);
}

/* More repetitions than these are not looked at. */
#define COPIES 4

/* ---- reading ---- */

struct reader {
    const char *p, *end;
    bool failed; /* there is something that is not understood */
    unsigned depth;
};

/* Deeper groups are not understood, for the memory that each needs. */
#define DEPTH 20

static bool skip_text(struct reader *r, const char *text)
{
    bool there = str_starts((struct str){r->p, (size_t)(r->end - r->p)}, str_of(text));

    if (there)
        r->p += strlen(text);
    return there;
}

static bool one_of(const struct reader *r, const char *set)
{
    return r->p < r->end && *r->p && strchr(set, *r->p);
}

static void give_up(struct reader *r)
{
    r->failed = true;
    r->p = r->end;
}

/* Makes *p match the empty text under a condition that is not examined (such as `\b`). */
static void set_empty(struct part *p)
{
    *p = (struct part){.exact = true};
}

static void set_unknown(struct part *p)
{
    *p = (struct part){.exact = false};
}

/* Reads a character that stands for itself. */
static void read_literal(struct reader *r, struct part *p)
{
    int32_t cp = -1;

    if (r->p < r->end)
        r->p += utf8_decode((struct str){r->p, (size_t)(r->end - r->p)}, &cp);
    if (cp < 0) {
        give_up(r);
        return;
    }
    set_empty(p);
    p->text.n = utf8_encode(cp, p->text.bytes);
    /* The versions of Unicode by which PCRE2 and base/utf8 fold case may differ. */
    p->all = cp < 0x80;
}

/* Reads an escape outside a class, from after its backslash. */
static void read_backslash(struct reader *r, struct part *p)
{
    static const char controls[] = "a\af\fn\nr\rt\te\033";
    const char *found;

    if (r->p == r->end || (!ascii_is_letter(*r->p) && !ascii_is_digit(*r->p))) {
        read_literal(r, p);
        return;
    }
    set_unknown(p);
    found = memchr(controls, *r->p, sizeof controls - 1);
    if (found && (found - controls) % 2 == 0) {
        *p = (struct part){.exact = true, .all = true, .text = {1, {found[1]}}};
    } else if (one_of(r, "bBAZzGK")) {
        set_empty(p);
    } else if (!one_of(r, "dDwWsShHvVRX")) {
        give_up(r);
        return;
    }
    r->p++;
}

/* Passes over a class after its `[`. */
static void pass_class(struct reader *r)
{
    skip_text(r, "^");
    for (bool first = true; r->p < r->end && (first || *r->p != ']'); first = false) {
        if (skip_text(r, "[:")) {
            while (one_of(r, "^") || (r->p < r->end && ascii_is_letter(*r->p)))
                r->p++;
            if (!skip_text(r, ":]"))
                give_up(r);
        } else if (skip_text(r, "[.") || skip_text(r, "[=") || skip_text(r, "\\Q") ||
                   skip_text(r, "\\E") || skip_text(r, "\\c")) {
            give_up(r);
        } else {
            skip_text(r, "\\");
            r->p += r->p < r->end;
        }
    }
    if (!skip_text(r, "]"))
        give_up(r);
}

static void read_alternatives(struct reader *r, struct part *p);

/* Reads a group after its `(`. Named groups, options and the like are not understood. */
static void read_group(struct reader *r, struct part *p)
{
    bool assertion =
        skip_text(r, "?=") || skip_text(r, "?!") || skip_text(r, "?<=") || skip_text(r, "?<!");

    if (++r->depth > DEPTH || (!assertion && !skip_text(r, "?:") && one_of(r, "?*")))
        give_up(r);
    read_alternatives(r, p);
    r->depth--;
    if (!skip_text(r, ")"))
        give_up(r);
    if (assertion)
        set_empty(p);
}

static unsigned read_number(struct reader *r)
{
    unsigned n = 0;

    while (one_of(r, "0123456789") && n <= UINT16_MAX)
        n = n * 10 + (unsigned)(*r->p++ - '0');
    return n;
}

/* Reads {N}, {N,} or {N,M}. Returns false if these characters stand for themselves. Versions of
 * PCRE2 differ about {,M} and about spaces. */
static bool read_braces(struct reader *r, unsigned *least, unsigned *most)
{
    const char *start = r->p;

    if (!skip_text(r, "{"))
        return false;
    while (one_of(r, "0123456789, \t"))
        r->p++;
    if (!one_of(r, "}")) {
        r->p = start;
        return false;
    }
    r->p = start + 1;
    if (!one_of(r, "0123456789"))
        give_up(r);
    *least = *most = read_number(r);
    if (skip_text(r, ","))
        *most = one_of(r, "}") ? UINT32_MAX : read_number(r);
    if (!skip_text(r, "}"))
        give_up(r);
    return true;
}

/* Reads a quantifier. Returns false without one. */
static bool read_quantifier(struct reader *r, unsigned *least, unsigned *most)
{
    *least = 0;
    *most = UINT32_MAX;
    if (skip_text(r, "+"))
        *least = 1;
    else if (skip_text(r, "?"))
        *most = 1;
    else if (!skip_text(r, "*") && !read_braces(r, least, most))
        return false;
    /* It may be lazy, or possessive. */
    (void)(skip_text(r, "?") || skip_text(r, "+"));
    return true;
}

static void read_atom(struct reader *r, struct part *p)
{
    unsigned least, most;

    set_unknown(p);
    if (skip_text(r, "\\"))
        read_backslash(r, p);
    else if (skip_text(r, "["))
        pass_class(r);
    else if (skip_text(r, "^") || skip_text(r, "$"))
        set_empty(p);
    else if (skip_text(r, "("))
        read_group(r, p);
    else if (read_quantifier(r, &least, &most))
        give_up(r); /* after another one */
    else if (!skip_text(r, "."))
        read_literal(r, p);
}

static void read_branch(struct reader *r, struct part *p)
{
    *p = (struct part){.exact = true, .all = true};
    while (r->p < r->end && !one_of(r, "|)")) {
        unsigned least, most;
        struct part next;

        read_atom(r, &next);
        if (r->failed)
            return;
        next.all = next.all && next.exact; /* not that of alternatives in a group */
        if (!read_quantifier(r, &least, &most))
            least = most = 1;
        for (unsigned i = 0; i < least && i < COPIES; i++)
            append_part(p, &next);
        if (most > least || least > COPIES || least == 0)
            break_text(p);
    }
    end_text(p);
}

static void read_alternatives(struct reader *r, struct part *p)
{
    read_branch(r, p);
    while (!r->failed && skip_text(r, "|")) {
        struct part other;

        read_branch(r, &other);
        p->exact = false;
        p->all = p->all && other.all;
        p->clauses = p->clauses > 0 && other.clauses > 0 && unite(&p->clause[0], &other.clause[0]);
    }
}

void regex_literals_find(struct regex_literals *l, struct str expression)
{
    struct reader r = {.p = expression.p, .end = expression.p + expression.n};
    struct part p;

    *l = (struct regex_literals){0};
    if (expression.n == 0)
        return;
    read_alternatives(&r, &p);
    if (r.failed || r.p < r.end)
        return;
    memcpy(l->clause, p.clause, sizeof l->clause);
    l->count = p.clauses;
    l->all = p.all && p.clauses == 1;
}
