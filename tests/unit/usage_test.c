#include "chathist/base/usage.h"

#include "test.h"

/* Returns the stored members of a usage of which one count, or the cost, was this value. */
static const char *stored(enum usage_kind kind, const char *value)
{
    static struct buf text = BUF_INIT(BUF_SMALL);
    struct usage u;

    usage_init(&u);
    usage_read(&u, kind, str_of(value));
    buf_clear(&text);
    usage_add_members(&u, &text);
    return buf_c(&text);
}

TEST(a_value_that_is_no_count_is_unknown_and_not_stored)
{
    const char *const none[] = {"",     "\"\"",   "\"NaN\"", "null", "true",  "-1",    "-0.5",
                                "12.5", "\"12\"", "[3]",     "{}",   "1e400", "1e-400"};

    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK_STR(stored(USAGE_INPUT, none[i]), "");
        CHECK_STR(stored(USAGE_CACHE_READ, none[i]), "");
    }
    CHECK_STR(stored(USAGE_OUTPUT, "9007199254740992"), "");
    CHECK_STR(stored(USAGE_COST, "-1"), "");
    CHECK_STR(stored(USAGE_COST, "\"0.5\""), "");
    CHECK_STR(stored(USAGE_COST, "1e400"), "");
}

TEST(a_count_is_stored_also_if_it_is_zero)
{
    CHECK_STR(stored(USAGE_INPUT, "0"), "\"input_tokens\":0");
    CHECK_STR(stored(USAGE_OUTPUT, "12.0"), "\"output_tokens\":12");
    CHECK_STR(stored(USAGE_REASONING, "1e3"), "\"reasoning_tokens\":1000");
    CHECK_STR(stored(USAGE_COST, "0"), "\"cost\":0");
    CHECK_STR(stored(USAGE_COST, "1.5e-05"), "\"cost\":0.000015");
}

TEST(a_sum_of_which_a_count_is_unknown_is_partial)
{
    struct usage sum, one, cost;

    usage_init(&sum);
    usage_init(&one);
    usage_init(&cost);
    usage_read(&one, USAGE_INPUT, STR("3"));
    usage_read(&cost, USAGE_COST, STR("0.5"));
    CHECK(!usage_known(&sum) && usage_known(&one) && usage_known(&cost));
    CHECK(!usage_complete(&one));
    usage_read(&one, USAGE_OUTPUT, STR("4"));
    CHECK(usage_complete(&one));
    usage_sum(&sum, &one);
    CHECK(!sum.partial);
    one.at[USAGE_OUTPUT] = -1;
    usage_sum(&sum, &one);
    CHECK(sum.partial);
    CHECK_INT(sum.at[USAGE_INPUT], 6);
    CHECK_INT(sum.at[USAGE_OUTPUT], 4);
}
