#include "hist/search.h"

#include "base/utf8.h"
#include "test.h"
#include "scratch.h"

/* Where a needle is found in a text, as the part of the text; NULL when it is not. */
static void check_find(const char *text, const char *needle, const char *want)
{
    struct buf folded = BUF_INIT(BUF_SMALL);
    struct buf scratch = BUF_INIT(BUF_LINE);
    size_t at = 99, len = 99;
    bool found;

    utf8_add_folded(&folded, str_of(needle));
    found = search_find(str_of(text), buf_str(&folded), &scratch, &at, &len);
    if (!CHECK(found == (want != NULL)))
        fprintf(stderr, "    '%s' in '%s'\n", needle, text);
    if (found && want) {
        const char *place = strstr(text, want);

        CHECK_INT(at, place - text);
        CHECK_INT(len, strlen(want));
    }
    buf_release(&folded);
    buf_release(&scratch);
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

static unsigned random_state = 4711;

static unsigned random_below(unsigned n)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 8) % n;
}

static void add_random(struct buf *b, unsigned count)
{
    static const char *const letters[] = {
        "a", "A", "k", "S",        "s",           "\xc5\xbf", "\xe2\x84\xaa",
        "z", "ä", "Ä", "\xc8\xba", "\xe2\xb1\xa5"};

    while (count--)
        buf_add_c(b, letters[random_below(12)]);
}

TEST(finding_agrees_with_the_plain_way)
{
    struct buf text = BUF_INIT(BUF_SMALL), needle = BUF_INIT(BUF_SMALL);
    struct buf folded = BUF_INIT(BUF_SMALL), scratch = BUF_INIT(BUF_SMALL);
    int found = 0;

    for (int round = 0; round < 20000; round++) {
        size_t at, len;
        bool want;

        buf_clear(&text);
        buf_clear(&needle);
        buf_clear(&folded);
        add_random(&text, random_below(20));
        add_random(&needle, 1 + random_below(3));
        utf8_add_folded(&folded, buf_str(&needle));
        want = find_plainly(buf_str(&text), buf_str(&needle));
        if (!CHECK(search_find(buf_str(&text), buf_str(&folded), &scratch, &at, &len) == want))
            break;
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
    buf_release(&folded);
    buf_release(&scratch);
}

/* ---- searching a history ---- */

static void put_history(void)
{
    struct buf b = BUF_INIT(BUF_SMALL);
    static const char *const lines[][4] = {
        {"1", "s1", "user", "How do I say \\u00dcber?"},
        {"2", "s1", "assistant", "As \\\"über\\\"\\nor so"},
        {"3", "s2", "user", "nothing here but id s1 and 5"},
        {"4", "s2", "tool", ""},
    };

    for (size_t i = 0; i < 4; i++)
        buf_addf(&b,
                 "{\"id\":\"%s\",\"session_id\":\"%s\",\"timestamp\":\"t\",\"role\":\"%s\","
                 "\"content\":\"%s\",\"model\":\"model-x\"}\n",
                 lines[i][0], lines[i][1], lines[i][2], lines[i][3]);
    buf_add_c(&b, "über in garbage\n");
    scratch_put("f", buf_c(&b));
    buf_release(&b);
}

static void check_search(const char *needle, const struct filter *filter, enum scan_way way,
                         const char *want)
{
    struct search s;
    struct hit h;
    struct buf ids = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    int more;

    CHECK_INT(search_open(&s, "f", str_of(needle), filter, way, &e), 0);
    while ((more = search_next(&s, &h, &e)) > 0) {
        buf_add_str(&ids, h.message->id);
        buf_add_byte(&ids, ' ');
        CHECK(h.at + h.len <= h.content.n);
        CHECK(h.line.terminated);
    }
    CHECK_INT(more, 0);
    CHECK_STR(buf_c(&ids), want);
    search_close(&s);
    buf_release(&ids);
    err_release(&e);
}

TEST(only_decoded_content_is_searched)
{
    scratch_enter();
    put_history();
    check_search("üBER", NULL, SCAN_FORWARD, "1 2 ");
    check_search("üBER", NULL, SCAN_BACKWARD, "2 1 ");
    check_search("u00dc", NULL, SCAN_FORWARD, "");
    check_search("\"Ü"
                 "BER\"\nOR",
                 NULL, SCAN_FORWARD, "2 ");
    check_search("model-x", NULL, SCAN_FORWARD, "");
    check_search("s1", NULL, SCAN_FORWARD, "3 ");
    check_search("", NULL, SCAN_BACKWARD, "4 3 2 1 ");
    scratch_leave();
}

TEST(a_filter_narrows_the_search)
{
    struct filter role = {0};
    struct filter session = {.session = STR("s2")};

    scratch_enter();
    put_history();
    filter_add_role(&role, "user");
    check_search("", &role, SCAN_FORWARD, "1 3 ");
    check_search("über", &role, SCAN_FORWARD, "1 ");
    check_search("", &session, SCAN_FORWARD, "3 4 ");
    check_search("über", &session, SCAN_FORWARD, "");
    filter_release(&role);
    scratch_leave();
}

TEST(a_needle_that_is_not_utf8_finds_its_repaired_form)
{
    scratch_enter();
    scratch_put("f", "{\"id\":\"1\",\"session_id\":\"s\",\"timestamp\":\"t\",\"role\":\"user\","
                     "\"content\":\"caf\xef\xbf\xbd!\"}\n");
    check_search("caf\xe9!", NULL, SCAN_FORWARD, "1 ");
    check_search("\xa9", NULL, SCAN_FORWARD, "1 ");
    check_search("f!", NULL, SCAN_FORWARD, "");
    scratch_leave();
}

TEST(an_unreadable_history_is_an_error)
{
    struct search s;
    struct err e = ERR_INIT;

    CHECK_INT(search_open(&s, "/", STR("x"), NULL, SCAN_FORWARD, &e), -1);
    CHECK_STR(err_text(&e), "cannot open '/': is a directory");
    err_release(&e);
}

/* ---- snippets ---- */

/* The snippet round `part` of content, with the match in brackets. */
static void check_snippet(const char *content, const char *part, size_t width, const char *want)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct buf marked = BUF_INIT(BUF_SMALL);
    size_t at = (size_t)(strstr(content, part) - content);
    size_t mark = 99, mark_len = 99;

    buf_add_c(&out, "> ");
    search_snippet(&out, str_of(content), at, strlen(part), width, true, &mark, &mark_len);
    if (CHECK(mark + mark_len <= out.len)) {
        buf_add(&marked, out.data, mark);
        buf_add_byte(&marked, '[');
        buf_add(&marked, out.data + mark, mark_len);
        buf_add_byte(&marked, ']');
        buf_add_c(&marked, out.data + mark + mark_len);
    }
    CHECK_STR(buf_c(&marked), want);
    buf_release(&out);
    buf_release(&marked);
}

TEST(snippets_show_the_match_in_its_surroundings)
{
    check_snippet("short text", "text", 40, "> short [text]");
    check_snippet("0123456789abcdef", "89", 6, "> …67[89]ab…");
    check_snippet("0123456789abcdef", "01", 6, "> [01]2345…");
    check_snippet("0123456789abcdef", "ef", 6, "> …abcd[ef]");
    check_snippet("0123456789abcdef", "f", 6, "> …abcde[f]");
    check_snippet("0123456789", "0123456789", 4, "> [0123]…");
    check_snippet("0123456789", "5", 1, "> …[5]…");
    check_snippet("0123456789", "", 4, "> []0123…");
    check_snippet("", "", 10, "> []");
    check_snippet("x", "", 0, "> []…");
}

TEST(snippets_are_one_line_of_whole_characters)
{
    check_snippet("a\n\n  b\tc", "b", 40, "> a [b] c");
    check_snippet("\n  first\n", "first", 40, "> [first]");
    check_snippet("a b", " ", 40, "> a[] b");
    check_snippet("one\ntwo", "one\ntwo", 40, "> [one two]");
    check_snippet("äöüßä", "ü", 3, "> …ö[ü]ß…");
    check_snippet("a\x1b[31mb", "[31m", 40, "> a^[[[31m]b");
}

TEST(snippets_may_be_raw)
{
    struct buf out = BUF_INIT(BUF_SMALL);

    search_snippet(&out, STR("a\x1b[0m\n\0b"), 0, 1, 40, false, NULL, NULL);
    CHECK_MEM(buf_c(&out), out.len, "a\x1b[0m \0b", 8);
    buf_release(&out);
}
