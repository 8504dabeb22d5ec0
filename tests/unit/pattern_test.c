#include "chathist/search/pattern.h"

#include "chathist/base/regex.h"
#include "chathist/base/utf8.h"
#include "test.h"
#include "draw.h"

/* Where a needle is found in a text, as the part of the text; NULL when it is not. */
static void check_find(const char *text, const char *needle, const char *want)
{
    struct pattern p;
    size_t at = 99, len = 99;
    int found;

    pattern_init(&p);
    CHECK_INT(pattern_add(&p, str_of(needle), NULL), 0);
    found = pattern_find(&p, str_of(text), &at, &len, NULL);
    if (!CHECK(found == (want != NULL)))
        fprintf(stderr, "    '%s' in '%s'\n", needle, text);
    if (found && want) {
        const char *place = strstr(text, want);

        CHECK_INT(at, place - text);
        CHECK_INT(len, strlen(want));
    }
    pattern_release(&p);
}

TEST(case_does_not_count)
{
    check_find("Hello World", "world", "World");
    check_find("hello world", "WORLD", "world");
    check_find("aaab", "AB", "ab");
    check_find("abcabd", "abd", "abd");
    check_find("x", "xy", NULL);
    check_find("", "x", NULL);
    check_find("", "", "");
    check_find("text", "", "");
    check_find("@[`{", "`", "`"); /* not letters, whatever bit 5 says */
    check_find("@", "`", NULL);
    check_find("[", "{", NULL);
    check_find("GrÜße", "grüß", "GrÜß");
    check_find("ПРИВЕТ", "ри", "РИ");
    check_find("ascii", "ü", NULL);
    check_find("日本語", "本", "本");
    check_find("café noir", "NOIR", "noir");
}

TEST(folding_that_changes_lengths_is_mapped_back)
{
    /* U+1E9E (3 bytes) folds to U+00DF (2), U+0130 not at all, U+2126 (3) to U+03C9 (2), U+023A (2)
     * to U+2C65 (3). */
    check_find("\xe1\xba\x9e\xe1\xba\x9e Ziel ä", "ziel Ä", "Ziel ä");
    check_find("\xc8\xba\xc8\xba\xc8\xba ÉtÉ", "éTé", "ÉtÉ");
    check_find("5 \xe2\x84\xa6", "\xcf\x89", "\xe2\x84\xa6");
    check_find("σς", "ςσ", "σς"); /* final sigma */
    check_find("\xc4\xb0stanbul", "istanbul", NULL);
}

TEST(two_characters_beyond_ascii_fold_into_it)
{
    check_find("5 \xe2\x84\xaa", "5 k", "5 \xe2\x84\xaa");
    check_find("mi\xc5\xbf\xc5\xbf ms", "MISS", "mi\xc5\xbf\xc5\xbf");
    check_find("mi\xc5\xbf\xc5\xbf miss", "miss", "mi\xc5\xbf\xc5\xbf"); /* the first */
    check_find("miss mi\xc5\xbf\xc5\xbf", "miss", "miss");
    check_find("\xc5\xbf", "k", NULL);
    check_find("sk", "\xc5\xbf\xe2\x84\xaa", "sk");
}

/* The plain way: fold both, compare at every code point. */
static bool find_plainly(struct str text, struct str needle)
{
    struct buf a = BUF_INIT(BUF_SMALL), b = BUF_INIT(BUF_SMALL);
    bool found;

    utf8_add_folded(&a, text);
    utf8_add_folded(&b, needle);
    found = strstr(buf_c(&a), buf_c(&b)) != NULL;
    buf_release(&a);
    buf_release(&b);
    return found;
}

static void add_random(struct buf *b, unsigned count)
{
    static const char *const letters[] = {
        "a", "A", "k", "S",        "s",           "\xc5\xbf", "\xe2\x84\xaa",
        "z", "ä", "Ä", "\xc8\xba", "\xe2\xb1\xa5"};

    while (count--)
        buf_add_c(b, letters[draw(12)]);
}

TEST(finding_agrees_with_the_plain_way)
{
    struct buf text = BUF_INIT(BUF_SMALL), needle = BUF_INIT(BUF_SMALL);
    struct pattern p;
    int found = 0;

    for (int round = 0; round < 20000; round++) {
        size_t at, len;
        bool want;

        buf_clear(&text);
        buf_clear(&needle);
        add_random(&text, draw(20));
        add_random(&needle, 1 + draw(3));
        pattern_init(&p);
        CHECK_INT(pattern_add(&p, buf_str(&needle), NULL), 0);
        want = find_plainly(buf_str(&text), buf_str(&needle));
        CHECK(pattern_find(&p, buf_str(&text), &at, &len, NULL) == want);
        pattern_release(&p);
        if (want) {
            struct str part = {buf_c(&text) + at, len};

            found++;
            /* What was found is the needle, and it is not earlier. */
            CHECK(find_plainly(part, buf_str(&needle)));
            CHECK_INT(utf8_count(part), utf8_count(buf_str(&needle)));
            if (len < 2)
                continue;
            part = (struct str){buf_c(&text), at + len};
            while (part.n && ((unsigned char)part.p[--part.n] & 0xc0) == 0x80)
                continue;
            CHECK(!find_plainly(part, buf_str(&needle)));
        }
    }
    CHECK(found > 1000);
    buf_release(&text);
    buf_release(&needle);
}

/* Does one character, as a pattern, match another? */
static bool finds(bool regex, int32_t needle, int32_t text)
{
    char a[4], b[4];
    struct str pattern = {a, utf8_encode(needle, a)}, subject = {b, utf8_encode(text, b)};
    struct pattern p;
    size_t at, len;
    bool found;

    pattern_init(&p);
    p.regex = regex;
    CHECK_INT(pattern_add(&p, pattern, NULL), 0);
    found = pattern_find(&p, subject, &at, &len, NULL) > 0;
    CHECK(!found || (at == 0 && len == subject.n));
    pattern_release(&p);
    return found;
}

/* Is a character newer than the PCRE2 that is installed, or one of the three whose folding is? */
static bool is_new(struct pattern *unassigned, int32_t cp)
{
    char bytes[4];
    struct str text = {bytes, utf8_encode(cp, bytes)};
    size_t at, len;

    return cp == 0x1fd3 || cp == 0x1fe3 || cp == 0xfb05 ||
           pattern_find(unassigned, text, &at, &len, NULL) > 0;
}

TEST(every_folding_is_found_both_ways)
{
    struct pattern unassigned;
    int rows = 0, left_out = 0;

    pattern_init(&unassigned);
    unassigned.regex = true;
    CHECK_INT(pattern_add(&unassigned, STR("\\p{Cn}"), NULL), 0);
    for (int32_t cp = 0; cp < 0x110000; cp++) {
        int32_t to = utf8_fold(cp);

        if (to == cp)
            continue;
        rows++;
        if (!CHECK(finds(false, cp, to) && finds(false, to, cp)))
            fprintf(stderr, "    of   U+%04X\n", (unsigned)cp);
        if (is_new(&unassigned, cp))
            left_out++;
        else if (!CHECK(finds(true, cp, to) && finds(true, to, cp)))
            fprintf(stderr, "    of   U+%04X, as an expression\n", (unsigned)cp);
    }
    CHECK(rows > 1500);
    CHECK(left_out < 100);
    CHECK(!finds(true, 'i', 0x130) && !finds(true, 'i', 0x131) && !finds(true, 0x131, 0x130));
    CHECK(!finds(false, 'i', 0x130) && !finds(false, 'i', 0x131) && !finds(false, 0x131, 0x130));
    pattern_release(&unassigned);
}

/* ---- several, words, regular expressions ---- */

/* Finds all matches of the patterns, which are separated by `|`, as `at+len` in a row. */
static void check_all(const char *options, const char *patterns, const char *text, const char *want)
{
    struct buf got = BUF_INIT(BUF_SMALL);
    struct str rest = str_of(patterns);
    struct pattern p;
    size_t at, len;
    int more;

    pattern_init(&p);
    p.regex = strchr(options, 'E') != NULL;
    p.words = strchr(options, 'w') != NULL;
    p.case_sensitive = strchr(options, 'c') != NULL;
    while (rest.p)
        CHECK_INT(pattern_add(&p, str_cut(&rest, '|'), NULL), 0);
    pattern_start(&p, str_of(text));
    while ((more = pattern_next(&p, &at, &len, NULL)) > 0)
        buf_addf(&got, "%zu+%zu ", at, len);
    CHECK_INT(more, 0);
    if (!CHECK_STR(buf_c(&got), want))
        fprintf(stderr, "    '%s' of '%s' in '%s'\n", options, patterns, text);

    /* The first of them is what pattern_find gives, unless it is an empty one. */
    if (*want && pattern_find(&p, str_of(text), &at, &len, NULL) > 0 && len > 0) {
        buf_clear(&got);
        buf_addf(&got, "%zu+%zu ", at, len);
        CHECK(str_starts(str_of(want), buf_str(&got)));
    }
    pattern_release(&p);
    buf_release(&got);
}

TEST(one_match_after_the_other)
{
    check_all("", "a", "banana", "1+1 3+1 5+1 ");
    check_all("", "ana", "banana", "1+3 ");
    check_all("", "aa", "aaaaa", "0+2 2+2 ");
    check_all("", "x", "banana", "");
    check_all("", "", "banana", "");
    check_all("", "é", "É-é", "0+2 3+2 ");
    check_all("", "k", "k\xe2\x84\xaaK", "0+1 1+3 4+1 ");
    check_all("c", "é", "É-é", "3+2 ");
    check_all("c", "K", "kKk", "1+1 ");
}

TEST(of_several_the_first_and_longest)
{
    check_all("", "foo|foobar", "foobar foo", "0+6 7+3 ");
    check_all("", "ab|bb", "cabbb", "1+2 3+2 ");
    check_all("", "bc|abcd|cdx", "abcdx", "0+4 ");
    check_all("", "\xc3\xa4|\xc3\xa4x|xy", "\xc3\x84XY", "0+3 ");
    /* The second begins inside what was found of it before. */
    check_all("", "\xc3\xa4\xc3\xa4|b\xc3\xa4", "b\xc3\xa4\xc3\xa4\xc3\xa4", "0+3 3+4 ");
    check_all("E", "a+|b", "aab", "0+2 2+1 ");
}

TEST(whole_words)
{
    check_all("w", "is", "this is his is", "5+2 12+2 ");
    check_all("w", "test", "test_1 test-1 (test)", "7+4 15+4 ");
    check_all("w", "é", "né é éé", "4+2 ");
    check_all("w", "\xce\xb1", "\xce\xb1\xcc\x81 \xce\x91", "5+2 "); /* a mark belongs to it */
    check_all("w", "a b", "xa b a b", "5+3 ");
    check_all("w", "-x", "-x a-x --x", "0+2 8+2 ");
    check_all("w", "$x$", "a$x$ $x$b $x$", "10+3 ");
    check_all("w", "\xe4\xb8\xad", "\xe4\xb8\xad \xe4\xb8\xad\xe6\x96\x87", "0+3 ");
    check_all("Ew", "i.", "this is in", "5+2 8+2 ");
    check_all("Ew", "foo(bar)?", "foobarx foobar foo", "8+6 15+3 ");
    check_all("Ew", "foo",
              "\xe2\x92\xb6"
              "foo foo",
              "7+3 ");
}

TEST(an_empty_word_stands_where_no_other_does)
{
    struct pattern p;
    size_t at, len;

    pattern_init(&p);
    p.words = true;
    CHECK_INT(pattern_add(&p, STR(""), NULL), 0);
    CHECK_INT(pattern_find(&p, STR("a"), &at, &len, NULL), 0);
    CHECK_INT(pattern_find(&p, STR(""), &at, &len, NULL), 1);
    CHECK_INT(pattern_find(&p, STR("ab cd"), &at, &len, NULL), 0);
    CHECK_INT(pattern_find(&p, STR("ab  cd"), &at, &len, NULL), 1);
    CHECK_INT(at, 3);
    CHECK_INT(len, 0);
    pattern_release(&p);
}

TEST(regular_expressions)
{
    check_all("E", "b.n", "Banana BxN", "0+3 7+3 ");
    check_all("cE", "b.n", "Banana bxn", "7+3 ");
    check_all("E", "^x$", "x\ny\nX", "0+1 4+1 ");
    check_all("E", "a.b",
              "a\nb a\xc3\xa9"
              "b",
              "4+4 ");
    check_all("E", "\\d+", "12 \xd9\xa1\xd9\xa2", "0+2 3+4 ");
    check_all("E", "\\bé\\w*", "Été", "0+5 ");
    check_all("E", "x*", "axxbx", "1+2 4+1 ");
    check_all("E", "ς", "Σσς", "0+2 2+2 4+2 ");
    check_all("E", "ẞ", "ß", "0+2 ");
    check_all("E", "(?<=a)b", "ab bb", "1+1 ");
    check_all("E", "a\\Kb", "ab", "1+1 ");
}

/* What a pattern can do to what is put behind it. */
/* Finds an expression in a copy of the pattern, after `before` texts without a part of it. */
static bool found_after(int before, const char *expression, bool case_sensitive, const char *text)
{
    struct pattern p, copy;
    size_t at, len;
    int found = 0;

    pattern_init(&p);
    p.regex = true;
    p.case_sensitive = case_sensitive;
    CHECK_INT(pattern_add(&p, str_of(expression), NULL), 0);
    pattern_copy(&copy, &p);
    for (int i = 0; i < before; i++)
        found += pattern_find(&copy, STR("alpha and nothing else"), &at, &len, NULL);
    CHECK_INT(found, 0);
    found = pattern_find(&copy, str_of(text), &at, &len, NULL);
    pattern_release(&copy);
    pattern_release(&p);
    return found == 1;
}

TEST(expressions_with_parts_that_a_text_may_lack)
{
    for (int before = 0; before <= 100; before += 100) {
        CHECK(found_after(before, "Alpha.*OMEGA", false, "alpha and Omega"));
        CHECK(found_after(before, "alpha.*omega", true, "alpha and omega"));
        CHECK(!found_after(before, "alpha.*omega", true, "alpha and Omega"));
        CHECK(!found_after(before, "alpha.*omega", false, "omega before alpha"));
        CHECK(found_after(before, "(?i)alpha.*OMEGA", true, "ALPHA and omega"));
        CHECK(found_after(before, "alpha.*(omega|psi)", false, "alpha and Psi"));
        CHECK(found_after(before, "(a)\\1<b|c>xyz", false, "aa<b"));
        CHECK(found_after(before, "(a)\\1'b|c'xyz", false, "aa'b"));
        CHECK(found_after(before, "alpha.*kelvin", false,
                          "alpha \xe2\x84\xaa"
                          "elvin"));
        CHECK(found_after(before, "alpha.*grüße", false, "alpha GRÜßE"));
    }
}

TEST(words_of_odd_expressions)
{
    check_all("Ew", "(?x)a # comment", "a ab", "0+1 ");
    check_all("Ew", "\\Qa.", "a.b a.", "4+2 ");
    check_all("Ew", "(?x)\\Qa", "ab a", "3+1 ");
    check_all("Ew", "(*NO_JIT)(*UCP)a", "ab a", "3+1 ");
    check_all("Ew", "(*COMMIT)a", "a ab", "0+1 ");
    check_all("Ew", "(a)\\1", "aa aab", "0+2 ");
    check_all("Ew", "(?-i)A", "a A", "2+1 ");
}

/* `want` is the beginning of the error; versions of PCRE2 report different offsets. */
static void check_bad(bool words, const char *expression, const char *want)
{
    struct pattern p;
    struct err e = ERR_INIT;

    pattern_init(&p);
    p.regex = true;
    p.words = words;
    CHECK_INT(pattern_add(&p, str_of(expression), &e), -1);
    CHECK_INT(e.kind, ERR_USAGE);
    if (!CHECK(strncmp(err_text(&e), want, strlen(want)) == 0))
        CHECK_STR(err_text(&e), want);
    pattern_release(&p);
    err_release(&e);
}

TEST(what_is_no_expression_is_said_with_its_place)
{
    for (int words = 0; words < 2; words++) {
        check_bad(words, "a(b",
                  "bad regular expression 'a(b': missing closing parenthesis (offset 3)");
        check_bad(words, "a)(b",
                  "bad regular expression 'a)(b': unmatched closing parenthesis (offset ");
        check_bad(words, "[z-a]",
                  "bad regular expression '[z-a]': range out of order in character class "
                  "(offset ");
    }
}

/* Of an expression longer than any message, the beginning is shown. */
TEST(a_long_expression_is_cut_in_its_message)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct err e = ERR_INIT;

    for (size_t i = 0; i < 400000; i++)
        buf_add_c(&text, "((?:");
    CHECK(regex_new(buf_str(&text), true, false, &e) == NULL);
    CHECK(strncmp(err_text(&e), "bad regular expression '((?:((?:", 32) == 0);
    CHECK(strlen(err_text(&e)) < 400);
    err_release(&e);
    buf_release(&text);
}

TEST(a_limit_is_an_error)
{
    struct pattern p;
    struct err e = ERR_INIT;
    size_t at, len;

    pattern_init(&p);
    p.regex = true;
    CHECK_INT(pattern_add(&p, STR("(?:(a+)+)+[cd]"), &e), 0);
    CHECK_INT(pattern_find(&p, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), &at,
                           &len, &e),
              -1);
    CHECK_INT(e.kind, ERR_FAILURE);
    CHECK_STR(err_text(&e), "match limit exceeded");
    err_release(&e);
    CHECK_INT(pattern_find(&p, STR("aad"), &at, &len, &e), 1);
    pattern_release(&p);
}

/* More than machine code has room for on its stack. */
TEST(a_match_may_be_deep)
{
    struct pattern p;
    struct buf text = BUF_INIT(BUF_SMALL);
    size_t at, len;

    for (int i = 0; i < 300000; i++)
        buf_add_c(&text, i % 2 ? "a" : "b");
    pattern_init(&p);
    p.regex = true;
    CHECK_INT(pattern_add(&p, STR("(?:a|b)*c|(a|b)*$"), NULL), 0);
    CHECK_INT(pattern_find(&p, buf_str(&text), &at, &len, NULL), 1);
    CHECK_INT(len, text.len);
    pattern_release(&p);
    buf_release(&text);
}

TEST(without_a_pattern_nothing_matches)
{
    struct pattern p;
    size_t at, len;

    pattern_init(&p);
    CHECK_INT(pattern_find(&p, STR("x"), &at, &len, NULL), 0);
    pattern_release(&p);
}

/* Long texts are folded in pieces of 1 MiB. */
TEST(matches_at_the_end_of_a_folded_piece_are_found)
{
    struct buf text = BUF_INIT(SIZE_MAX);
    struct pattern p;
    size_t at, len, place;

    for (size_t before = 0; before < 80; before++) {
        bool odd = before % 2 == 1;

        buf_clear(&text);
        buf_add_c(&text, odd ? "\u00c4 ärger " : "x ärger ");
        while (text.len < ((size_t)1 << 20) - 40 + before)
            buf_add_byte(&text, '-');
        place = text.len;
        buf_add_c(&text, "\u00c4RGER");
        for (int i = 0; i < 3000; i++)
            buf_add_c(&text, "- ");
        buf_add_c(&text, "\u212aelvin");
        pattern_init(&p);
        p.words = before % 4 < 2;
        CHECK_INT(pattern_add(&p, STR("ärger"), NULL), 0);
        CHECK_INT(pattern_add(&p, STR("kelvin"), NULL), 0);
        pattern_start(&p, buf_str(&text));
        CHECK_INT(pattern_next(&p, &at, &len, NULL), 1);
        CHECK(at < 4 && len == 6);
        CHECK_INT(pattern_next(&p, &at, &len, NULL), 1);
        CHECK_INT(at, place);
        CHECK_INT(len, 6);
        CHECK_INT(pattern_next(&p, &at, &len, NULL), 1);
        CHECK_INT(at, text.len - 8);
        CHECK_INT(len, 8);
        CHECK_INT(pattern_next(&p, &at, &len, NULL), 0);
        pattern_release(&p);
    }
    buf_release(&text);
}
