#include "search/regex_literals.h"

#include "chathist/base/json.h"
#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "chathist/search/search.h"
#include "test.h"
#include "draw.h"
#include "scratch.h"
#include "scratch_history.h"

static int made; /* lines so far */

/* ---- clauses ---- */

/* `want` is the clauses, the best first, as {a,b}{c}; `all` in front as =. */
static void check_clauses(const char *expression, const char *want)
{
    struct buf got = BUF_INIT(BUF_SMALL);
    struct regex_literals l;

    regex_literals_find(&l, str_of(expression));
    buf_add_c(&got, l.all ? "=" : "");
    for (size_t i = 0; i < l.count; i++) {
        for (size_t k = 0; k < l.clause[i].count; k++) {
            const struct literal_text *t = &l.clause[i].at[k];

            buf_add_byte(&got, k ? ',' : '{');
            buf_add(&got, t->bytes, t->n);
        }
        buf_add_byte(&got, '}');
    }
    if (!CHECK_STR(buf_c(&got), want))
        fprintf(stderr, "    '%s'\n", expression);
    buf_release(&got);
}

static const char *const cases[][2] = {
    {"abc", "={abc}"},
    {"foo|bar", "={foo,bar}"},
    {"foo|foobar|oo", "={oo}"},
    {"colou?r", "{colo}{r}"},
    {"gr[ae]y", "{gr}{y}"},
    {"(?:ab|c)(d|e)", "{ab,c}{d,e}"},
    {"(foo)b(ar)", "={foobar}"},
    {"(foo|bar)", "{foo,bar}"},
    {"x(foo|bar)", "{foo,bar}{x}"},
    {"a{3}", "={aaa}"},
    {"a{2,}b", "{aa}{b}"},
    {"a{9}b", "{aaaa}{b}"},
    {"ab+c", "{ab}{c}"},
    {"ab*c", "{a}{c}"},
    {"foo.*barbaz", "{barbaz}{foo}"},
    {"(foo|b.r)+x", "{x}{foo,b}"},
    {"(foo|bar)*x", "{x}"},
    {"a(b|c.+dd)e", "{a}{e}{b,dd}"},
    {"^\\s*error\\b: \\d+$", "{error: }"},
    {"(?=x)y(?!z)(?<=q)w", "{yw}"},
    {"a\\Kb", "{ab}"},
    {"\\t\\.\\/", "={\t./}"},
    {"[[:digit:]]x[^]]y[]z]w", "{x}{y}{w}"},
    {"a{,3}b", ""},
    {"a{x}b", "={a{x}b}"},
    {"a{2}{3}b", ""},
    {"é", "{é}"},
    {"a??b*?c+?", "{c}"},
    {"ba?+ab", "{ab}{b}"},
    {"ab{2}+c", "={abbc}"},
    {"(ab)?c", "{c}"},
    {"(ab)?", ""},
    {"(ab|)c|", ""},
    {"x{0}ab", "{ab}"},
    {"exponential[*_`~]*[\\t-\\r ][*_`~\\t-\\r ]*backoff(?![\\x{300}-\\x{36f}])",
     "{exponential}{backoff}"},
    {"caf(?:\xc3\xa9|e\\x{301})", ""},
    {"caf(?:\xc3\xa9|e\xcc\x81)", "{caf}{\xc3\xa9,e\xcc\x81}"},
    /* These are not understood. */
    {"(*ACCEPT)abc", ""},
    {"abc(*ACCEPT)def", ""},
    {"(?x) a b", ""},
    {"(?i)abc", ""},
    {"(?i:ab)c", ""},
    {"a(?#c)+", ""},
    {"(?(1)a|b)c", ""},
    {"(?|ab|ac)", ""},
    {"(?>a|ab)c", ""},
    {"(?<n>ab)c", ""},
    {"(a)\\1abc", ""},
    {"\\Qa.b\\E", ""},
    {"abc\\E+", ""},
    {"\\x41abc", ""},
    {"\\cAabc", ""},
    {"[\\Q]abc]", ""},
    {"[[.a.]]abc", ""},
};

TEST(what_every_match_holds)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_clauses(cases[i][0], cases[i][1]);
}

TEST(sets_and_texts_are_bounded)
{
    check_clauses("0123456789012345678901234567890123456789012345678901",
                  "{012345678901234567890123456789012345678901234567}");
    check_clauses("(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q)xy", "{xy}");
    check_clauses("a.bb.ccc.dddd.eeeee", "{eeeee}{dddd}{ccc}{bb}");
    check_clauses("((((((((((((((((((((((a))))))))))))))))))))))", "");
}

/* ---- the fast way and line by line ---- */

/* Behind the plain ones are characters whose case, or whose form in JSON, is a matter of its own.
 * Lines with those are looked at for many expressions, so that an error in what is looked for shows
 * in the other ones. */
static const char *const letters[] = {
    "a",
    "b",
    "d",
    "A",
    " ",
    "-",
    "foo",
    "Bar",
    "ab",
    "e",
    "\xc3\xa9",
    "\xc3\x89",
    "\xc3\x9f",
    "k",
    "K",
    "\xe2\x84\xaa",
    "s",
    "S",
    "\xc5\xbf",
    "i",
    "I",
    "\xc4\xb0",
    "\xc4\xb1",
    "\xe1\xba\x9e",
    "e\xcc\x81",
    "\"",
    "\\",
    "/",
    "\n",
    "\t",
    "u0041",
    "\xf0\x9f\x98\x80",
    "\xef\xbf\xbd",
    "\x01",
};
#define PLAIN ((size_t)13)
#define LETTERS (sizeof letters / sizeof *letters)
static bool plain; /* only the plain ones, and no escapes */

static const char *letter(void)
{
    return letters[draw(plain ? PLAIN : LETTERS)];
}

static void add_letters(struct buf *out, unsigned count)
{
    while (count--)
        buf_add_c(out, letter());
}

/* Adds a JSON string, some of whose characters are written as \uXXXX. */
static void add_json(struct buf *out, struct str text)
{
    buf_add_byte(out, '"');
    while (text.n > 0) {
        int32_t cp;
        size_t n = utf8_decode(text, &cp);
        struct buf one = BUF_INIT(BUF_SMALL);

        json_add_string(&one, (struct str){text.p, n});
        if (!plain && draw(6) == 0 && cp < 0x10000)
            buf_addf(out, draw(2) ? "\\u%04x" : "\\u%04X", (unsigned)cp);
        else if (!plain && draw(6) == 0 && cp >= 0x10000)
            buf_addf(out, "\\u%04x\\u%04x", 0xd800 + (unsigned)((cp - 0x10000) >> 10),
                     0xdc00 + (unsigned)(cp & 0x3ff));
        else if (cp == '/' && draw(2))
            buf_add_c(out, "\\/");
        else
            buf_add(out, one.data + 1, one.len - 2);
        buf_release(&one);
        text.p += n;
        text.n -= n;
    }
    buf_add_byte(out, '"');
}

/* Expressions, and texts that they match, which stand here and there in the history. */
#define PLANTED 30
static struct {
    struct buf expression, text;
} planted[PLANTED];

static void add_random_json(struct buf *out, unsigned most)
{
    struct buf text = BUF_INIT(BUF_SMALL);

    add_letters(&text, draw(most));
    if (draw(3) == 0)
        buf_add_str(&text, buf_str(&planted[draw(PLANTED)].text));
    add_letters(&text, draw(3));
    add_json(out, buf_str(&text));
    buf_release(&text);
}

/* Adds tool calls in one of three forms; in OpenAI's the arguments are JSON inside a string. */
static void add_calls(struct buf *out)
{
    struct buf inner = BUF_INIT(BUF_SMALL);
    unsigned form = draw(3);

    buf_add_c(&inner, "{\"a\":");
    add_random_json(&inner, 12);
    buf_add_c(&inner, ",\"foo\":[1,");
    add_random_json(&inner, 6);
    buf_add_c(&inner, "]}");
    buf_add_c(out, ",\"tool_calls\":[{\"id\":\"foo\",");
    if (form == 2) {
        buf_add_c(out, "\"type\":\"function\",\"function\":{\"name\":");
        add_random_json(out, 4);
        buf_add_c(out, ",\"arguments\":");
        json_add_string(out, buf_str(&inner));
        buf_add_byte(out, '}');
    } else {
        buf_add_c(out, "\"name\":");
        add_random_json(out, 4);
        buf_add_c(out, form ? ",\"args\":" : ",\"input\":");
        buf_add_str(out, buf_str(&inner));
    }
    buf_add_c(out, "}]");
    buf_release(&inner);
}

static void add_history_line(struct buf *out)
{
    int i = made++;
    static const char *const roles[] = {"user", "assistant", "tool", "title"};
    const char *role = roles[draw(10) ? draw(3) : 3];

    if (draw(30) == 0)
        buf_add_c(out, draw(2) ? "foo ab no message\n" : "\n");
    if (draw(2))
        buf_addf(out,
                 "{\"id\":\"%013d-%08x\",\"session_id\":\"sess_%013d_%06x\",\"timestamp\":"
                 "\"2024-06-27T15:00:00.000000+00:00\",\"role\":\"%s\",\"content\":",
                 i, (unsigned)i, i / 9, (unsigned)i / 9, role);
    else
        buf_addf(out,
                 "{\"model\":\"foo ab\",\"id\":\"%d\",\"session_id\":\"sess_%013d_%06x\","
                 "\"timestamp\":\"t\",\"role\":\"%s\",\"content\":",
                 i, i / 9, (unsigned)i / 9, role);
    add_random_json(out, draw(4) ? 12 : 40);
    if (draw(3) == 0)
        add_calls(out);
    if (draw(4) == 0)
        buf_add_c(out, ",\"files\":[\"ab/foo\"]");
    buf_add_c(out, "}\n");
}

/* Adds a letter to an expression, escaped if need be. */
static void add_escaped(struct buf *out, const char *letter)
{
    if (!letter[1] && strchr("\"\\/ \n", *letter)) {
        buf_add_byte(out, '\\');
        buf_add_byte(out, *letter == '\n' ? 'n' : *letter);
    } else {
        buf_add_c(out, letter);
    }
}

static void add_char(struct buf *out)
{
    add_escaped(out, letter());
}

/* Adds an expression, and to `text` one that it matches, unless a newline is there for `.`. */
static void add_matching(struct buf *out, struct buf *text)
{
    /* Around one letter; those with `many` match it several times. */
    static const struct {
        const char *before, *after;
        bool many;
    } forms[] = {
        {"(?:", ")+", true},     {"(?:", ")*", true},     {"(?:", ")?", false},
        {"(?:foo|", ")", false}, {"(?:", "|a.b)", false}, {"(", "){1,3}", true},
        {"(", ")", false},       {"(", ")(?!zz)", false}, {"(?=.)", "", false},
        {"x*", "", false},       {"", ".*", false},       {"", "", false},
    };

    for (unsigned n = 2 + draw(5); n > 0; n--) {
        const char *one = letter();
        unsigned form = draw(2) ? draw(sizeof forms / sizeof *forms) : 11, kind = draw(12);

        for (unsigned i = forms[form].many ? 1 + draw(3) : 1; i > 0; i--)
            buf_add_c(text, one);
        buf_add_c(out, forms[form].before);
        if (kind == 0)
            buf_add_c(out, one[1] ? ".+" : ".");
        else if (kind == 1)
            buf_addf(out, "(?:%s|)", *one > ' ' && !strchr("\"\\/", *one) ? one : "x");
        else
            add_escaped(out, one);
        buf_add_c(out, forms[form].after);
    }
}

static void add_expression(struct buf *out, unsigned depth);

static void add_piece(struct buf *out, unsigned depth)
{
    static const char *const odd[] = {
        ".",      "\\w",     "\\b",   "^",     "$",      "[^a]",        "\\s",    "[a-k]",
        "[sk]",   "[\\\"b]", "\\pL",  "\\K",   "(?i)",   "(?-i)",       "(?i:k)", "\\Qs.\\E",
        "\\Q\\E", "\\E",     "(?=a)", "(?!b)", "(?<=s)", "\\1",         "(?#x)",  "{",
        "{2}",    "[]i]",    "\\R",   "(?s)",  "\\0",    "[[:alpha:]]", "\\x{e9}"};
    static const char *const groups[] = {"(", "(?:", "(?>", "(?|", "(?<n>", "(?=", "(?<!"};
    unsigned kind = draw(10);

    if (kind < 5 || (kind == 9 && depth == 0))
        add_char(out);
    else if (kind < 7)
        buf_add_c(out, letters[draw(PLAIN)]);
    else if (kind < 9)
        buf_add_c(out, odd[draw(sizeof odd / sizeof *odd)]);
    else {
        buf_add_c(out, groups[draw(sizeof groups / sizeof *groups)]);
        add_expression(out, depth - 1);
        buf_add_byte(out, ')');
    }
}

static void add_expression(struct buf *out, unsigned depth)
{
    static const char *const quantifiers[] = {"*", "+", "?", "{2}", "{1,2}", "{0,1}", "+?", "*+"};
    unsigned branches = draw(3) ? 1 : 2 + draw(2);

    while (branches-- > 0) {
        for (unsigned pieces = 1 + draw(4); pieces > 0; pieces--) {
            add_piece(out, depth);
            if (draw(5) == 0)
                buf_add_c(out, quantifiers[draw(sizeof quantifiers / sizeof *quantifiers)]);
        }
        if (branches > 0)
            buf_add_byte(out, '|');
    }
}

#define ROUNDS 15

struct found {
    struct buf places;
    uint64_t count, bad;
};

/* What a search is to be like, besides its pattern. */
struct way {
    bool invert;
    unsigned in;
    const struct filter *filter;
    size_t threads;
    bool each; /* line by line, by look_at_each */
};

static void open_way(struct search *s, struct pattern *p, const struct way *way)
{
    if (search_open(s, FILE_CWD, "h", p, way->filter, NULL) < 0)
        abort();
    s->invert = way->invert;
    s->in = way->in;
    s->threads = way->threads;
    s->scan.block_size = 512;
}

/* Notes a message as `look` does, if it is a hit or could not be matched. */
static void judge(struct pattern *p, const struct way *way, const struct message *m,
                  const struct line *l, struct found *f)
{
    struct searched_text texts;
    struct text_match at = {0};
    int found;

    if (message_is_title(m) && !(way->in & SEARCH_TITLE))
        return;
    if (way->filter && !filter_match(way->filter, m))
        return;
    searched_text_init(&texts);
    searched_text_begin(&texts, m, way->in);
    found = pattern_find_message(p, &texts, &at, NULL);
    searched_text_release(&texts);
    if (found <= 0)
        at.number = at.at = at.len = 0;
    if (found < 0)
        buf_addf(&f->places, "%lld failed ", (long long)l->at);
    else if ((found > 0) != way->invert)
        buf_addf(&f->places, "%lld+%zu+%zu%s ", (long long)l->at, at.at, at.len,
                 at.number == 0 && way->in & SEARCH_CONTENT ? "" : "t");
    f->count += found >= 0 && (found > 0) != way->invert;
}

/* What the search must find, the newest first: looks at one message after the other. */
static void look_at_each(struct pattern *p, const struct way *way, struct found *f)
{
    struct buf later = BUF_INIT(SIZE_MAX);
    struct message m = MESSAGE_INIT;
    struct scan s;
    struct line l;

    if (scan_open(&s, FILE_CWD, "h", NULL) < 0)
        abort();
    while (scan_message(&s, &m, &l, NULL) > 0) {
        buf_set(&later, buf_str(&f->places));
        buf_clear(&f->places);
        judge(p, way, &m, &l, f);
        buf_add_str(&f->places, buf_str(&later));
    }
    buf_release(&later);
    f->bad = s.bad;
    scan_close(&s);
    message_release(&m);
}

static void look(struct pattern *p, const struct way *way, struct found *f)
{
    struct search s;
    struct hit hit;
    int more;

    buf_clear(&f->places);
    f->count = 0;
    if (way->each) {
        look_at_each(p, way, f);
        return;
    }
    open_way(&s, p, way);
    s.skip_block = 256;
    s.history = &history;
    while ((more = search_next(&s, &hit, NULL)) > 0) {
        if (more == SEARCH_FAILED)
            buf_addf(&f->places, "%lld failed ", (long long)hit.line.at);
        else if (hit.found)
            buf_addf(&f->places, "%lld+%zu+%zu%s ", (long long)hit.line.at, hit.at, hit.len,
                     hit.in_content ? "" : "t");
        f->count += hit.found;
    }
    CHECK_INT(more, 0);
    f->bad = s.scan.bad;
    search_learned_free(search_learned(&s), &history, false);
    search_close(&s);
}

static void check_count(struct pattern *p, const struct way *way, uint64_t want)
{
    struct search s;
    struct hit hit;
    uint64_t count = 0;
    int counted, more;

    open_way(&s, p, way);
    counted = search_count(&s, false, &count, NULL);
    /* A message could not be matched. */
    while (counted == 0 && (more = search_next(&s, &hit, NULL)) > 0)
        count += more == 1;
    CHECK_INT(count, want);
    search_close(&s);
}

/* Makes a random pattern, of expressions and of fixed strings. Returns false if one is not valid.
 */
static bool make_pattern(struct pattern *p, struct buf *shown)
{
    unsigned count = draw(3) ? 1 : 2 + draw(2);
    bool valid = true;

    pattern_init(p);
    p->case_sensitive = draw(3) == 0;
    p->words = draw(4) == 0;
    buf_addf(shown, "%s%s", p->case_sensitive ? "c" : "", p->words ? "w" : "");
    for (unsigned i = 0; i < count && valid; i++) {
        struct buf text = BUF_INIT(BUF_SMALL);

        p->regex = draw(5) > 0;
        if (p->regex && draw(2))
            buf_add_str(&text, buf_str(&planted[draw(PLANTED)].expression));
        else if (p->regex)
            add_expression(&text, 2);
        else
            add_letters(&text, 1 + draw(3));
        if (i > 0 && draw(2))
            valid = pattern_next_group(p, NULL) == 0;
        valid = valid && pattern_add(p, buf_str(&text), NULL) == 0;
        buf_addf(shown, "%u%s'%s' ", p->group, p->regex ? "E" : "F", buf_c(&text));
        buf_release(&text);
    }
    return valid;
}

/* Compares the ways for one pattern. Returns whether there was a hit. */
static bool check_ways(struct pattern *p, const struct filter *filter, const char *shown)
{
    struct found slow = {.places = BUF_INIT(SIZE_MAX)}, fast = {.places = BUF_INIT(SIZE_MAX)};
    struct way way = {.invert = draw(5) == 0,
                      .in = draw(4) ? SEARCH_IN_DEFAULT : 1 + draw(63),
                      .filter = draw(4) ? NULL : filter,
                      .each = true};

    look(p, &way, &slow);
    way.each = false;
    for (way.threads = 1; way.threads <= 2; way.threads++) {
        look(p, &way, &fast);
        if (!CHECK_STR(buf_c(&fast.places), buf_c(&slow.places)) || !CHECK(fast.bad <= slow.bad))
            fprintf(stderr, "    %s, in %u, %s\n", shown, way.in, way.invert ? "-v" : "");
        check_count(p, &way, slow.count);
    }
    buf_release(&slow.places);
    buf_release(&fast.places);
    return slow.count > 0;
}

TEST(the_fast_way_finds_what_is_found_line_by_line)
{
    struct filter role = {0};
    int made_patterns = 0, hits = 0;

    filter_add(&role.roles, STR("user"));
    for (int round = 0; round < ROUNDS; round++) {
        struct buf lines = BUF_INIT(SIZE_MAX), shown = BUF_INIT(SIZE_MAX);
        int count = 150 + (int)draw(150);

        scratch_enter();
        plain = round % 2;
        for (size_t i = 0; i < PLANTED; i++) {
            buf_init(&planted[i].expression, SIZE_MAX);
            buf_init(&planted[i].text, SIZE_MAX);
            add_matching(&planted[i].expression, &planted[i].text);
        }
        for (int i = 0; i < count; i++)
            add_history_line(&lines);
        append(lines.data, lines.len);
        for (int k = 0; k < 40; k++) {
            struct pattern p;

            buf_clear(&shown);
            if (make_pattern(&p, &shown)) {
                made_patterns++;
                hits += check_ways(&p, &role, buf_c(&shown));
            }
            pattern_release(&p);
        }
        for (size_t i = 0; i < PLANTED; i++) {
            buf_release(&planted[i].expression);
            buf_release(&planted[i].text);
        }
        buf_release(&lines);
        buf_release(&shown);
        scratch_leave();
    }
    filter_release(&role);
    CHECK(made_patterns > 300);
    CHECK(hits > 100);
}

/* Both folds must agree: a character that PCRE2 takes for another one is looked for, too. */
TEST(no_character_that_an_expression_takes_for_another_is_missed)
{
    struct buf cased = BUF_INIT(SIZE_MAX);
    char bytes[4];

    for (int32_t cp = 1; cp < 0x110000; cp++)
        if (utf8_fold(cp) != cp) {
            buf_add(&cased, bytes, utf8_encode(cp, bytes));
            buf_add(&cased, bytes, utf8_encode(utf8_fold(cp), bytes));
        }
    for (struct str rest = buf_str(&cased); rest.n > 0;) {
        int32_t cp;
        size_t n = utf8_decode(rest, &cp), at, len, from = 0;
        struct regex *r = regex_new((struct str){rest.p, n}, true, false, NULL);

        while (regex_find(r, buf_str(&cased), from, false, &at, &len, NULL) > 0) {
            int32_t other;

            utf8_decode((struct str){cased.data + at, len}, &other);
            CHECK_INT(utf8_fold(other), utf8_fold(cp));
            from = at + len;
        }
        regex_free(r);
        rest.p += n;
        rest.n -= n;
    }
    buf_release(&cased);
}
