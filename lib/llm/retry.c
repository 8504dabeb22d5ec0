#include "chathist/llm/retry.h"

#include <string.h>

#include "chathist/base/buf.h"
#include "chathist/base/clock.h"

/* Seconds of some thousand years. */
#define NUMBER_MAX 100000000000

/* ---- whether ---- */

static bool is_worth_it(enum err_kind kind, const struct http_head *head)
{
    if (!head)
        return kind == ERR_NETWORK;
    if (head->status < 400)
        return false;
    if (strcmp(head->should_retry, "true") == 0)
        return true;
    if (strcmp(head->should_retry, "false") == 0)
        return false;
    /* A conversation that is too long stays so, whatever the status: llama.cpp says 500. */
    if (kind == ERR_REFUSED || kind == ERR_QUOTA)
        return false;
    return head->status == 408 || head->status == 409 || head->status == 429 || head->status >= 500;
}

/* ---- when ---- */

/* Reads a plain decimal number in units of `scale` milliseconds; digits past NUMBER_MAX are passed
 * over. */
static bool take_number(const char *text, int64_t scale, int64_t *ms)
{
    int64_t whole = 0, part = 0, unit = scale;
    bool any = false;

    for (; *text >= '0' && *text <= '9'; text++) {
        any = true;
        if (whole <= NUMBER_MAX)
            whole = whole * 10 + (*text - '0');
    }
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9'; text++) {
            any = true;
            unit /= 10;
            part += unit * (*text - '0');
        }
    if (!any || *text != '\0')
        return false;
    *ms = whole * scale + part;
    return true;
}

int64_t retry_wish(const struct http_head *head, int64_t now)
{
    int64_t date, ms;

    if (take_number(head->retry_after_ms, 1, &ms) || take_number(head->retry_after, 1000, &ms))
        return ms;
    if (!clock_parse_http(str_of(head->retry_after), &date) || date < now)
        return -1;
    return (date - now) / 1000;
}

static int64_t own_wait(unsigned repeated, unsigned random)
{
    int64_t ms = RETRY_FIRST;

    while (repeated-- > 0 && ms < RETRY_MOST)
        ms *= 2;
    if (ms > RETRY_MOST)
        ms = RETRY_MOST;
    return ms - (int64_t)(random % 1001) * ms / 4000;
}

int64_t retry_wait(unsigned repeated, enum err_kind kind, const struct http_head *head,
                   const struct retry_moment *at)
{
    int64_t ms;

    if (!is_worth_it(kind, head))
        return -1;
    ms = head ? retry_wish(head, at->now) : -1;
    if (ms >= 0)
        return ms <= at->most ? ms : -1;
    return own_wait(repeated, at->random);
}
