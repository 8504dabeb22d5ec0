#include "browse/text.h"

#include "chathist/base/utf8.h"
#include "test.h"

static struct browse_lines laid(const char *text, const struct browse_layout *how)
{
    struct browse_lines l = {0};

    browse_lines_add(&l, str_of(text), how);
    return l;
}

/* The lines joined by `|`; bytes with the same styles as `{styles:text}`, letters for each of them.
 */
static void show(struct buf *out, const struct browse_lines *l)
{
    static const struct {
        unsigned bit;
        char letter;
    } letters[] = {{BROWSE_BOLD, 'b'}, {BROWSE_ITALIC, 'i'},   {BROWSE_CODE, 'c'},
                   {BROWSE_DIM, 'd'},  {MARKDOWN_STRUCK, 's'}, {MARKDOWN_LINK, 'l'},
                   {BROWSE_HIT, 'h'},  {BROWSE_HEAD, 'H'},     {BROWSE_TOOL, 't'},
                   {BROWSE_HERE, 'X'}};

    for (size_t i = 0; i < l->count; i++) {
        const struct browse_line *line = &l->at[i];

        if (i > 0)
            buf_add_byte(out, '|');
        for (size_t k = line->at; k < line->at + line->n; k++) {
            unsigned styles = l->styles[k];

            if (styles && (k == line->at || l->styles[k - 1] != styles)) {
                buf_add_byte(out, '{');
                if (styles & MARKDOWN_KINDS)
                    buf_addf(out, "%u", (styles & MARKDOWN_KINDS) / MARKDOWN_KIND);
                for (size_t bit = 0; bit < sizeof letters / sizeof *letters; bit++)
                    if (styles & letters[bit].bit)
                        buf_add_byte(out, letters[bit].letter);
                buf_add_byte(out, ':');
            }
            buf_add_byte(out, l->text.data[k]);
            if (styles && (k + 1 == line->at + line->n || l->styles[k + 1] != styles))
                buf_add_byte(out, '}');
        }
    }
}

static void check(const char *text, struct browse_layout how, const char *want, int line)
{
    struct browse_lines l = laid(text, &how);
    struct buf out = BUF_INIT(BUF_SMALL);

    show(&out, &l);
    test_check_str(buf_c(&out), want, text, __FILE__, line);
    for (size_t i = 0; i < l.count; i++)
        CHECK(browse_line_columns(&l, i) <= how.width);
    buf_release(&out);
    browse_lines_release(&l);
}

#define PLAIN(w, text, want) check(text, (struct browse_layout){.width = (w)}, want, __LINE__)
#define MARKED(w, text, want)                                                                      \
    check(text, (struct browse_layout){.width = (w), .markdown = true}, want, __LINE__)

TEST(lines_wrap_at_words)
{
    PLAIN(10, "", "");
    PLAIN(10, "one two", "one two");
    PLAIN(10, "one two three four", "one two|three four");
    PLAIN(10, "one two th", "one two th");
    PLAIN(10, "0123456789abcdef", "0123456789|abcdef");
    PLAIN(10, "ab 0123456789abcdef", "ab|0123456789|abcdef");
    PLAIN(4, "abcd efgh", "abcd|efgh");
    PLAIN(10, "a\n\nb\n", "a||b");
    PLAIN(10, "a\r\nb\rc", "a|b{d:^M}c");
    PLAIN(12, "    indented text here", "    indented|text here");
    PLAIN(12, "\ta", "        a");
    PLAIN(12, "ab\tc", "ab      c");
}

TEST(wide_characters_and_marks_keep_their_columns)
{
    PLAIN(5, "日本語日本", "日本|語日|本");
    PLAIN(4,
          "e\xcc\x81"
          "e\xcc\x81"
          "e\xcc\x81"
          "e\xcc\x81"
          "e",
          "e\xcc\x81"
          "e\xcc\x81"
          "e\xcc\x81"
          "e\xcc\x81|e");
    /* A mark with nothing before it. */
    PLAIN(4, "\xcc\x81x", " \xcc\x81x");
    /* A family, a skin tone, a variation selector: none of what joins is left. */
    PLAIN(10, "👨‍👩‍👧!", "👨👩👧!");
    PLAIN(10, "👍🏽!", "👍!");
    PLAIN(10, "❤️!", "❤!");
    PLAIN(10, "שלום", "שלום");
}

TEST(more_marks_than_a_cell_holds_are_left_out)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    struct browse_layout how = {.width = 10};
    struct browse_lines l = {0};

    buf_add_c(&text, "a");
    for (int i = 0; i < 1000; i++)
        buf_add_c(&text, "\xcc\x81");
    buf_add_c(&text, "b");
    l = laid(buf_c(&text), &how);
    CHECK_INT(l.count, 1);
    CHECK(l.text.len < 40);
    CHECK_INT(browse_line_columns(&l, 0), 2);
    browse_lines_release(&l);
    buf_release(&text);
}

TEST(what_a_terminal_obeys_is_shown)
{
    PLAIN(40, "a\x1b[31mb", "a{d:^[}[31mb");
    PLAIN(40,
          "a\xe2\x80\xae"
          "b",
          "a{d:<U+202E>}b");
    PLAIN(40, "\xff.", "{d:<FF>}.");
    PLAIN(40, "\xc2\x9b", "{d:<U+009B>}");
    PLAIN(6, "ab\xe2\x80\xae", "ab{d:<U+2}|{d:02E>}");
    PLAIN(40, "a\xe2\x80", "a{d:<E2><80>}");
}

TEST(markdown_is_shown_lightly)
{
    MARKED(40, "a **b** c", "a {d:**}{b:b}{d:**} c");
    MARKED(40, "# Head", "{d:#}{b: Head}");
    MARKED(40, "x `y z`", "x {d:`}{c:y z}{d:`}");
    MARKED(40, "```c\nint i;\n```\nd", "{d:```c}|{4:int} i;|{d:```}|d");
    MARKED(40, "a ~~b~~ ~c~", "a {d:~~}{s:b}{d:~~} ~c~");
    MARKED(40, "see http://a.org.", "see {l:http://a.org}.");
    MARKED(24, "- one two three four five six", "- one two three four|  five six");
    MARKED(40, "|a|b|\n|-|-|\n|1|**x**|\ny",
           "{d:|} {b:a} {d:|} {b:b}     {d:|}|{d:|---|-------|}|"
           "{d:|} 1 {d:|} {d:**}{b:x}{d:**} {d:|}|y");
}

TEST(hits_in_tables_and_code)
{
    const struct browse_place hits[] = {{13, 1}, {17, 3}, {31, 3}};
    struct browse_layout how = {
        .width = 40, .markdown = true, .hits = hits, .hit_count = 3, .has_here = true, .here = 17};

    check("|a|b|\n|-|-|\n|1|**two** x|\n```c\nint i;\n", how,
          "{d:|} {b:a} {d:|} {b:b}         {d:|}|{d:|---|-----------|}|"
          "{d:|} {h:1} {d:|} {d:**}{bhX:two}{d:**} x {d:|}|{d:```c}|{4h:int} i;",
          __LINE__);
}

TEST(hits_are_marked_where_they_stand)
{
    const struct browse_place hits[] = {{4, 3}, {10, 2}, {12, 1}};
    struct browse_layout how = {.width = 8, .hits = hits, .hit_count = 3};

    check("one two thee", how, "one {h:two}|th{h:ee}", __LINE__);
    how.has_here = true;
    how.here = 4;
    check("one two three", how, "one {hX:two}|th{h:ree}", __LINE__);
    how.width = 5;
    check("one two three", how, "one|{hX:two}|th{h:ree}", __LINE__);
}

TEST(a_line_tells_where_it_begins)
{
    struct browse_layout how = {.width = 5};
    struct browse_lines l = laid("日本語 abc\n\nd", &how);

    CHECK_INT(l.count, 5);
    CHECK_INT(l.at[0].from, 0);
    CHECK_INT(l.at[1].from, 6);
    CHECK_INT(l.at[2].from, 10);
    CHECK_INT(l.at[3].from, 14);
    CHECK_INT(l.at[4].from, 15);
    browse_lines_release(&l);
}

static void check_one(const char *head, const char *text, size_t width, const char *want)
{
    struct browse_layout how = {.width = width};
    struct browse_lines l = {0};
    struct buf out = BUF_INIT(BUF_SMALL);

    browse_lines_add_one(&l, str_of(head), &how);
    browse_lines_append(&l, str_of(text), &how);
    show(&out, &l);
    CHECK_STR(buf_c(&out), want);
    CHECK(browse_line_columns(&l, 0) <= width);
    buf_release(&out);
    browse_lines_release(&l);
}

TEST(one_line_is_cut_at_its_width)
{
    check_one("", "", 10, "");
    check_one("ab ", "c\n\td  e", 10, "ab c d e");
    check_one("", "0123456789", 10, "0123456789");
    check_one("", "0123456789a", 10, "012345678…");
    check_one("abc ", "0123456789a", 10, "abc 01234…");
    check_one("0123456789a", "b", 10, "012345678…");
    check_one("", "日本語日本語", 10, "日本語日…");
    check_one("", "a\x1b[b", 10, "a{d:^[}[b");
}

/* Whatever the bytes: lines of the width, of cells whose characters are whole. */
TEST(random_bytes_keep_the_layout)
{
    unsigned state = 1;

    for (int round = 0; round < 3000; round++) {
        struct buf text = BUF_INIT(BUF_SMALL);
        struct browse_layout how = {.markdown = round % 2};
        struct browse_lines l = {0};

        for (int i = 0; i < 60; i++) {
            static const char *const bits[] = {
                "a",    " ",    "\n", "日", "e\xcc\x81", "\xe2\x80\x8d", "👨",
                "\x1b", "\xff", "\t", "`",  "*",         "\xf0\x9f",     "😀"};

            state = state * 1103515245U + 12345U;
            buf_add_c(&text, bits[(state >> 16) % (sizeof bits / sizeof *bits)]);
        }
        how.width = 2 + (state >> 16) % 30;
        browse_lines_add(&l, buf_str(&text), &how);
        for (size_t i = 0; i < l.count; i++)
            if (!CHECK(browse_line_columns(&l, i) <= how.width))
                return;
        CHECK_INT(utf8_valid(buf_str(&l.text)), l.text.len);
        browse_lines_release(&l);
        buf_release(&text);
    }
}
