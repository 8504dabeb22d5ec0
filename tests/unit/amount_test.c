#include "chathist/base/amount.h"

#include "test.h"

static const char *shown(const char *number)
{
    static struct buf text = BUF_INIT(BUF_SMALL);
    struct amount a;

    buf_clear(&text);
    if (amount_read(&a, str_of(number)))
        amount_add_text(&text, a);
    else
        buf_add_c(&text, "no amount");
    return buf_c(&text);
}

TEST(numbers_are_read_exactly)
{
    CHECK_STR(shown("0"), "0");
    CHECK_STR(shown("12"), "12");
    CHECK_STR(shown("0.1"), "0.1");
    CHECK_STR(shown("123456789.123456789012"), "123456789.123456789012");
    CHECK_STR(shown("999999999999999"), "999999999999999");
    CHECK_STR(shown("1.5e-05"), "0.000015");
    CHECK_STR(shown("0.0012E3"), "1.2");
    CHECK_STR(shown("12e+2"), "1200");
    CHECK_STR(shown("0e999999"), "0");
    CHECK_STR(shown("7e-999999"), "0");
}

TEST(more_decimals_are_rounded)
{
    CHECK_STR(shown("0.0000000000014"), "0.000000000001");
    CHECK_STR(shown("0.0000000000015"), "0.000000000002");
    CHECK_STR(shown("0.9999999999999"), "1");
    CHECK_STR(shown("123e-14"), "0.000000000001");
}

TEST(other_texts_are_no_amounts)
{
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      ".5",
                                      "5.",
                                      "1e",
                                      "1e+",
                                      "1,5",
                                      "0x",
                                      "1 2",
                                      "1e15",
                                      "1e99",
                                      "NaN",
                                      "1000000000000000",
                                      "999999999999999.9999999999999"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STR(shown(bad[i]), "no amount");
}

TEST(prices_have_six_decimals)
{
    uint64_t price;

    CHECK(amount_read_price(&price, STR("2.50")) && price == 2500000);
    CHECK(amount_read_price(&price, STR("0.000001")) && price == 1);
    CHECK(amount_read_price(&price, STR("9999999.999999")) && price == PRICE_MAX - 1);
    CHECK(!amount_read_price(&price, STR("10000000")));
    CHECK(!amount_read_price(&price, STR("0.0000001")));
    CHECK(!amount_read_price(&price, STR("-2")));
    CHECK(!amount_read_price(&price, STR("free")));
}

static const char *cost(uint64_t tokens, uint64_t price)
{
    static struct buf text = BUF_INIT(BUF_SMALL);

    buf_clear(&text);
    amount_add_text(&text, amount_of_tokens(tokens, price));
    return buf_c(&text);
}

/* The expected products are from Python (decimal). */
TEST(tokens_are_multiplied_exactly)
{
    CHECK_STR(cost(0, 2500000), "0");
    CHECK_STR(cost(1, 1), "0.000000000001");
    CHECK_STR(cost(1000000, 2500000), "2.5");
    CHECK_STR(cost(1234567, 7654321), "9.449772114007");
    CHECK_STR(cost(((uint64_t)1 << 53) - 1, PRICE_MAX - 1), "90071992547400902.800745259009");
}

TEST(sums_carry_and_stay_at_the_largest)
{
    struct amount sum = {1, AMOUNT_UNIT - 1};

    amount_add(&sum, (struct amount){2, 2});
    CHECK(sum.whole == 4 && sum.part == 1);
    CHECK(amount_compare(sum, (struct amount){4, 0}) > 0);
    CHECK(amount_compare(sum, (struct amount){5, 0}) < 0);
    CHECK(amount_compare(sum, sum) == 0);
    amount_add(&sum, (struct amount){UINT64_MAX - 4, 0});
    CHECK(sum.whole == UINT64_MAX && sum.part == 1);
    amount_add(&sum, (struct amount){0, AMOUNT_UNIT - 1});
    CHECK(sum.whole == UINT64_MAX && sum.part == AMOUNT_UNIT - 1);
}
