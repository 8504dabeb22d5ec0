#include "chathist/terminal/markdown.h"

#include "test.h"

struct shown {
    struct buf text;
    unsigned styles;
};

/* A change of styles as `{bi}`: bold, struck, italic, code, mark. */
static void show(void *arg, unsigned styles, struct str text)
{
    struct shown *s = arg;

    styles &= ~(unsigned)MARKDOWN_BLOCK;
    if (styles != s->styles)
        buf_addf(&s->text, "{%s%s%s%s%s}", styles & MARKDOWN_BOLD ? "b" : "",
                 styles & MARKDOWN_STRUCK ? "s" : "", styles & MARKDOWN_ITALIC ? "i" : "",
                 styles & MARKDOWN_CODE ? "c" : "", styles & MARKDOWN_MARK ? "m" : "");
    s->styles = styles;
    buf_add_str(&s->text, text);
}

static void feed(struct str text, size_t step, struct shown *s)
{
    struct markdown m = {.fn = show, .arg = s};

    while (text.n > 0) {
        size_t n = step < text.n ? step : text.n;

        markdown_feed(&m, (struct str){text.p, n});
        text.p += n;
        text.n -= n;
    }
    markdown_end(&m);
}

/* Text fed without a function leaves the same state, though lines are passed over. */
static void check_state(struct str text, size_t silent, int line)
{
    struct shown all = {BUF_INIT(BUF_SMALL), 0}, rest = {BUF_INIT(BUF_SMALL), 0};
    struct markdown a = {.fn = show, .arg = &all}, b = {.arg = &rest};
    size_t before;

    markdown_feed(&a, (struct str){text.p, silent});
    markdown_feed(&b, (struct str){text.p, silent});
    before = all.text.len;
    rest.styles = all.styles;
    b.fn = show;
    markdown_feed(&a, str_skip(text, silent));
    markdown_feed(&b, str_skip(text, silent));
    markdown_end(&a);
    markdown_end(&b);
    test_check_mem(buf_c(&rest.text), rest.text.len, buf_c(&all.text) + before,
                   all.text.len - before, text.p, __FILE__, line);
    buf_release(&all.text);
    buf_release(&rest.text);
}

static void check_bytes(struct str text, struct str want, int line)
{
    for (size_t silent = 0; silent <= text.n; silent++)
        check_state(text, silent, line);
    for (size_t step = 1; step <= text.n + 1; step++) {
        struct shown s = {BUF_INIT(BUF_SMALL), 0};

        feed(text, step, &s);
        test_check_mem(buf_c(&s.text), s.text.len, want.p, want.n, text.p, __FILE__, line);
        buf_release(&s.text);
    }
}

static void check(const char *text, const char *want, int line)
{
    check_bytes(str_of(text), str_of(want), line);
}

#define SHOWN(text, want) check(text, want, __LINE__)

TEST(plain_text)
{
    SHOWN("", "");
    SHOWN("a\n\n  b [c](http://d/e_f) - g\n", "a\n\n  b [c](http://d/e_f) - g\n");
    SHOWN("1. one\n2. two\n- three\n* four\n  * five\n",
          "1. one\n2. two\n- three\n* four\n  * five\n");
    SHOWN("* * *\n***\n____\n", "* * *\n***\n____\n");
    check_bytes(STR("a\0**b"), STR("a\0**b"), __LINE__);
    SHOWN("| a | b |\n|---|---|\n", "| a | b |\n|---|---|\n");
}

TEST(emphasis)
{
    SHOWN("a **b c** d", "a {m}**{b}b c{m}**{} d");
    SHOWN("a *b c* d", "a {m}*{i}b c{m}*{} d");
    SHOWN("a _b c_ d", "a {m}_{i}b c{m}_{} d");
    SHOWN("***a***", "{m}***{bi}a{m}***");
    SHOWN("**a *b* c**", "{m}**{b}a {m}*{bi}b{m}*{b} c{m}**");
    SHOWN("**a *b***", "{m}**{b}a {m}*{bi}b{m}***");
    SHOWN("(**a**), \"*b*\"", "({m}**{b}a{m}**{}), \"{m}*{i}b{m}*{}\"");
    SHOWN("|**a**|", "|{m}**{b}a{m}**{}|");
    /* Chinese has no blanks. */
    SHOWN("\xe4\xb8\xad**\xe6\x96\x87**\xe4\xb8\xad",
          "\xe4\xb8\xad{m}**{b}\xe6\x96\x87{m}**{}\xe4\xb8\xad");
}

TEST(no_emphasis)
{
    SHOWN("snake_case_name and __init__", "snake_case_name and __init__");
    SHOWN("2*3*4, 2 * 3 * 4, x**2 and y**3", "2*3*4, 2 * 3 * 4, x**2 and y**3");
    SHOWN("2 ** 3 ** 4", "2 ** 3 ** 4");
    SHOWN("\\*a\\* \\\\", "\\*a\\* \\\\");
    SHOWN("****a****", "****a****");
    SHOWN("\xc3\xa9_a_\xc3\xa9", "\xc3\xa9_a_\xc3\xa9");
}

TEST(what_is_never_closed_ends_with_its_line)
{
    SHOWN("a **b\nc", "a {m}**{b}b{}\nc");
    SHOWN("a *b\nc", "a {m}*{i}b{}\nc");
    SHOWN("a `b\nc", "a {m}`{c}b{}\nc");
    SHOWN("a **", "a **");
    SHOWN("**", "**");
    SHOWN("a `", "a {m}`");
}

TEST(code_in_a_line)
{
    SHOWN("a `b` c", "a {m}`{c}b{m}`{} c");
    SHOWN("`**a**`", "{m}`{c}**a**{m}`");
    SHOWN("`` a ` b ``", "{m}``{c} a ` b {m}``");
    SHOWN("`a\\`b", "{m}`{c}a\\{m}`{}b");
    SHOWN("**a `b` c**", "{m}**{b}a {m}`{bc}b{m}`{b} c{m}**");
    SHOWN("\\`a`", "\\`a{m}`");
}

TEST(headings)
{
    SHOWN("# a\nb", "{m}#{b} a{}\nb");
    SHOWN("###### a `b`", "{m}######{b} a {m}`{bc}b{m}`");
    SHOWN("####### a", "####### a");
    SHOWN("#a #b", "#a #b");
    SHOWN("   # a", "   {m}#{b} a");
    SHOWN("    # a", "    # a");
    SHOWN("a # b", "a # b");
    SHOWN("#", "{m}#");
    SHOWN("\\# a", "\\# a");
}

TEST(struck_text)
{
    SHOWN("a ~~b c~~ d", "a {m}~~{s}b c{m}~~{} d");
    SHOWN("~~b", "{m}~~{s}b");
    SHOWN("~a~ ~~~ a~~b ~~ c~~", "~a~ ~~~ a~~b ~~ c~~");
    SHOWN("~~a\nb~~", "{m}~~{s}a{}\nb~~");
}

TEST(blocks_of_code)
{
    SHOWN("a\n```x\nint *b = *c;\n\n# d\n```\n*e*\n",
          "a\n{m}```x{}\n{c}int *b = *c;{}\n\n{c}# d{}\n{m}```{}\n{m}*{i}e{m}*{}\n");
    SHOWN("~~~\n```\n~~~\nb", "{m}~~~{}\n{c}```{}\n{m}~~~{}\nb");
    SHOWN("````\n```\n`````\nb", "{m}````{}\n{c}```{}\n{m}`````{}\nb");
    SHOWN("- a\n  ```\n  b\n  ```\nc", "- a\n  {m}```{}\n{c}  b{}\n{c}  {m}```{}\nc");
    SHOWN("```\n``` a\n```  \r\nb", "{m}```{}\n{m}```{c} a{}\n{m}```{c}  \r{}\nb");
    SHOWN("```\na", "{m}```{}\n{c}a");
    SHOWN("```a``` b\nc", "{m}```a```{} b\nc");
    SHOWN("```a `` b``` c", "{m}```a {c}`` b{m}```{} c");
    SHOWN("a ``` b\n", "a {m}```{c} b{}\n");
}

TEST(a_long_row_of_marks)
{
    char row[1000];
    struct shown s = {BUF_INIT(BUF_SMALL), 0};
    struct markdown m = {.fn = show, .arg = &s};

    memset(row, '*', sizeof row);
    for (size_t i = 0; i < 10; i++)
        markdown_feed(&m, (struct str){row, sizeof row});
    CHECK_INT(s.text.len, 0);
    markdown_feed(&m, STR("a"));
    CHECK_INT(s.text.len, 10001);
    buf_release(&s.text);
}

TEST(known_text_is_not_held_back)
{
    struct shown s = {BUF_INIT(BUF_SMALL), 0};
    struct markdown m = {.fn = show, .arg = &s};

    markdown_feed(&m, STR("**"));
    CHECK_STR(buf_c(&s.text), "");
    markdown_feed(&m, STR("a"));
    CHECK_STR(buf_c(&s.text), "{m}**{b}a");
    markdown_feed(&m, STR(" b"));
    CHECK_STR(buf_c(&s.text), "{m}**{b}a b");
    markdown_end(&m);
    /* The next text knows nothing of it. */
    markdown_feed(&m, STR("c"));
    CHECK_STR(buf_c(&s.text), "{m}**{b}a b{}c");
    markdown_end(&m);
    buf_release(&s.text);
}

/* ---- code blocks ---- */

/* NULL: there is none. */
static void check_block(const char *text, const char *want, int line)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    bool found = code_block_first(str_of(text), &out);

    test_check_str(found ? buf_c(&out) : NULL, want, text, __FILE__, line);
    buf_release(&out);
}

#define BLOCK(text, want) check_block(text, want, __LINE__)

TEST(block_none)
{
    BLOCK("", NULL);
    BLOCK("text `code` more\n", NULL);
    BLOCK("``\nno\n``\n", NULL);
    BLOCK("~~\nno\n~~\n", NULL);
    BLOCK("a ``` b\n", NULL);
    BLOCK("``` code in a line ```\n", NULL);
}

TEST(block_the_first_one)
{
    BLOCK("```\na\n```\n", "a\n");
    BLOCK("Say:\n\n```sh\necho a\n\necho b\n```\n\nor\n\n```sh\necho c\n```\n",
          "echo a\n\necho b\n");
    BLOCK("~~~ {.c #x}\nint `x`;\n~~~", "int `x`;\n");
    BLOCK("``` not `one`\ntext\n```\nin\n```\n", "in\n");
    BLOCK("```a.c\n```\n", "");
    BLOCK("```\n\n```\n", "\n");
}

TEST(block_fences_of_other_lengths_and_kinds)
{
    BLOCK("````md\n```c\nx\n```\n````\n", "```c\nx\n```\n");
    BLOCK("```\n~~~\n``\n`````  \nrest\n", "~~~\n``\n");
    BLOCK("```\n``` x\n```\n", "``` x\n");
    BLOCK("~~~~\n~~~\n```\n~~~~\n", "~~~\n```\n");
}

TEST(block_indentation_goes)
{
    BLOCK("1. Do:\n\n   ```sh\n   a\n     b\n  c\n   ```\n", "a\n  b\nc\n");
    BLOCK("\t```\n\ta\n\t```\n", "a\n");
}

TEST(block_without_an_end)
{
    BLOCK("```sh\na\nb", "a\nb\n");
    BLOCK("```sh\na\nb\n", "a\nb\n");
    BLOCK("```sh\n", "");
    BLOCK("```sh", "");
}

TEST(block_line_ends)
{
    BLOCK("```sh\r\na\r\n```\r\nrest\r\n", "a\r\n");
}
