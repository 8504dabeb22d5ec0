#include "search/regex_literals.h"

#include <stdint.h>
#include <string.h>

#include "chathist/base/utf8.h"

/* ---- sets of texts ---- */

static struct str text_of(const struct literal_text *t)
{
    return (struct str){t->bytes, t->n};
}

static bool has(const struct literal_set *s, struct str text)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_eq(text_of(&s->at[i]), text))
            return true;
    return false;
}

/* Adds the text that consists of two parts. Returns false if the set is full. */
static bool add(struct literal_set *s, struct str first, struct str second)
{
    struct literal_text t = {.n = first.n + second.n};

    if (t.n > LITERAL_BYTES)
        return false;
    memcpy(t.bytes, first.p, first.n);
    memcpy(t.bytes + first.n, second.p, second.n);
    if (has(s, text_of(&t)))
        return true;
    if (s->count == LITERAL_SET)
        return false;
    s->at[s->count++] = t;
    return true;
}

static struct literal_set only_empty(void)
{
    return (struct literal_set){.count = 1};
}

/* Sets *out to each text of `a` followed by each of `b`. Returns false if these are too many or
 * too long. */
static bool join(struct literal_set *out, const struct literal_set *a, const struct literal_set *b)
{
    out->count = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (!add(out, text_of(&a->at[i]), text_of(&b->at[k])))
                return false;
    return true;
}

/* Adds the texts of another set. Returns false if not all fit. */
static bool unite(struct literal_set *s, const struct literal_set *other)
{
    for (size_t i = 0; i < other->count; i++)
        if (!add(s, text_of(&other->at[i]), STR("")))
            return false;
    return true;
}

/* Removes each text that holds another one of the set: the shorter one is there, too. */
static void reduce(struct literal_set *s)
{
    for (size_t i = 0; i < s->count;) {
        bool needless = false;

        for (size_t k = 0; k < s->count && !needless; k++)
            needless = k != i && str_find(text_of(&s->at[i]), text_of(&s->at[k]));
        if (needless)
            s->at[i] = s->at[--s->count];
        else
            i++;
    }
}

/* Says how few texts a set lets through; 0: all. The length of the shortest text counts most. */
static size_t worth(const struct literal_set *s)
{
    size_t shortest = LITERAL_BYTES;

    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].n < shortest)
            shortest = s->at[i].n;
    return s->count && shortest ? shortest * LITERAL_SET + LITERAL_SET - s->count : 0;
}

/* ---- parts of an expression ---- */

/* The known properties of the text that a part of the expression matches. */
struct part {
    bool exact;                    /* it is one of `begin` */
    bool all;                      /* exact, and each of these matches, whatever stands around it */
    struct literal_set begin, end; /* it begins and, if not exact, ends with one of these */
    struct literal_set clause[LITERAL_CLAUSES]; /* it holds one of each of these, too */
    size_t clauses;
};

/* Makes *p match the empty text, perhaps under a condition that is not examined (such as `\b`). */
static void set_empty(struct part *p)
{
    *p = (struct part){.exact = true, .begin = only_empty()};
}

static void set_unknown(struct part *p)
{
    *p = (struct part){.begin = only_empty(), .end = only_empty()};
}

static const struct literal_set *end_of(const struct part *p)
{
    return p->exact ? &p->begin : &p->end;
}

/* Returns whether each text of `a` holds one of `b`, so that nothing is gained by `b`. */
static bool implies(const struct literal_set *a, const struct literal_set *b)
{
    for (size_t i = 0; i < a->count; i++) {
        size_t k = 0;

        while (k < b->count && !str_find(text_of(&a->at[i]), text_of(&b->at[k])))
            k++;
        if (k == b->count)
            return false;
    }
    return true;
}

/* Keeps the best clauses, in order. */
static void add_clause(struct part *p, const struct literal_set *clause)
{
    size_t i;

    if (worth(clause) == 0)
        return;
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
    reduce(&p->clause[i]);
}

static void add_clauses(struct part *p, const struct part *of)
{
    for (size_t i = 0; i < of->clauses; i++)
        add_clause(p, &of->clause[i]);
}

/* Appends `b` to `a`. */
static void append(struct part *a, const struct part *b)
{
    struct literal_set joined;
    bool fits = join(&joined, end_of(a), &b->begin);

    a->all = a->all && b->all && fits;
    if (a->exact && fits) {
        a->begin = joined;
    } else if (!a->exact && fits && b->exact) {
        a->end = joined;
    } else if (fits) {
        add_clause(a, &joined);
    } else {
        add_clause(a, end_of(a));
        add_clause(a, &b->begin);
    }
    if (!b->exact || !fits)
        a->end = *end_of(b);
    a->exact = a->exact && b->exact && fits;
    add_clauses(a, b);
}

/* Sets *out to the best clause, those of begin and end included. */
static void best_clause(const struct part *p, struct literal_set *out)
{
    const struct literal_set *sets[] = {&p->begin, end_of(p), p->clause};

    *out = *sets[0];
    for (size_t i = 1; i < (p->clauses ? 3 : 2); i++)
        if (worth(sets[i]) > worth(out))
            *out = *sets[i];
    reduce(out);
}

/* Makes `a` the part that is `a` or `b`. */
static void alternate(struct part *a, const struct part *b)
{
    struct literal_set clause, other, begin = a->begin, end = *end_of(a);
    bool fits = unite(&begin, &b->begin);

    if (a->exact && b->exact && fits) {
        a->begin = begin;
        a->all = a->all && b->all;
        return;
    }
    best_clause(a, &clause);
    best_clause(b, &other);
    a->clauses = 0;
    if (worth(&clause) && worth(&other) && unite(&clause, &other))
        add_clause(a, &clause);
    a->begin = fits ? begin : only_empty();
    a->end = unite(&end, end_of(b)) ? end : only_empty();
    a->exact = a->all = false;
}

/* More repetitions than these are not looked at. */
#define COPIES 4

static void repeat(struct part *p, unsigned least, unsigned most)
{
    struct part one = *p, none = {.exact = true, .all = true, .begin = only_empty()};

    if (least == 0 && (most > 1 || !p->exact)) {
        set_unknown(p);
        return;
    }
    if (least == 0) {
        if (most == 0)
            *p = none;
        else
            alternate(p, &none);
        return;
    }
    for (unsigned i = 1; i < least && i < COPIES; i++)
        append(p, &one);
    if (most > least || least > COPIES) {
        p->end = *end_of(p);
        p->exact = p->all = false;
    }
}

/* ---- reading ---- */

struct reader {
    const char *p, *end;
    bool quoted;   /* after \Q */
    bool failed;   /* there is something that is not understood */
    bool any_case; /* there are options */
    unsigned depth;
};

/* Deeper groups are not understood, for the memory that each needs. */
#define DEPTH 20

static bool starts(const struct reader *r, const char *text)
{
    return str_starts((struct str){r->p, (size_t)(r->end - r->p)}, str_of(text));
}

static bool take(struct reader *r, const char *text)
{
    bool there = starts(r, text);

    if (there)
        r->p += strlen(text);
    return there;
}

static bool one_of(const struct reader *r, const char *set)
{
    return r->p < r->end && *r->p && strchr(set, *r->p);
}

static bool at_digit(const struct reader *r)
{
    return r->p < r->end && ascii_is_digit(*r->p);
}

static void fail(struct reader *r)
{
    r->failed = true;
    r->p = r->end;
}

/* Passes over everything up to and including a character. */
static void pass(struct reader *r, char last)
{
    const char *found = memchr(r->p, last, (size_t)(r->end - r->p));

    if (found)
        r->p = found + 1;
    else
        fail(r);
}

/* Passes over \Q, and over \E whether or not a \Q is before it. */
static void pass_marks(struct reader *r)
{
    for (;;) {
        if (take(r, "\\E"))
            r->quoted = false;
        else if (!r->quoted && take(r, "\\Q"))
            r->quoted = true;
        else
            return;
    }
}

static void set_character(struct part *p, int32_t cp)
{
    set_empty(p);
    p->begin.at[0].n = utf8_encode(cp, p->begin.at[0].bytes);
    /* The versions of Unicode by which PCRE2 and base/utf8 fold case may differ. */
    p->all = cp < 0x80;
}

/* Reads a character that stands for itself. */
static void read_character(struct reader *r, struct part *p)
{
    int32_t cp;

    r->p += utf8_decode((struct str){r->p, (size_t)(r->end - r->p)}, &cp);
    if (cp < 0)
        fail(r);
    else
        set_character(p, cp);
}

/* Reads the number of \xHH or \x{HHH}. */
static void read_hex(struct reader *r, struct part *p)
{
    bool braces = take(r, "{");
    int32_t cp = 0;
    size_t n = 0;

    for (; r->p < r->end && n < (braces ? 6 : 2) && ascii_hex_value(*r->p) >= 0; n++)
        cp = cp * 16 + ascii_hex_value(*r->p++);
    if (n == 0 || (braces && !take(r, "}")) || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        fail(r);
    else
        set_character(p, cp);
}

/* Passes over the name or number of a reference: {NAME}, <NAME>, 'NAME', -1. */
static void pass_reference(struct reader *r)
{
    if (take(r, "{"))
        pass(r, '}');
    else if (take(r, "<"))
        pass(r, '>');
    else if (take(r, "'"))
        pass(r, '\'');
    else
        while (one_of(r, "+-") || at_digit(r))
            r->p++;
}

/* Reads an escape outside a class, from after its backslash. */
static void read_escape(struct reader *r, struct part *p)
{
    static const char controls[] = "a\af\fn\nr\rt\te\033";
    const char *found;
    char c;

    if (r->p == r->end || (unsigned char)*r->p >= 0x80) {
        fail(r);
        return;
    }
    if (!at_digit(r) && !ascii_is_letter(*r->p)) {
        read_character(r, p);
        return;
    }
    c = *r->p++;
    set_unknown(p);
    found = memchr(controls, c, sizeof controls - 1);
    if (found && (found - controls) % 2 == 0)
        set_character(p, found[1]);
    else if (c == 'x')
        read_hex(r, p);
    else if (strchr("bBAZzGK", c))
        set_empty(p);
    else if (strchr("pP", c) && !starts(r, "{"))
        r->p += r->p < r->end;
    else if ((c == 'N' && starts(r, "{U")) || strchr("pPo", c))
        pass(r, '}');
    else if (strchr("gk", c))
        pass_reference(r);
    else if (ascii_is_digit(c) ? c == '0' || at_digit(r) : !strchr("dDwWsShHvVRXN", c))
        fail(r); /* several digits can be a reference, or a character in octal and others */
}

/* Passes over a name such as [:alpha:] in a class. */
static bool pass_posix_class(struct reader *r)
{
    const char *start = r->p;

    if (take(r, "[:")) {
        take(r, "^");
        while (r->p < r->end && ascii_is_letter(*r->p))
            r->p++;
        if (take(r, ":]"))
            return true;
    }
    r->p = start;
    return false;
}

/* Reads a class after its `[`. A small set of characters is known. */
static void read_class(struct reader *r, struct part *p)
{
    struct literal_set set = {.count = 0};
    bool simple = !take(r, "^"), first = true, all = true;

    while (r->p < r->end && (first || *r->p != ']')) {
        struct part one;

        first = false;
        if (pass_posix_class(r)) {
            simple = false;
            continue;
        }
        if (starts(r, "[:") || starts(r, "[.") || starts(r, "[=") || starts(r, "\\Q") ||
            starts(r, "\\E") || starts(r, "\\c")) {
            fail(r);
            return;
        }
        simple = simple && !one_of(r, "-\\");
        if (take(r, "\\") && r->p == r->end)
            break;
        read_character(r, &one);
        if (r->failed)
            return;
        all = all && one.all;
        simple = simple && add(&set, text_of(&one.begin.at[0]), STR(""));
    }
    if (!take(r, "]")) {
        fail(r);
        return;
    }
    set_unknown(p);
    if (simple) {
        set_empty(p);
        p->begin = set;
        p->all = all;
    }
}

static void read_alternatives(struct reader *r, struct part *p);

/* Reads a group up to its `)`. */
static void read_inside(struct reader *r, struct part *p)
{
    if (++r->depth > DEPTH)
        fail(r);
    read_alternatives(r, p);
    r->depth--;
    if (!take(r, ")"))
        fail(r);
}

/* Reads the options of (?i) or (?i:…). */
static void read_options(struct reader *r, struct part *p)
{
    r->any_case = true;
    while (one_of(r, "imsnJU^-"))
        r->p++;
    if (take(r, ":"))
        read_inside(r, p);
    else if (take(r, ")"))
        set_empty(p);
    else
        fail(r);
}

/* Reads a group after its `(?`. */
static void read_special(struct reader *r, struct part *p)
{
    if (take(r, ":") || take(r, "|")) {
        read_inside(r, p);
    } else if (take(r, ">")) {
        /* Of the texts that it matches, it may take one after which the rest does not match. */
        read_inside(r, p);
        p->all = false;
    } else if (take(r, "=") || take(r, "!") || take(r, "<=") || take(r, "<!")) {
        read_inside(r, p);
        set_empty(p);
    } else if (starts(r, "P=") || starts(r, "P>") || one_of(r, "&R+") || at_digit(r) ||
               (starts(r, "-") && r->end - r->p > 1 && ascii_is_digit(r->p[1]))) {
        pass(r, ')');
        set_unknown(p);
    } else if ((take(r, "<") && !starts(r, "*")) || take(r, "P<")) {
        pass(r, '>');
        read_inside(r, p);
    } else if (take(r, "'")) {
        pass(r, '\'');
        read_inside(r, p);
    } else {
        read_options(r, p);
    }
}

static unsigned read_number(struct reader *r)
{
    unsigned n = 0;

    while (at_digit(r) && n <= UINT16_MAX)
        n = n * 10 + (unsigned)(*r->p++ - '0');
    return n;
}

/* Reads {N}, {N,} or {N,M}. Returns false if these characters stand for themselves. Versions of
 * PCRE2 differ about {,M} and about spaces. */
static bool read_braces(struct reader *r, unsigned *least, unsigned *most)
{
    const char *start = r->p;

    r->p++;
    while (one_of(r, "0123456789, \t"))
        r->p++;
    if (!starts(r, "}")) {
        r->p = start;
        return false;
    }
    r->p = start + 1;
    if (!at_digit(r))
        fail(r);
    *least = *most = read_number(r);
    if (take(r, ","))
        *most = starts(r, "}") ? UINT32_MAX : read_number(r);
    if (!take(r, "}"))
        fail(r);
    return true;
}

/* Returns whether a quantifier is next, and passes over it. */
static bool pass_quantifier(struct reader *r)
{
    unsigned least, most;

    return take(r, "*") || take(r, "+") || take(r, "?") ||
           (starts(r, "{") && read_braces(r, &least, &most));
}

static void read_atom(struct reader *r, struct part *p)
{
    if (r->quoted) {
        read_character(r, p);
    } else if (take(r, "\\")) {
        read_escape(r, p);
    } else if (take(r, "[")) {
        read_class(r, p);
    } else if (take(r, ".")) {
        set_unknown(p);
    } else if (take(r, "^") || take(r, "$")) {
        set_empty(p);
    } else if (starts(r, "(*")) {
        /* Among the verbs is (*ACCEPT), after which nothing has to match. */
        fail(r);
    } else if (take(r, "(?")) {
        read_special(r, p);
    } else if (take(r, "(")) {
        read_inside(r, p);
    } else if (pass_quantifier(r)) {
        /* After another one, with \E between them. */
        fail(r);
    } else {
        read_character(r, p);
    }
}

/* Reads a quantifier, if there is one, and applies it. */
static void read_quantifier(struct reader *r, struct part *p)
{
    unsigned least = 0, most = UINT32_MAX;

    pass_marks(r);
    if (r->quoted || !one_of(r, "*+?{"))
        return;
    if (take(r, "+"))
        least = 1;
    else if (take(r, "?"))
        most = 1;
    else if (!take(r, "*") && !read_braces(r, &least, &most))
        return;
    repeat(p, least, most);
    if (take(r, "+"))
        p->all = false; /* as for (?>…) */
    else
        take(r, "?");
}

static void read_sequence(struct reader *r, struct part *p)
{
    *p = (struct part){.exact = true, .all = true, .begin = only_empty()};
    for (;;) {
        struct part next;

        pass_marks(r);
        if (r->p == r->end || (!r->quoted && one_of(r, "|)")))
            return;
        read_atom(r, &next);
        if (!r->failed)
            read_quantifier(r, &next);
        if (r->failed)
            return;
        append(p, &next);
    }
}

static void read_alternatives(struct reader *r, struct part *p)
{
    read_sequence(r, p);
    while (!r->failed && take(r, "|")) {
        struct part other;

        read_sequence(r, &other);
        alternate(p, &other);
    }
}

void regex_literals_find(struct regex_literals *l, struct str expression)
{
    struct reader r = {.p = expression.p, .end = expression.p + expression.n};
    struct part p, best;

    *l = (struct regex_literals){0};
    if (expression.n == 0)
        return;
    read_alternatives(&r, &p);
    if (r.failed || r.p < r.end)
        return;
    best.clauses = 0;
    add_clause(&best, end_of(&p));
    add_clause(&best, &p.begin);
    add_clauses(&best, &p);
    memcpy(l->clause, best.clause, sizeof l->clause);
    l->count = best.clauses;
    l->all = p.all && p.exact && best.clauses == 1 && !r.any_case;
    l->any_case = r.any_case;
}
