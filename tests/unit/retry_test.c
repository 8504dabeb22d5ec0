#include "chathist/llm/exchange.h"

#include "test.h"

/* Sun, 06 Nov 1994 08:49:37 GMT */
#define NOW (INT64_C(784111777) * 1000000)

static const struct retry_moment calm = {NOW, 0, RETRY_AFTER_MAX};

static struct http_head head_of(int status)
{
    return (struct http_head){status, "", "", "", "", ""};
}

/* Without a wish of the server, and without jitter. */
static int64_t after_status(int status)
{
    struct http_head h = head_of(status);

    return retry_wait(0, ERR_BUSY, &h, &calm);
}

static int64_t after_wish(const char *retry_after, const char *retry_after_ms)
{
    struct http_head h = head_of(429);

    h.retry_after = retry_after;
    h.retry_after_ms = retry_after_ms;
    return retry_wait(0, ERR_BUSY, &h, &calm);
}

TEST(by_status)
{
    static const int again[] = {408, 409, 429, 500, 502, 503, 504, 529, 599};
    static const int never[] = {200, 201, 302, 307, 400, 401, 402, 403, 404, 410, 413, 422, 428};

    for (size_t i = 0; i < sizeof again / sizeof *again; i++)
        if (!CHECK_INT(after_status(again[i]), 500))
            fprintf(stderr, "    of   %d\n", again[i]);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!CHECK_INT(after_status(never[i]), -1))
            fprintf(stderr, "    of   %d\n", never[i]);
}

TEST(a_wish_above_what_the_provider_allows)
{
    const struct retry_moment strict = {NOW, 0, 60000};
    struct http_head h = head_of(529);

    h.retry_after = "60";
    CHECK_INT(retry_wait(0, ERR_BUSY, &h, &strict), 60000);
    h.retry_after = "61";
    CHECK_INT(retry_wait(0, ERR_BUSY, &h, &strict), -1);
    CHECK_INT(retry_wish(&h, NOW), 61000);
    CHECK_INT(retry_wait(0, ERR_BUSY, &h, &calm), 61000);
}

TEST(without_an_answer)
{
    CHECK_INT(retry_wait(0, ERR_NETWORK, NULL, &calm), 500);
    CHECK_INT(retry_wait(0, ERR_TIMEOUT, NULL, &calm), -1);
    CHECK_INT(retry_wait(0, ERR_INCOMPLETE, NULL, &calm), -1);
    CHECK_INT(retry_wait(0, ERR_SIGNAL, NULL, &calm), -1);
    CHECK_INT(retry_wait(0, ERR_USAGE, NULL, &calm), -1);
}

TEST(x_should_retry_overrules)
{
    struct http_head h = head_of(429);

    h.should_retry = "false";
    CHECK_INT(retry_wait(0, ERR_BUSY, &h, &calm), -1);
    h.should_retry = "perhaps";
    CHECK_INT(retry_wait(0, ERR_BUSY, &h, &calm), 500);
    h = head_of(401);
    h.should_retry = "true";
    CHECK_INT(retry_wait(0, ERR_AUTH, &h, &calm), 500);
    /* Of an answer that came there is nothing to repeat. */
    h.status = 200;
    CHECK_INT(retry_wait(0, ERR_INCOMPLETE, &h, &calm), -1);
}

TEST(a_conversation_that_is_too_long_stays_so)
{
    struct http_head h = head_of(500);

    CHECK_INT(retry_wait(0, ERR_REFUSED, &h, &calm), -1);
}

TEST(the_wait_doubles_up_to_its_most)
{
    static const int64_t want[] = {500, 1000, 2000, 4000, 8000, 8000, 8000};

    for (unsigned i = 0; i < sizeof want / sizeof *want; i++)
        CHECK_INT(retry_wait(i, ERR_NETWORK, NULL, &calm), want[i]);
    CHECK_INT(retry_wait(4000000000U, ERR_NETWORK, NULL, &calm), 8000);
}

TEST(less_up_to_a_quarter)
{
    int64_t least = 500, most = 0;

    for (unsigned i = 0; i < 3000; i++) {
        struct retry_moment at = {NOW, i * 7919U, RETRY_AFTER_MAX};
        int64_t ms = retry_wait(0, ERR_NETWORK, NULL, &at);

        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    CHECK_INT(least, 375);
    CHECK_INT(most, 500);
    CHECK_INT(retry_wait(4, ERR_NETWORK, NULL, &(struct retry_moment){NOW, 1000, RETRY_AFTER_MAX}),
              6000);
}

TEST(seconds)
{
    CHECK_INT(after_wish("0", ""), 0);
    CHECK_INT(after_wish("7", ""), 7000);
    CHECK_INT(after_wish("1.5", ""), 1500);
    CHECK_INT(after_wish("0.0625", ""), 62);
    CHECK_INT(after_wish(".25", ""), 250);
    CHECK_INT(after_wish("2.", ""), 2000);
    CHECK_INT(after_wish("120", ""), 120000);
}

TEST(milliseconds_go_first)
{
    CHECK_INT(after_wish("", "50"), 50);
    CHECK_INT(after_wish("100", "50"), 50);
    CHECK_INT(after_wish("100", "50.9"), 50);
    CHECK_INT(after_wish("3", "soon"), 3000);
}

TEST(a_date)
{
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:49:40 GMT", ""), 3000);
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:49:37 GMT", ""), 0);
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:51:37 GMT", ""), 120000);
    /* Past, and too far. */
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:49:36 GMT", ""), 500);
    CHECK_INT(after_wish("Sun, 06 Nov 1994 08:51:38 GMT", ""), -1);
}

TEST(a_wish_that_is_none_or_too_long)
{
    static const char *const texts[] = {"",     "-1", "+1",  "1e1", "1 s",
                                        "soon", ".",  "NaN", "inf", "1.x"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!CHECK_INT(after_wish(texts[i], ""), 500))
            fprintf(stderr, "    of   %s\n", texts[i]);
    CHECK_INT(after_wish("120.1", ""), -1);
    CHECK_INT(after_wish("121", ""), -1);
    CHECK_INT(after_wish("99999999999999999999", ""), -1);
    CHECK_INT(after_wish("", "120001"), -1);
    CHECK_INT(after_wish("", "99999999999999999999"), -1);
}
