#include "chathist/terminal/highlight.h"

#include "test.h"

static void show(void *arg, enum highlight_kind kind, struct str text)
{
    static const char letters[] = " csnk+-";
    struct buf *out = arg;

    for (size_t i = 0; i < text.n; i++)
        buf_add_byte(out, letters[kind]);
}

/* Feeds lines in pieces of each size. `want` has a letter for each byte: comment, string, number,
 * keyword, + and -. */
static void check(const char *name, const char *text, const char *want, int line)
{
    size_t n = strlen(text);

    for (size_t step = 1; step <= n + 1; step++) {
        struct highlight h = {.language = language_find(str_of(name))};
        struct buf out = BUF_INIT(SIZE_MAX);
        struct str rest = str_of(text);

        while (rest.p) {
            struct str one = str_cut(&rest, '\n');

            for (size_t at = 0; at < one.n; at += step)
                highlight_feed(&h, (struct str){one.p + at, step < one.n - at ? step : one.n - at},
                               show, &out);
            highlight_end_line(&h, show, &out);
            buf_add_c(&out, rest.p ? "\n" : "");
        }
        test_check_str(buf_c(&out), want, text, __FILE__, line);
        buf_release(&out);
    }
}

#define CODE(name, text, want) check(name, text, want, __LINE__)

TEST(words_numbers_strings_comments)
{
    CODE("c", "int a1 = 0x2f; // if", "kkk      nnnn  ccccc");
    CODE("C", "if (x) /* a\nb */ return 1.5;", "kk     cccc\ncccc kkkkkk nnn ");
    CODE("c", "char *s = \"a\\\"b\"; 'x'", "kkkk      ssssss  sss");
    CODE("c", "\"open\nint x", "sssss\nkkk  ");
    CODE("python", "def f(): # x\n\"\"\"a\nif\"\"\" or 'b'", "kkk      ccc\nssss\nsssss kk sss");
    CODE("python", "x = ''", "    ss");
    CODE("bash", "echo $# ${x#y} # z", "kkkk           ccc");
    CODE("sql", "SELECT a FROM b -- c", "kkkkkk   kkkk   cccc");
    CODE("lua", "--[[ a\nb ]] x -- y", "cccccc\ncccc   cccc");
    CODE("html", "<!-- a --> <b c=\"d\">", "cccccccccc      sss ");
    CODE("js", "`a\nb` let", "ss\nss kkk");
    CODE("json", "{\"a\": 12, \"b\": true}", " sss  nn  sss  kkkk ");
    CODE("go", "a/b / c //", "        cc");
    CODE("c", "a_word_that_is_longer_than_any_keyword_of_c if",
         "                                            kk");
}

TEST(lines_of_a_diff)
{
    CODE("diff", "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same",
         "-----\n+++++\nccccccccccc\n----\n++++\n     ");
}

TEST(languages)
{
    CHECK(language_find(STR("Rust")) != NULL);
    CHECK(language_find(STR("c++")) != NULL);
    CHECK(language_find(STR("ru")) == NULL);
    CHECK(language_find(STR("")) == NULL);
    CODE("klingon", "int \"a\" // b", "            ");
}
