/*
 * decimal - the numbers of JSON as they are written: compared, divided and named exactly, however
 * large or precise they are. No floating point takes part.
 */
#ifndef CHATHIST_BASE_DECIMAL_H
#define CHATHIST_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* 0.D1D2D3… times 10^magnitude, D1 and the last digit not 0; zero has no digits. Borrowed from the
 * number that it was made of. */
struct decimal {
    const char *first; /* the first digit; a point may stand between the digits */
    size_t digits;
    int64_t magnitude; /* an exponent beyond 10^17 counts as that */
    bool negative;     /* never of zero */
};

/* The most digits that a divisor may have. */
#define DECIMAL_DIVISOR_DIGITS 18

/* Of a JSON number that json_check accepted. */
struct decimal decimal_of(struct str number);
/* Below 0, 0 or above 0, as a is less than, equal to or more than b. */
int decimal_compare(const struct decimal *a, const struct decimal *b);
bool decimal_is_integer(const struct decimal *d);
/* Is a an integer times b? b is above 0 and has up to DECIMAL_DIVISOR_DIGITS digits. */
bool decimal_is_multiple(const struct decimal *a, const struct decimal *b);
/* Adds text that is the same for equal numbers alone, a JSON number itself. */
void decimal_add(struct buf *out, const struct decimal *d);

#endif
