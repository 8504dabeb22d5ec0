#include "chathist/history/prices.h"

#include "test.h"

static struct cost cost_of(struct prices *p, const char *provider, const char *model,
                           const char *members)
{
    struct usage usage;

    usage_init(&usage);
    usage_read_members(&usage, str_of(members));
    return prices_cost(p, provider ? str_of(provider) : STR_NONE, str_of(model), &usage);
}

static bool is_cost(struct cost cost, size_t currency, bool reported, const char *amount)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    bool same;

    amount_add_text(&text, cost.amount);
    same =
        cost.currency == currency && cost.reported == reported && strcmp(buf_c(&text), amount) == 0;
    if (!same)
        fprintf(stderr, "# currency %zu, reported %d, %s\n", cost.currency, cost.reported,
                buf_c(&text));
    buf_release(&text);
    return same;
}

#define TOKENS "{\"input_tokens\":1000,\"output_tokens\":100}"

TEST(the_first_line_that_matches_counts)
{
    struct prices p = PRICES_INIT;
    struct err e = ERR_INIT;

    CHECK(prices_read(&p,
                      STR("# a comment\n\n"
                          "openrouter:gpt-4o\t9 - - 90 USD\r\n"
                          "gpt-4o* 2.5 1.25 - 10 USD\n"
                          "  gpt-4o-mini 99 99 99 99 USD  \n"
                          "mistral:* 1 - - 3 EUR\n"
                          "llama3.2:?b 0 0 0 0 USD"),
                      "prices", &e) == 0);
    CHECK(prices_currencies(&p) == PRICES_FIRST_COUNT + 1);
    CHECK_STR(prices_currency(&p, PRICES_UNKNOWN), "unknown");
    CHECK_STR(prices_currency(&p, PRICES_REPORTED), "USD");
    CHECK_STR(prices_currency(&p, PRICES_FIRST_COUNT), "EUR");
    CHECK(is_cost(cost_of(&p, "openai", "gpt-4o", TOKENS), PRICES_REPORTED, false, "0.0035"));
    CHECK(is_cost(cost_of(&p, NULL, "gpt-4o", TOKENS), PRICES_REPORTED, false, "0.0035"));
    CHECK(is_cost(cost_of(&p, "openrouter", "gpt-4o", TOKENS), PRICES_REPORTED, false, "0.018"));
    CHECK(is_cost(cost_of(&p, "openai", "gpt-4o-mini", TOKENS), PRICES_REPORTED, false, "0.0035"));
    CHECK(is_cost(cost_of(&p, "mistral", "any", TOKENS), PRICES_FIRST_COUNT, false, "0.0013"));
    CHECK(is_cost(cost_of(&p, "ollama", "llama3.2:1b", TOKENS), PRICES_REPORTED, false, "0"));
    CHECK(is_cost(cost_of(&p, "ollama", "llama3.2:11b", TOKENS), PRICES_UNKNOWN, false, "0"));
    CHECK(is_cost(cost_of(&p, "openai", "", TOKENS), PRICES_UNKNOWN, false, "0"));
    CHECK(is_cost(cost_of(&p, "openai", "gpt-4o", "{}"), PRICES_UNKNOWN, false, "0"));
    prices_release(&p);
}

TEST(tokens_of_the_cache_are_part_of_the_input)
{
    struct prices p = PRICES_INIT;
    struct err e = ERR_INIT;

    CHECK(prices_read(&p, STR("m 10 1 12.5 50 USD\nn 10 - - 50 USD"), "prices", &e) == 0);
    /* 10 * 10 + 70 * 1 + 20 * 12.5 + 5 * 50 millionths */
    CHECK(is_cost(cost_of(&p, NULL, "m",
                          "{\"input_tokens\":100,\"output_tokens\":5,\"cache_read_tokens\":70,"
                          "\"cache_write_tokens\":20,\"reasoning_tokens\":4}"),
                  PRICES_REPORTED, false, "0.00067"));
    CHECK(is_cost(cost_of(&p, NULL, "n",
                          "{\"input_tokens\":100,\"output_tokens\":5,\"cache_read_tokens\":70}"),
                  PRICES_REPORTED, false, "0.00125"));
    /* A server that counts wrongly. */
    CHECK(is_cost(cost_of(&p, NULL, "m",
                          "{\"input_tokens\":10,\"output_tokens\":0,\"cache_read_tokens\":70,"
                          "\"cache_write_tokens\":20}"),
                  PRICES_REPORTED, false, "0.00001"));
    prices_release(&p);
}

TEST(the_cost_that_the_server_told_counts_first)
{
    struct prices p = PRICES_INIT;
    struct err e = ERR_INIT;

    CHECK(prices_read(&p, STR("* 10 1 12.5 50 USD"), "prices", &e) == 0);
    CHECK(
        is_cost(cost_of(&p, NULL, "m", "{\"input_tokens\":1,\"output_tokens\":5,\"cost\":1.5e-5}"),
                PRICES_REPORTED, true, "0.000015"));
    CHECK(is_cost(cost_of(&p, NULL, "", "{\"input_tokens\":1,\"output_tokens\":5,\"cost\":0}"),
                  PRICES_REPORTED, true, "0"));
    prices_release(&p);
    CHECK(is_cost(cost_of(&p, NULL, "m", "{\"input_tokens\":1,\"output_tokens\":5,\"cost\":0.1}"),
                  PRICES_REPORTED, true, "0.1"));
    CHECK(is_cost(cost_of(&p, NULL, "m", TOKENS), PRICES_UNKNOWN, false, "0"));
    prices_release(&p);
}

TEST(an_error_names_file_and_line)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"\nm 1 1 1 USD", "cannot use 'f': line 2 has not six words: MODEL, prices of a million "
                          "tokens of INPUT, CACHED-INPUT, CACHE-WRITE and OUTPUT, and CURRENCY"},
        {"m 1 1 1 1 USD x", "cannot use 'f': line 1 has not six words: MODEL, prices of a million "
                            "tokens of INPUT, CACHED-INPUT, CACHE-WRITE and OUTPUT, and CURRENCY"},
        {"#\n\nm 1 1,5 1 1 USD", "cannot use 'f': line 3: bad price '1,5': a number with a point "
                                 "and at most 6 decimals is expected"},
        {"m - 1 1 1 USD", "cannot use 'f': line 1: bad price '-': a number with a point and at "
                          "most 6 decimals is expected"},
        {"m 1 1 1 1 usd", "cannot use 'f': line 1: bad currency 'usd': three capital letters such "
                          "as USD are expected"},
        {"gpt-[4o 1 1 1 1 USD",
         "cannot use 'f': line 1: bad pattern 'gpt-[4o': a '[' is not closed"},
        {"[]ab 1 1 1 1 USD", "cannot use 'f': line 1: bad pattern '[]ab': a '[' is not closed"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct prices p = PRICES_INIT;
        struct err e = ERR_INIT;

        CHECK(prices_read(&p, str_of(bad[i].text), "f", &e) < 0);
        CHECK(e.kind == ERR_USAGE);
        CHECK_STR(err_text(&e), bad[i].message);
        err_release(&e);
        prices_release(&p);
    }
}

/* The usage of a turn whose responses reported these members. */
static struct usage sum_of(const char *first, const char *second)
{
    const char *const all[] = {first, second};
    struct usage sum, one;

    usage_init(&sum);
    for (size_t i = 0; i < 2; i++) {
        usage_init(&one);
        usage_read_members(&one, str_of(all[i]));
        usage_sum(&sum, &one);
    }
    return sum;
}

TEST(a_cost_that_is_known_in_part_is_unknown)
{
    const char *with = "{\"input_tokens\":1,\"output_tokens\":2,\"cost\":0.5}", *none = "{}";
    struct prices p = PRICES_INIT;
    struct buf text = BUF_INIT(BUF_SMALL);
    struct err e = ERR_INIT;
    struct usage both = sum_of(with, with), part = sum_of(with, TOKENS),
                 back = sum_of(TOKENS, with), half = sum_of(TOKENS, none),
                 tokens = sum_of(TOKENS, TOKENS);

    CHECK(prices_read(&p, STR("* 10 1 12.5 50 USD"), "prices", &e) == 0);
    usage_add_text(&both, &text);
    buf_add_c(&text, ", ");
    usage_add_text(&part, &text);
    buf_add_c(&text, ", ");
    usage_add_text(&back, &text);
    CHECK_STR(buf_c(&text), "input_tokens=2 output_tokens=4 cost=1, input_tokens=1001 "
                            "output_tokens=102 cost=unknown, input_tokens=1001 output_tokens=102 "
                            "cost=unknown");
    CHECK(is_cost(prices_cost(&p, STR_NONE, STR("m"), &half), PRICES_UNKNOWN, false, "0"));
    CHECK(is_cost(prices_cost(&p, STR_NONE, STR("m"), &tokens), PRICES_REPORTED, false, "0.03"));
    buf_release(&text);
    prices_release(&p);
}
