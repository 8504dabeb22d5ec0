#include "chathist/history/prices.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "chathist/base/memory.h"
#include "chathist/base/utf8.h"

#define NONE SIZE_MAX

/* The words of a line, in their order. */
enum { MODEL, INPUT, CACHE_READ, CACHE_WRITE, OUTPUT, CURRENCY, WORDS };

struct price {
    char *pattern;
    uint64_t of[OUTPUT + 1]; /* of a million tokens (base/amount); the one of MODEL is not used */
    size_t currency;         /* as in prices_currency */
};

/* ---- the file ---- */

/* Returns the place of a currency, and adds a new one, or PRICES_UNKNOWN if the
 * text is not a code of ISO 4217. */
static size_t take_currency(struct prices *p, struct str code)
{
    size_t i;

    for (i = 0; i < code.n && code.p[i] >= 'A' && code.p[i] <= 'Z'; i++)
        continue;
    if (i != 3 || code.n != 3)
        return PRICES_UNKNOWN;
    for (i = PRICES_REPORTED; i < prices_currencies(p); i++)
        if (str_eq_c(code, prices_currency(p, i)))
            return i;
    p->currencies =
        mem_grow(p->currencies, &p->currencies_cap, p->currencies_count + 1, sizeof *p->currencies);
    memcpy(p->currencies[p->currencies_count], code.p, code.n);
    p->currencies[p->currencies_count++][code.n] = '\0';
    return i;
}

/* fnmatch takes a bracket that is not closed for an ordinary character, which no model's name
 * has. */
static bool is_pattern(struct str pattern)
{
    const char *open = memchr(pattern.p, '[', pattern.n);
    const char *end = pattern.p + pattern.n;

    while (open && end - open > 2) {
        const char *close = memchr(open + 2, ']', (size_t)(end - open - 2));

        if (!close)
            return false;
        open = memchr(close, '[', (size_t)(end - close));
    }
    return !open;
}

static int read_line(struct prices *p, struct str line, const char *where, struct err *e)
{
    struct str word[WORDS], rest = line;
    struct price price = {0};
    size_t n = 0;

    for (; n < WORDS && (word[n] = str_word(&rest)).n > 0; n++)
        continue;
    if (n < WORDS || str_word(&rest).n > 0)
        return err_set(e, ERR_USAGE,
                       "%s has not six words: MODEL, prices of a million tokens of INPUT, "
                       "CACHED-INPUT, CACHE-WRITE and OUTPUT, and CURRENCY",
                       where);
    if (!is_pattern(word[MODEL]))
        return err_set(e, ERR_USAGE, "%s: bad pattern '%.*s': a '[' is not closed", where,
                       (int)word[MODEL].n, word[MODEL].p);
    for (n = INPUT; n <= OUTPUT; n++) {
        if (str_eq_c(word[n], "-") && (n == CACHE_READ || n == CACHE_WRITE))
            price.of[n] = price.of[INPUT];
        else if (!amount_read_price(&price.of[n], word[n]))
            return err_set(e, ERR_USAGE,
                           "%s: bad price '%.*s': a number with a point and at most %d decimals "
                           "is expected",
                           where, (int)word[n].n, word[n].p, PRICE_DECIMALS);
    }
    price.currency = take_currency(p, word[CURRENCY]);
    if (price.currency == PRICES_UNKNOWN)
        return err_set(e, ERR_USAGE,
                       "%s: bad currency '%.*s': three capital letters such as USD are expected",
                       where, (int)word[CURRENCY].n, word[CURRENCY].p);
    price.pattern = mem_copy(word[MODEL].p, word[MODEL].n);
    p->at = mem_grow(p->at, &p->cap, p->count + 1, sizeof *p->at);
    p->at[p->count++] = price;
    return 0;
}

int prices_read(struct prices *p, struct str text, const char *file, struct err *e)
{
    struct buf where = BUF_INIT(BUF_LINE);
    int result = 0;

    buf_clear(&p->last);
    for (size_t number = 1; result == 0 && text.p; number++) {
        struct str line = str_trim(str_cut(&text, '\n'));

        if (line.n == 0 || *line.p == '#')
            continue;
        buf_clear(&where);
        buf_addf(&where, "cannot use '%s': line %zu", file, number);
        result = read_line(p, line, buf_c(&where), e);
    }
    buf_release(&where);
    return result;
}

/* ---- costs ---- */

size_t prices_currencies(const struct prices *p)
{
    return PRICES_FIRST_COUNT + p->currencies_count;
}

const char *prices_currency(const struct prices *p, size_t i)
{
    if (i < PRICES_FIRST_COUNT)
        return i == PRICES_UNKNOWN ? "unknown" : "USD";
    return p->currencies[i - PRICES_FIRST_COUNT];
}

/* Returns the line of a model, or NULL. Neighbouring answers are mostly of the same model, so the
 * last one is remembered. */
static const struct price *find_price(struct prices *p, struct str provider, struct str model)
{
    struct buf name = BUF_INIT(BUF_LINE);
    size_t at = provider.n + 1;

    buf_add_str(&name, provider);
    buf_add_byte(&name, ':');
    buf_add_str(&name, model);
    if (!str_eq(buf_str(&name), buf_str(&p->last))) {
        p->found = NONE;
        for (size_t i = 0; i < p->count && p->found == NONE; i++)
            if (fnmatch(p->at[i].pattern, buf_c(&name) + at, 0) == 0 ||
                (provider.n > 0 && fnmatch(p->at[i].pattern, buf_c(&name), 0) == 0))
                p->found = i;
        buf_set(&p->last, buf_str(&name));
    }
    buf_release(&name);
    return p->found == NONE ? NULL : &p->at[p->found];
}

static uint64_t count_of(const struct usage *usage, enum usage_kind kind)
{
    return usage->at[kind] > 0 ? (uint64_t)usage->at[kind] : 0;
}

static struct amount compute(const struct price *price, const struct usage *usage)
{
    uint64_t input = count_of(usage, USAGE_INPUT), read = count_of(usage, USAGE_CACHE_READ);
    uint64_t written = count_of(usage, USAGE_CACHE_WRITE);
    struct amount sum;

    /* A server that counts more tokens of the cache than of the input contradicts itself. */
    if (read > input)
        read = input;
    if (written > input - read)
        written = input - read;
    sum = amount_of_tokens(input - read - written, price->of[INPUT]);
    amount_add(&sum, amount_of_tokens(read, price->of[CACHE_READ]));
    amount_add(&sum, amount_of_tokens(written, price->of[CACHE_WRITE]));
    amount_add(&sum, amount_of_tokens(count_of(usage, USAGE_OUTPUT), price->of[OUTPUT]));
    return sum;
}

struct cost prices_cost(struct prices *p, struct str provider, struct str model,
                        const struct usage *usage)
{
    const struct price *price = NULL;

    if (usage->at[USAGE_COST] >= 0)
        return (struct cost){PRICES_REPORTED, true, usage_cost(usage)};
    if (model.n > 0 && usage_complete(usage) && !usage->partial)
        price = find_price(p, provider, model);
    if (!price)
        return (struct cost){0};
    return (struct cost){price->currency, false, compute(price, usage)};
}

void prices_release(struct prices *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->at[i].pattern);
    free(p->at);
    free(p->currencies);
    buf_release(&p->last);
    *p = (struct prices)PRICES_INIT;
}
