#include "chathist/base/file.h"
#include "chathist/history/prices.h"

#include "test.h"

static struct cost cost_of(struct prices *p, const char *provider, const char *model,
                           const char *members)
{
    return prices_cost(p, provider ? str_of(provider) : STR_NONE, str_of(model), str_of(members));
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
        {"m 1 1 1 1 USD x", "cannot use 'f': line 1: bad word 'x': tier=NAME, above=TOKENS, "
                            "long-cache-write=PRICE or web-search=PRICE is expected after the "
                            "currency"},
        {"{\"gpt\":", "cannot use 'f': it is not JSON"},
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

/* A case of the two tests below: no cost means that it is unknown. */
struct priced {
    const char *provider, *model, *usage, *cost;
};

static void check_priced(struct prices *p, const struct priced *of, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cost cost = cost_of(p, of[i].provider, of[i].model, of[i].usage);

        if (!is_cost(cost, of[i].cost ? PRICES_REPORTED : PRICES_UNKNOWN, false,
                     of[i].cost ? of[i].cost : "0"))
            fprintf(stderr, "# case %zu: %s\n", i, of[i].usage);
        CHECK((cost.currency == PRICES_UNKNOWN) == !of[i].cost);
        CHECK(is_cost(cost, cost.currency, false, of[i].cost ? of[i].cost : "0"));
    }
}

#define RAW(more) "{\"input_tokens\":1000,\"output_tokens\":100,\"raw\":{" more "}}"

TEST(conditions_and_other_prices_of_a_line)
{
    static const struct priced cases[] = {
        {NULL, "m", RAW(""), "0.0035"},
        {NULL, "m", RAW("\"service_tier\":\"default\""), "0.0035"},
        {NULL, "m", RAW("\"service_tier\":\"flex\""), "0.00175"},
        /* A tier without a price is not priced like another one. */
        {NULL, "m", RAW("\"service_tier\":\"priority\""), NULL},
        {NULL, "m", RAW("\"speed\":\"fast\",\"service_tier\":\"standard\""), "0.021"},
        {NULL, "m", RAW("\"inference_geo\":\"us\""), NULL},
        {NULL, "m", RAW("\"web_search_call\":2"), "0.0235"},
        {NULL, "m", RAW("\"server_tool_use\":{\"web_search_requests\":1}"), "0.0135"},
        {NULL, "n", RAW("\"server_tool_use\":{\"web_search_requests\":1}"), NULL},
        {NULL, "n", RAW("\"server_tool_use\":{\"web_search_requests\":0}"), "0.0035"},
        {NULL, "m", RAW("\"code_interpreter_call\":1"), NULL},
        {NULL, "m", "{\"input_tokens\":200000,\"output_tokens\":0}", "0.5"},
        {NULL, "m", "{\"input_tokens\":200001,\"output_tokens\":0}", "1.000005"},
        /* 100 * 2.5 + 200 * 3 + 700 * 5 millionths */
        {NULL, "m",
         "{\"input_tokens\":1000,\"output_tokens\":0,\"cache_write_tokens\":900,\"raw\":{"
         "\"cache_creation\":{\"ephemeral_5m_input_tokens\":200,\"ephemeral_1h_input_tokens\":700}}"
         "}",
         "0.00435"},
        {NULL, "n",
         "{\"input_tokens\":1000,\"output_tokens\":0,\"cache_write_tokens\":900,\"raw\":{"
         "\"input_tokens_details\":{\"cache_write_tokens_details\":{\"ttl_12h_tokens\":1}}}}",
         NULL},
        /* An answer of two requests. */
        {NULL, "m",
         "{\"input_tokens\":1000,\"output_tokens\":100,\"raw\":[{},{\"web_search_call\":1}]}",
         "0.0135"},
        {NULL, "m",
         "{\"input_tokens\":1000,\"output_tokens\":100,\"raw\":[{},{\"service_tier\":\"flex\"}]}",
         NULL},
        {NULL, "m", "{\"input_tokens\":300000,\"output_tokens\":100,\"raw\":[{},{}]}", NULL},
        /* 1000 * 2.5 + 100 * 10, and 100000 * 2.5 + 1000 * 10 for the summary, millionths */
        {NULL, "m",
         RAW("\"iterations\":[{\"type\":\"compaction\",\"input_tokens\":100000,\"output_tokens\":"
             "1000},"
             "{\"type\":\"message\",\"input_tokens\":1000,\"output_tokens\":100}]"),
         "0.2635"},
        {NULL, "m",
         RAW("\"iterations\":[{\"model\":\"x\",\"input_tokens\":1,\"output_tokens\":1}]"), NULL},
    };
    struct prices p = PRICES_INIT;
    struct err e = ERR_INIT;

    CHECK(prices_read(&p,
                      STR("m 5.0 - - 20 USD above=200000\n"
                          "m 2.5 1.25 3 10 USD long-cache-write=5 web-search=10.00\n"
                          "m 1.25 - - 5 USD tier=flex\n"
                          "m 15 - - 60 USD tier=fast\n"
                          "n 2.5 1.25 3 10 USD\n"),
                      "prices", &e) == 0);
    check_priced(&p, cases, sizeof cases / sizeof *cases);
    prices_release(&p);
}

TEST(the_file_of_litellm)
{
    static const struct priced cases[] = {
        /* 300 * 2.5 + 700 * 0.25 + 100 * 15 millionths */
        {"openai", "gpt-5.4",
         "{\"input_tokens\":1000,\"output_tokens\":100,\"cache_read_tokens\":700}", "0.002425"},
        {"openai-responses", "gpt-5.4-2026-03-05", TOKENS, "0.004"},
        {"openai", "gpt-5.4", RAW("\"service_tier\":\"flex\""), "0.002"},
        {"openai", "gpt-5.4", RAW("\"service_tier\":\"priority\""), "0.008"},
        {"openai", "gpt-5.4", RAW("\"service_tier\":\"batch\""), "0.002"},
        {"openai", "gpt-5.4", RAW("\"service_tier\":\"scale\""), NULL},
        {"openai", "gpt-5.4", RAW("\"web_search_call\":3"), "0.034"},
        /* 300000 * 5 + 1000 * 22.5 millionths */
        {"openai", "gpt-5.4", "{\"input_tokens\":300000,\"output_tokens\":1000}", "1.5225"},
        {"azure", "gpt-5.4", TOKENS, "0.018"},
        {"mistral", "gpt-5.4", TOKENS, NULL},
        {NULL, "gpt-5.4", TOKENS, NULL},
        {"openai", "gpt-5.4-mini", TOKENS, NULL},
        {"openai", "sample_spec", TOKENS, NULL},
        {"openai", "gpt-4o", TOKENS, "0.0035"},
        {"openai", "gpt-4o",
         "{\"input_tokens\":1000,\"output_tokens\":100,\"cache_read_tokens\":1}", NULL},
        {"openai", "gpt-4o", RAW("\"web_search_call\":1"), NULL},
        /* 3 * 3 + 97 * 3.75 + 1000 * 6 + 40 * 15 millionths, and two searches */
        {"anthropic", "claude-sonnet-4-5",
         "{\"input_tokens\":1100,\"output_tokens\":40,\"cache_write_tokens\":1097,\"raw\":{"
         "\"cache_creation\":{\"ephemeral_1h_input_tokens\":1000},\"server_tool_use\":{"
         "\"web_search_requests\":2}}}",
         "0.02697275"},
        {"anthropic", "claude-sonnet-4-5", "{\"input_tokens\":300000,\"output_tokens\":1000}",
         "1.8225"},
        {"deepseek", "deepseek-chat", TOKENS, "0.0012"},
        {"dashscope", "qwen-plus",
         "{\"input_tokens\":1000,\"output_tokens\":100,\"reasoning_tokens\":50}", "0.00066"},
        {"dashscope", "qwen-plus", "{\"input_tokens\":300000,\"output_tokens\":0}", "0.36"},
    };
    struct prices p = PRICES_INIT;
    struct buf text = BUF_INIT(SIZE_MAX);
    struct err e = ERR_INIT;

    CHECK(file_read("tests/fixtures/prices/litellm.json", &text, &e) == 0);
    CHECK(prices_read(&p, buf_str(&text), "prices", &e) == 0);
    check_priced(&p, cases, sizeof cases / sizeof *cases);
    buf_release(&text);
    prices_release(&p);
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
    const char *with = "{\"input_tokens\":1,\"output_tokens\":2,\"cost\":0.5}";
    struct buf text = BUF_INIT(BUF_SMALL);
    struct usage both = sum_of(with, with), part = sum_of(with, TOKENS),
                 back = sum_of(TOKENS, with);

    usage_add_text(&both, &text);
    buf_add_c(&text, ", ");
    usage_add_text(&part, &text);
    buf_add_c(&text, ", ");
    usage_add_text(&back, &text);
    CHECK_STR(buf_c(&text), "input_tokens=2 output_tokens=4 cost=1, input_tokens=1001 "
                            "output_tokens=102 cost=unknown, input_tokens=1001 output_tokens=102 "
                            "cost=unknown");
    buf_release(&text);
}
