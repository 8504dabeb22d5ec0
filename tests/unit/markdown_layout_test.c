#include "chathist/terminal/markdown_layout.h"

#include "test.h"

struct shown {
    struct buf text;
    size_t columns;
    bool styled; /* bold is shown as <...> */
    bool cells;
};

static void show(void *arg, unsigned styles, struct str text, size_t at)
{
    struct shown *s = arg;

    (void)at;
    buf_add_c(&s->text, s->styled && styles & MARKDOWN_BOLD ? "<" : "");
    buf_add_str(&s->text, text);
    buf_add_c(&s->text, s->styled && styles & MARKDOWN_BOLD ? ">" : "");
}

static size_t columns_of(void *arg)
{
    return ((struct shown *)arg)->columns;
}

/* A link is shown as <address|text>. */
static void show_link(void *arg, struct str address)
{
    struct shown *s = arg;

    buf_add_c(&s->text, address.p ? "<" : ">");
    buf_add_str(&s->text, address);
    buf_add_c(&s->text, address.p ? "|" : "");
}

/* Feeds a text in pieces of each size. */
static void check(size_t columns, bool cells, const char *text, const char *want, int line)
{
    size_t n = strlen(text);

    for (size_t step = 1; step <= n + 1; step++) {
        struct shown s = {.text = BUF_INIT(SIZE_MAX), .columns = columns};
        struct markdown_layout l;

        markdown_layout_init(&l, show, &s, columns_of);
        l.link = show_link;
        l.cells = cells;
        for (size_t at = 0; at < n; at += step)
            markdown_layout_feed(&l, (struct str){text + at, step < n - at ? step : n - at});
        markdown_layout_end(&l);
        test_check_str(buf_c(&s.text), want, text, __FILE__, line);
        markdown_layout_release(&l);
        buf_release(&s.text);
    }
}

#define SHOWN(columns, text, want) check(columns, false, text, want, __LINE__)
#define CELLS(columns, text, want) check(columns, true, text, want, __LINE__)

TEST(lines_are_broken_between_words)
{
    SHOWN(10, "one two three four", "one two\nthree four");
    SHOWN(10, "0123456789 0123456789", "0123456789\n0123456789");
    SHOWN(10, "0123456789   \nx", "0123456789\nx");
    SHOWN(10, "one   two   three", "one   two\nthree");
    SHOWN(10, "  one two three\n\n- four five six\n", "  one two\nthree\n\n- four\nfive six\n");
    SHOWN(10, "a **bold word** b", "a **bold\nword** b");
    SHOWN(10, "one\tab", "one\tab");
    SHOWN(10, "one\tthree", "one\nthree");
    SHOWN(0, "one two three four", "one two three four");
    SHOWN(1, "ab c", "ab\nc");
}

TEST(long_words_and_code_are_left_to_the_terminal)
{
    SHOWN(10, "see 01234567890123456789abcd and xy", "see\n01234567890123456789abcd and\nxy");
    SHOWN(10, "```c\nint main(void) { return 0; }\n```\none two three\n",
          "```c\nint main(void) { return 0; }\n```\none two\nthree\n");
    SHOWN(10, "run `git commit` now", "run `git\ncommit`\nnow");
}

TEST(wide_and_combining_characters)
{
    /* Two columns each; no line begins with a full stop. */
    SHOWN(6, "\xe4\xb8\x80\xe4\xba\x8c\xe4\xb8\x89\xe5\x9b\x9b",
          "\xe4\xb8\x80\xe4\xba\x8c\xe4\xb8\x89\n\xe5\x9b\x9b");
    SHOWN(6, "\xe4\xb8\x80\xe4\xba\x8c\xe4\xb8\x89\xe3\x80\x82\xe5\x9b\x9b",
          "\xe4\xb8\x80\xe4\xba\x8c\n\xe4\xb8\x89\xe3\x80\x82\xe5\x9b\x9b");
    SHOWN(5,
          "e\xcc\x81"
          "e\xcc\x81"
          "e e\xcc\x81"
          "e e",
          "e\xcc\x81"
          "e\xcc\x81"
          "e\ne\xcc\x81"
          "e e");
    /* A control character is wider when it is visible. */
    SHOWN(6, "abc \033d", "abc\n^[d");
    SHOWN(6, "abc \xff", "abc\n<FF>");
}

TEST(items_and_quotes_hang)
{
    SHOWN(20, "- one two three four five\n", "- one two three four\n  five\n");
    SHOWN(20, "  10. one two three four\n", "  10. one two three\n      four\n");
    SHOWN(20, "> one two three four five\n", "> one two three four\n  five\n");
    SHOWN(20, "> - one two three four five\n", "> - one two three\n    four five\n");
    SHOWN(20, "  one two three four five\n", "  one two three four\n  five\n");
    SHOWN(20, "* **one** two three four\nfive six seven eight nine",
          "* **one** two three\n  four\nfive six seven eight\nnine");
    SHOWN(20, "2*3 one two three four five", "2*3 one two three\nfour five");
    SHOWN(20, "-one two three four five", "-one two three four\nfive");
    /* Not with little room. */
    SHOWN(19, "- one two three four five\n", "- one two three\nfour five\n");
    CELLS(20, "- 0123456789012345678901234\n", "- 012345678901234567\n  8901234\n");
}

TEST(addresses_are_links)
{
    SHOWN(80, "see http://a.org/b.", "see <http://a.org/b|http://a.org/b>.");
    SHOWN(80, "[a](https://a.org/x_(y))", "[a](<https://a.org/x_(y)|https://a.org/x_(y)>)");
    SHOWN(80, "<https://a.org>, http:// b", "<<https://a.org|https://a.org>>, http:// b");
    /* Whole, though the terminal breaks it. */
    SHOWN(10, "ab http://example.org/a/b x",
          "ab\n<http://example.org/a/b|http://example.org/a/b> x");
    SHOWN(30, "| a |\n|---|\n| http://example.org/one/two/three/four |\n",
          "| a                          |\n|----------------------------|\n"
          "| <http://example.org/one/two/three/four|http://example.org/one/two> |\n"
          "| <http://example.org/one/two/three/four|/three/four>                |\n");
}

TEST(screens_of_cells)
{
    CELLS(10, "```c\nint main(void) { return 0; }\n```\n",
          "```c\nint\nmain(void)\n{ return\n0; }\n```\n");
    CELLS(10, "see 01234567890123456789abcd and xy", "see\n0123456789\n0123456789\nabcd and\nxy");
    CELLS(10, "one\tab", "one     ab");
    CELLS(10, "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd!", "\xf0\x9f\x91\x8d!");
    CELLS(10, "           x", "\nx");
}

#define TABLE "| a | long cell |\n|--:|:---:|\n| 1234 | x **y** |\n"

TEST(tables_get_columns)
{
    SHOWN(40, TABLE "end", "|    a | long cell |\n|-----:|:---------:|\n| 1234 |  x **y**  |\nend");
    /* Without a newline at the end, and with cells of other numbers. */
    SHOWN(40, "|a|b|\n|-|-|\n|c|\n|d|e|f \\| g|",
          "| a | b |        |\n|---|---|--------|\n| c |   |        |\n| d | e | f \\| g |\n");
    SHOWN(40, "| \xe4\xb8\x80 | b |\n|---|---|\n| x | y |\n",
          "| \xe4\xb8\x80 | b |\n|----|---|\n| x  | y |\n");
    SHOWN(40, "a\n  |a|b|\n  |-|-|\n\n|not|one\n", "a\n| a | b |\n|---|---|\n\n|not|one\n");
    SHOWN(40, "|a|b|\n|c|d|\n|-|-|\n", "|a|b|\n| c | d |\n|---|---|\n");
    SHOWN(40, "```\n|a|b|\n|-|-|\n```\n", "```\n|a|b|\n|-|-|\n```\n");
    SHOWN(40, "    |a|b|\n    |-|-|\n", "    |a|b|\n    |-|-|\n");
    SHOWN(40, "|a", "|a");
}

TEST(tables_on_narrow_terminals)
{
    SHOWN(24, "| name | what it does |\n|---|---|\n| ls | lists the files of a directory |\n",
          "| name | what it does  |\n|------|---------------|\n"
          "| ls   | lists the     |\n|      | files of a    |\n|      | directory     |\n");
    SHOWN(10, "| one two | three four |\n|---|---|\n", "| one two\n| three\nfour |\n|---|---|\n");
}

TEST(a_table_is_held_back_whole)
{
    struct shown s = {.text = BUF_INIT(SIZE_MAX), .columns = 40};
    struct markdown_layout l;

    markdown_layout_init(&l, show, &s, columns_of);
    markdown_layout_feed(&l, STR("| a | b |\n|---|---|\n"));
    for (size_t i = 0; i < 10000; i++)
        markdown_layout_feed(&l, STR("| 1 | 222 |\n"));
    CHECK(markdown_layout_holds_table(&l));
    CHECK_INT(s.text.len, 0);
    markdown_layout_feed(&l, STR("|wider|5|\n\n"));
    CHECK(!markdown_layout_holds_table(&l));
    CHECK(str_starts(buf_str(&s.text), STR("| a     | b   |\n|-------|-----|\n| 1     | 222 |\n")));
    CHECK(str_ends(buf_str(&s.text), STR("| wider | 5   |\n\n")));
    markdown_layout_end(&l);
    markdown_layout_release(&l);
    buf_release(&s.text);
}

TEST(styles_stay_with_their_words)
{
    struct shown s = {.text = BUF_INIT(SIZE_MAX), .columns = 12, .styled = true};
    struct markdown_layout l;

    markdown_layout_init(&l, show, &s, columns_of);
    markdown_layout_feed(&l, STR("a **bold text** c\n| **h** |\n|---|\n| b **c** |\n"));
    CHECK(markdown_layout_end(&l));
    CHECK_STR(buf_c(&s.text),
              "a **<bold>\n<text>** c\n| <**><h><**>   |\n|---------|\n| b **<c>** |\n");
    markdown_layout_release(&l);
    buf_release(&s.text);
}
