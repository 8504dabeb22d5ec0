/*
 * amount - an exact amount of money with 12 decimals, without its currency.
 *
 * A price of a token is a few millionths of a currency unit. Binary floating point would round it,
 * and the sums of many answers would not agree with their parts.
 */
#ifndef CHATHIST_BASE_AMOUNT_H
#define CHATHIST_BASE_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

#define AMOUNT_DECIMALS 12
#define AMOUNT_UNIT 1000000000000 /* 10 to the power of AMOUNT_DECIMALS */

struct amount {
    uint64_t whole;
    uint64_t part; /* the part of AMOUNT_UNIT, less than it */
};

/* A price for a million tokens, in millionths of a currency unit, less than PRICE_MAX. Then each
 * token costs a whole number of parts of AMOUNT_UNIT. */
#define PRICE_DECIMALS 6
#define PRICE_MAX ((uint64_t)10000000000000) /* ten million currency units */

/* Reads a decimal number as JSON writes it, rounded to AMOUNT_DECIMALS. Returns false if it is no
 * such number, negative, or 1e15 or more. */
bool amount_read(struct amount *a, struct str number);
/* Reads a price such as `2.50`. Returns false if it is no such number, has more than PRICE_DECIMALS
 * decimals, or is too large. */
bool amount_read_price(uint64_t *price, struct str number);
/* Returns the cost of `tokens`, less than 2^53, at this price for a million of them. */
struct amount amount_of_tokens(uint64_t tokens, uint64_t price);
/* Adds to a sum. A sum that would be too large stays at the largest one. */
void amount_add(struct amount *sum, struct amount more);
/* Returns less than, equal to or greater than 0, as a is smaller, equal or larger. */
int amount_compare(struct amount a, struct amount b);
/* Adds the number with the decimals that it needs: `0.0042`, `3`. */
void amount_add_text(struct buf *out, struct amount a);

#endif
