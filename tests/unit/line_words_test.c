#include "chat/line_editor.h"

#include "test.h"

static void offer(struct line_words *w, const char *const *words)
{
    *w = (struct line_words){0};
    for (; *words; words++)
        line_offer(w, str_of(*words));
}

static void check(const char *const *words, const char *want, int line)
{
    struct line_words w;
    struct buf got = BUF_INIT(BUF_SMALL);

    offer(&w, words);
    buf_add_str(&got, line_words_common(&w));
    test_check_str(buf_c(&got), want, words[0], __FILE__, line);
    buf_release(&got);
    line_words_release(&w);
}

#define COMMON(want, ...) check((const char *const[]){__VA_ARGS__, NULL}, want, __LINE__)

TEST(what_words_begin_with)
{
    COMMON("one", "one");
    COMMON("s", "search", "sessions", "save");
    COMMON("", "a", "b");
    COMMON("a", "ab", "a");
    COMMON("", "", "a");
    /* Not half a code point: é and è. */
    COMMON("a", "a\xc3\xa9", "a\xc3\xa8");
}

TEST(a_table)
{
    struct line_words w;
    struct buf out = BUF_INIT(BUF_SMALL);

    offer(&w, (const char *const[]){"one", "two\033[2J", "\xe4\xbd\xa0", NULL});
    line_words_add_table(&out, &w, 45);
    CHECK_STR(buf_c(&out), "one                 two^[[2J\r\n\xe4\xbd\xa0\r\n");
    buf_clear(&out);
    line_words_add_table(&out, &w, 5);
    CHECK_STR(buf_c(&out), "one\r\ntwo^[[2J\r\n\xe4\xbd\xa0\r\n");
    buf_release(&out);
    line_words_release(&w);
}
