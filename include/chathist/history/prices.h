/*
 * prices - the cost of an answer: the one that its server reported, or the tokens times the prices
 * of a file that the user keeps (chathist(5), "Prices"). No price is built in, because prices
 * change and differ between customers.
 *
 * The prices are those of a million tokens. Each line has six words:
 *
 *     MODEL  INPUT  CACHED-INPUT  CACHE-WRITE  OUTPUT  CURRENCY
 *
 * Words after these are conditions, `tier=NAME` and `above=TOKENS`, and further prices. The first
 * line whose MODEL (a pattern of fnmatch(3)) matches the stored name of the model, or
 * `provider:model`, and whose conditions are true, counts. Tokens read from a cache or written to
 * it are part of the input (base/usage), so their price replaces that of the input. `-` instead of
 * it means the price of the input. CURRENCY is a code of ISO 4217. Empty lines and lines that begin
 * with `#` are ignored.
 *
 * A file that begins with `{` is that of LiteLLM (docs.litellm.ai/docs/proxy/model_cost_map).
 */
#ifndef CHATHIST_HISTORY_PRICES_H
#define CHATHIST_HISTORY_PRICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/amount.h"
#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/base/usage.h"

/* The places of a currency in a list of sums, which currencies of the file follow. */
enum {
    PRICES_UNKNOWN, /* no cost is known */
    /* Costs that servers report. The services that do so count in US dollars: OpenRouter ("Usage
     * Accounting": credits, one for each dollar), Perplexity (`total_cost` in dollars), Claude Code
     * (`costUSD`). */
    PRICES_REPORTED,
    PRICES_FIRST_COUNT
};

/* Zero-initialise for no prices. */
struct prices {
    struct price *at;
    size_t count, cap;
    char (*currencies)[4]; /* the currencies of the file other than USD */
    size_t currencies_count, currencies_cap;
    /* private */
    struct hash_map
        names; /* the names of models that were looked up, with the first line that matches */
};

#define PRICES_INIT                                                                                \
    {                                                                                              \
        .count = 0                                                                                 \
    }

/* What one answer cost. */
struct cost {
    size_t currency; /* PRICES_UNKNOWN: nothing below is set */
    bool reported;   /* the server reported it */
    struct amount amount;
};

/* Adds the lines of a text, the content of `file` without a zero byte
 * (text_clean). Returns 0, or -1 (ERR_USAGE) with a
 * message that names the file and the line. */
int prices_read(struct prices *p, struct str text, const char *file, struct err *e);
/* Returns how many places of currencies there are, and the name of one: `unknown`, `USD`, … */
size_t prices_currencies(const struct prices *p);
const char *prices_currency(const struct prices *p, size_t i);
/* Returns the cost of an answer with this stored `usage` (usage_add_object). `provider` may be
 * STR_NONE. The cost that the server reported counts before that of the file. It is unknown if one
 * of its parts has no price. */
struct cost prices_cost(struct prices *p, struct str provider, struct str model, struct str usage);
void prices_release(struct prices *p);

#endif
