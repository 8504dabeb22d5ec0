/*
 * prices: an amount that is read is the same after it was written and read again; a price is less
 * than its maximum; a file of prices is read or refused with a message, and then gives a cost of
 * any usage.
 */
#include <stdint.h>

#include "chathist/base/json.h"
#include "chathist/history/prices.h"
#include "demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct buf written = BUF_INIT(BUF_SMALL);
    struct prices p = PRICES_INIT;
    struct err e = ERR_INIT;
    struct amount a, again;
    struct str usage;
    struct cost cost;
    uint64_t price;

    if (amount_read(&a, text)) {
        amount_add_text(&written, a);
        demand(amount_read(&again, buf_str(&written)) && amount_compare(a, again) == 0);
    }
    if (amount_read_price(&price, text))
        demand(price < PRICE_MAX);
    if (!json_check(text, &usage, NULL))
        usage = STR_NONE;
    if (prices_read(&p, text, "prices", &e) < 0)
        demand(e.kind == ERR_USAGE);
    cost = prices_cost(&p, STR("openai"), STR("model"), usage);
    demand(cost.currency < prices_currencies(&p));
    cost = prices_cost(&p, STR_NONE, text, usage);
    demand(cost.currency < prices_currencies(&p) && cost.amount.part < AMOUNT_UNIT);
    prices_release(&p);
    err_release(&e);
    buf_release(&written);
    return 0;
}
