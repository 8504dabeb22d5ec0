#include "chathist/cli/wide.h"

#include "test.h"

TEST(text_there_and_back)
{
    struct wide w = {0};
    struct buf out = BUF_INIT(BUF_SMALL);

    wide_add_text(&w, STR("a\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80\n"));
    CHECK_INT(w.count, 5);
    CHECK(w.at[w.count] == L'\0');
    wide_encode(&out, w.at, w.count);
    CHECK_STR(buf_c(&out), "a\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80\n");
    buf_release(&out);
    wide_release(&w);
}

TEST(what_is_no_text)
{
    struct wide w = {0};
    struct buf out = BUF_INIT(BUF_SMALL);

    wide_add_text(&w, STR("a\0b\xff\xe4\xbd"));
    wide_encode(&out, w.at, w.count);
    CHECK_STR(buf_c(&out), "ab\xef\xbf\xbd\xef\xbf\xbd");
    buf_release(&out);
    wide_release(&w);
}

TEST(columns)
{
    CHECK_INT(wide_columns(STR("")), 0);
    CHECK_INT(wide_columns(STR("abc")), 3);
    CHECK_INT(wide_columns(STR("\xe4\xbd\xa0\xe5\xa5\xbd")), 4);
    CHECK_INT(wide_columns(STR("e\xcc\x81")), 1);
    CHECK_INT(wide_columns(STR("\xff\xe4")), 2);
}

TEST(text_cut_to_columns)
{
    static const struct {
        const char *text;
        size_t columns;
        const char *fitted, *end;
    } rows[] = {
        {"abcde", 5, "abcde", "abcde"},
        {"abc", 5, "abc", "abc  "},
        {"abcde", 4, "abc\xe2\x80\xa6",
         "\xe2\x80\xa6"
         "cde"},
        {"abcde", 1, "\xe2\x80\xa6", "\xe2\x80\xa6"},
        {"\xe4\xbd\xa0\xe5\xa5\xbd\xe5\x90\x97", 4, "\xe4\xbd\xa0\xe2\x80\xa6",
         "\xe2\x80\xa6\xe5\x90\x97 "},
        {"", 2, "", "  "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf out = BUF_INIT(BUF_SMALL);

        wide_add_fitted(&out, str_of(rows[i].text), rows[i].columns);
        CHECK_STR(buf_c(&out), rows[i].fitted);
        buf_clear(&out);
        wide_add_end(&out, str_of(rows[i].text), rows[i].columns);
        CHECK_STR(buf_c(&out), rows[i].end);
        buf_release(&out);
    }
}

static size_t rows(struct str text, size_t before, size_t columns)
{
    struct wide w = {0};
    size_t n;

    wide_add_text(&w, text);
    n = wide_rows(w.at, w.count, before, columns);
    wide_release(&w);
    return n;
}

TEST(rows_of_a_line)
{
    CHECK_INT(rows(STR(""), 5, 10), 0);
    CHECK_INT(rows(STR(""), 25, 10), 2);
    CHECK_INT(rows(STR("abcd"), 5, 10), 0);
    CHECK_INT(rows(STR("abcde"), 5, 10), 1);
    CHECK_INT(rows(STR("abcdef"), 5, 10), 1);
    CHECK_INT(rows(STR("a\nb\n"), 5, 10), 2);
    CHECK_INT(rows(STR("\001\t"), 0, 10), 0);
    /* A wide one does not fit into one column. */
    CHECK_INT(rows(STR("abcd\xe4\xbd\xa0"), 5, 10), 1);
}
