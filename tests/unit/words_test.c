#include "chathist/base/process.h"

#include "test.h"

/* The words, each followed by `|`; an error as `! message`. */
static struct buf split(const char *text)
{
    struct buf out = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct words w;

    if (words_split(&w, str_of(text), &e) < 0) {
        buf_addf(&out, "! %s", err_text(&e));
        CHECK_INT(e.kind, ERR_USAGE);
    } else {
        for (size_t i = 0; i < w.count; i++)
            buf_addf(&out, "%s|", w.at[i]);
        CHECK(w.at[w.count] == NULL);
    }
    words_release(&w);
    err_release(&e);
    return out;
}

static void check(const char *text, const char *want)
{
    struct buf got = split(text);

    CHECK_STR(buf_c(&got), want);
    buf_release(&got);
}

TEST(words_are_separated_by_white_space)
{
    check("npx -y server /tmp", "npx|-y|server|/tmp|");
    check("  a\t b \n c  ", "a|b|c|");
    check("one", "one|");
}

static void check_quote(const char *word, const char *want)
{
    struct buf quoted = BUF_INIT(BUF_SMALL), read_back;

    words_quote(&quoted, word);
    CHECK_STR(buf_c(&quoted), want);
    read_back = split(buf_c(&quoted));
    buf_truncate(&read_back, read_back.len - 1);
    CHECK_STR(buf_c(&read_back), word);
    buf_release(&quoted);
    buf_release(&read_back);
}

TEST(words_are_quoted_if_the_shell_would_read_them_differently)
{
    check_quote("/a/b-c_d.jsonl", "/a/b-c_d.jsonl");
    check_quote("https://host:80/x,y@z%20+", "https://host:80/x,y@z%20+");
    check_quote("", "''");
    check_quote("a b", "'a b'");
    check_quote("it's; $(id) `id`", "'it'\\''s; $(id) `id`'");
    check_quote("~/x", "'~/x'");
    check_quote("a=b", "'a=b'");
    check_quote("a?b&c", "'a?b&c'");
    check_quote("caf\xc3\xa9", "'caf\xc3\xa9'");
}

TEST(quotes_keep_words_together)
{
    check("a 'b c' d", "a|b c|d|");
    check("a \"b c\" d", "a|b c|d|");
    check("a'b c'\"d e\"f", "ab cd ef|");
    check("'' \"\" a''", "||a|");
    check("'a \"b\" \\'", "a \"b\" \\|");
    check("\"it's\"", "it's|");
}

TEST(a_backslash_takes_the_meaning_away)
{
    check("a\\ b \\'c\\' \\\\", "a b|'c'|\\|");
    check("\"\\\"\\\\\\$\\`\\n\"", "\"\\$`\\n|");
    check("a\\\nb \\\n c", "ab|c|");
    check("\"a\\\nb\"", "ab|");
}

TEST(nothing_is_expanded)
{
    check("~/x $HOME `id` $(id) *.c ; | > & # !", "~/x|$HOME|`id`|$(id)|*.c|;|||>|&|#|!|");
}

TEST(what_has_no_end_is_an_error)
{
    check("a 'b", "! a quote is not closed");
    check("a \"b", "! a quote is not closed");
    check("a \"b\\", "! a quote is not closed");
    check("a \\", "! a backslash ends it");
    check("", "! it is empty");
    check(" \t\\\n ", "! it is empty");
}

TEST(a_nul_byte_is_an_error)
{
    struct err e = ERR_INIT;
    struct words w;

    CHECK_INT(words_split(&w, STR("a\0b"), &e), -1);
    CHECK_STR(err_text(&e), "it holds a NUL byte");
    words_release(&w);
    err_release(&e);
}
