#include "chathist/base/json_pieces.h"

#include "test.h"
#include "chathist/base/utf8.h"

#define SMILE "\xf0\x9f\x98\x80" /* \\ud83d\\ude00 */
#define WHAT UTF8_REPLACEMENT

/* The pieces, of which NULL ends the list, make the text. */
static void check(const char *wanted, const char *const *pieces)
{
    struct json_pieces p = {0};
    struct buf out = BUF_INIT(BUF_SMALL);

    for (; *pieces; pieces++)
        json_pieces_add(&p, str_of(*pieces), &out);
    json_pieces_end(&p, &out);
    CHECK_STR(buf_c(&out), wanted);
    json_pieces_end(&p, &out);
    CHECK_STR(buf_c(&out), wanted);
    buf_release(&out);
}

#define CHECK_PIECES(wanted, ...) check(wanted, (const char *const[]){__VA_ARGS__, NULL})

TEST(what_is_whole_is_as_it_is)
{
    CHECK_PIECES("", "\"\"");
    CHECK_PIECES("", "null", "5", "{\"a\":\"b\"}", "\"");
    CHECK_PIECES("ab\ncd", "\"ab\"", "\"\\n\"", "null", "\"cd\"");
    CHECK_PIECES(SMILE "x", "\"\\ud83d\\ude00\"", "\"x\"");
    CHECK_PIECES(SMILE "x", "\"" SMILE "x\"");
}

TEST(pairs_of_surrogates_cut_in_two)
{
    CHECK_PIECES("a" SMILE "b", "\"a\\ud83d\"", "\"\\ude00b\"");
    CHECK_PIECES("a" SMILE "b", "\"a\\uD83D\"", "\"\"", "null", "\"\\uDE00b\"");
    CHECK_PIECES(SMILE SMILE, "\"\\ud83d\"", "\"\\ude00\\ud83d\"", "\"\\ude00\"");
}

TEST(halves_without_another)
{
    CHECK_PIECES("a" WHAT "b", "\"a\\ud83d\"", "\"b\"");
    CHECK_PIECES("a" WHAT, "\"a\\ud83d\"");
    CHECK_PIECES(WHAT WHAT, "\"\\ud83d\"", "\"\\ud83d\"");
    CHECK_PIECES(WHAT SMILE, "\"\\ud83d\"", "\"\\ud83d\\ude00\"");
    CHECK_PIECES(WHAT SMILE, "\"\\ud83d\"", "\"\\ud83d\"", "\"\\ude00\"");
    CHECK_PIECES(WHAT "x", "\"\\ude00x\"");
    CHECK_PIECES("x" WHAT WHAT, "\"x\\ude00\"", "\"\\ud83d\"");
    CHECK_PIECES(WHAT "\n", "\"\\ud83d\"", "\"\\n\"");
    CHECK_PIECES(WHAT "A", "\"\\ud83d\"", "\"\\u0041\"");
}

/* A backslash that another one takes away begins no escape. */
TEST(what_only_looks_like_a_half)
{
    CHECK_PIECES("\\ud83d" WHAT, "\"\\\\ud83d\"", "\"\\ude00\"");
    CHECK_PIECES("\\" SMILE, "\"\\\\\\ud83d\"", "\"\\ude00\"");
    CHECK_PIECES("ud83d", "\"ud83d\"");
    CHECK_PIECES(WHAT "ude00", "\"\\ud83d\"", "\"ude00\"");
    CHECK_PIECES(WHAT "\\ude00", "\"\\ud83d\"", "\"\\\\ude00\"");
}
