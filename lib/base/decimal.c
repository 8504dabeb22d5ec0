#include "chathist/base/decimal.h"

#include <inttypes.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t value = 0;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end && is_digit(*p); p++)
        if (value < INT64_MAX / 100)
            value = value * 10 + (*p - '0');
    return negative ? -value : value;
}

struct decimal decimal_of(struct str number)
{
    const char *p = number.p, *end = p + number.n;
    struct decimal d = {.negative = number.n > 0 && *p == '-'};
    size_t count = 0, first = 0, last = 0, point = SIZE_MAX;

    for (p += d.negative; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            point = count;
            continue;
        }
        if (*p != '0') {
            if (!d.first) {
                d.first = p;
                first = count;
            }
            last = count;
        }
        count++;
    }
    if (!d.first)
        return (struct decimal){0};
    d.digits = last - first + 1;
    d.magnitude = (int64_t)(point == SIZE_MAX ? count : point) - (int64_t)first;
    if (p < end)
        d.magnitude += read_exponent(p + 1, end);
    return d;
}

/* The digit at *p; moves behind it, over the point. */
static unsigned take_digit(const char **p)
{
    if (**p == '.')
        (*p)++;
    return (unsigned)(*(*p)++ - '0');
}

/* Of two that are not negative. */
static int compare_size(const struct decimal *a, const struct decimal *b)
{
    const char *p = a->first, *q = b->first;
    size_t i = 0;

    if (!a->digits || !b->digits)
        return (a->digits > 0) - (b->digits > 0);
    if (a->magnitude != b->magnitude)
        return a->magnitude < b->magnitude ? -1 : 1;
    for (; i < a->digits && i < b->digits; i++) {
        unsigned x = take_digit(&p), y = take_digit(&q);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return (a->digits > i) - (b->digits > i);
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? compare_size(b, a) : compare_size(a, b);
}

bool decimal_is_integer(const struct decimal *d)
{
    return d->digits == 0 || (d->magnitude >= 0 && (uint64_t)d->magnitude >= (uint64_t)d->digits);
}

bool decimal_is_multiple(const struct decimal *a, const struct decimal *b)
{
    /* As whole numbers times a power of ten each. */
    int64_t power = (a->magnitude - (int64_t)a->digits) - (b->magnitude - (int64_t)b->digits);
    uint64_t divisor = 0, rest = 0;
    const char *p = b->first;

    if (!a->digits)
        return true;
    /* The last digit of a is not 0: nothing that 10 divides divides it. */
    if (power < 0 || !b->digits || b->digits > DECIMAL_DIVISOR_DIGITS)
        return false;
    for (size_t i = 0; i < b->digits; i++)
        divisor = divisor * 10 + take_digit(&p);
    /* Each of the tens that a is multiplied by takes a 2 and a 5 from the divisor. */
    for (; power > 0 && (divisor % 2 == 0 || divisor % 5 == 0); power--) {
        if (divisor % 2 == 0)
            divisor /= 2;
        if (divisor % 5 == 0)
            divisor /= 5;
    }
    p = a->first;
    for (size_t i = 0; i < a->digits; i++)
        rest = (rest * 10 + take_digit(&p)) % divisor;
    return rest == 0;
}

void decimal_add(struct buf *out, const struct decimal *d)
{
    const char *p = d->first;

    if (!d->digits) {
        buf_add_byte(out, '0');
        return;
    }
    if (d->negative)
        buf_add_byte(out, '-');
    buf_add_c(out, "0.");
    for (size_t i = 0; i < d->digits; i++)
        buf_add_byte(out, (char)('0' + take_digit(&p)));
    buf_addf(out, "e%" PRId64, d->magnitude);
}
