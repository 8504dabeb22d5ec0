#include "chathist/base/amount.h"

#include <inttypes.h>

/* Powers of ten are needed for the decimals and for a whole part below 10 to the power of this. */
#define WHOLE_DIGITS 15
#define EXPONENT_MAX 1000
#define MILLION 1000000

static uint64_t power_of_ten(int n)
{
    uint64_t power = 1;

    while (n-- > 0)
        power *= 10;
    return power;
}

/* Takes digits from the beginning of *text and returns their number. */
static int skip_digits(struct str *text)
{
    int n = 0;

    while (text->n > 0 && ascii_is_digit(*text->p)) {
        *text = str_skip(*text, 1);
        n++;
    }
    return n;
}

/* Takes an exponent such as `e-05`. Returns false if digits are missing. An exponent beyond
 * EXPONENT_MAX counts as that, because its number is out of range or rounded to 0 anyway. */
static bool read_decimal_exponent(struct str *text, int *exponent)
{
    bool negative = false;
    struct str digits;

    *exponent = 0;
    if (text->n == 0 || ascii_lower(*text->p) != 'e')
        return true;
    *text = str_skip(*text, 1);
    if (text->n > 0 && (*text->p == '-' || *text->p == '+')) {
        negative = *text->p == '-';
        *text = str_skip(*text, 1);
    }
    digits = *text;
    if (skip_digits(text) == 0)
        return false;
    for (; digits.n > text->n; digits = str_skip(digits, 1))
        if (*exponent < EXPONENT_MAX)
            *exponent = *exponent * 10 + (*digits.p - '0');
    if (negative)
        *exponent = -*exponent;
    return true;
}

/* Splits a number into the text of its digits, with at most one point among them, and the power of
 * ten that the first digit stands for. Returns the number of decimals written, or -1. */
static int split_number(struct str number, struct str *digits, int *first)
{
    struct str rest = number;
    int before = skip_digits(&rest), after = 0, exponent;

    if (before == 0)
        return -1;
    if (rest.n > 0 && *rest.p == '.') {
        rest = str_skip(rest, 1);
        after = skip_digits(&rest);
        if (after == 0)
            return -1;
    }
    *digits = (struct str){number.p, number.n - rest.n};
    if (!read_decimal_exponent(&rest, &exponent) || rest.n > 0)
        return -1;
    *first = before - 1 + exponent;
    return after > exponent ? after - exponent : 0;
}

bool amount_read(struct amount *a, struct str number)
{
    struct amount sum = {0, 0};
    struct str digits;
    int place;

    if (number.n > EXPONENT_MAX || split_number(number, &digits, &place) < 0)
        return false;
    for (; digits.n > 0; digits = str_skip(digits, 1)) {
        uint64_t digit = (uint64_t)(unsigned char)*digits.p - '0';

        if (*digits.p == '.')
            continue;
        if (place >= WHOLE_DIGITS && digit > 0)
            return false;
        if (place >= 0 && place < WHOLE_DIGITS)
            sum.whole += digit * power_of_ten(place);
        else if (place < 0 && place >= -AMOUNT_DECIMALS)
            sum.part += digit * power_of_ten(AMOUNT_DECIMALS + place);
        else if (place == -AMOUNT_DECIMALS - 1 && digit >= 5)
            amount_add(&sum, (struct amount){0, 1});
        place--;
    }
    if (sum.whole >= power_of_ten(WHOLE_DIGITS)) /* by rounding */
        return false;
    *a = sum;
    return true;
}

bool amount_read_price(uint64_t *price, struct str number)
{
    struct amount a;
    struct str digits;
    int first, decimals = number.n > EXPONENT_MAX ? -1 : split_number(number, &digits, &first);

    if (decimals < 0 || decimals > PRICE_DECIMALS || !amount_read(&a, number) ||
        a.whole >= PRICE_MAX / MILLION)
        return false;
    *price = a.whole * MILLION + a.part / (AMOUNT_UNIT / MILLION);
    return true;
}

/* Both factors are split at a million, so that no product is too large. */
struct amount amount_of_tokens(uint64_t tokens, uint64_t price)
{
    uint64_t millions = tokens / MILLION, tokens_left = tokens % MILLION;
    uint64_t whole = price / MILLION, millionths = price % MILLION;
    uint64_t middle = millions * millionths + tokens_left * whole;
    struct amount cost = {millions * whole + middle / MILLION, middle % MILLION * MILLION};

    amount_add(&cost, (struct amount){0, tokens_left * millionths});
    return cost;
}

void amount_add(struct amount *sum, struct amount more)
{
    uint64_t part = sum->part + more.part, carry = part / AMOUNT_UNIT;

    if (more.whole > UINT64_MAX - carry || sum->whole > UINT64_MAX - carry - more.whole) {
        *sum = (struct amount){UINT64_MAX, AMOUNT_UNIT - 1};
        return;
    }
    sum->whole += more.whole + carry;
    sum->part = part % AMOUNT_UNIT;
}

int amount_compare(struct amount a, struct amount b)
{
    if (a.whole != b.whole)
        return a.whole < b.whole ? -1 : 1;
    return (a.part > b.part) - (a.part < b.part);
}

void amount_add_text(struct buf *out, struct amount a)
{
    buf_add_number(out, a.whole);
    if (a.part == 0)
        return;
    buf_addf(out, ".%0*" PRIu64, AMOUNT_DECIMALS, a.part);
    while (str_ends(buf_str(out), STR("0")))
        buf_truncate(out, out->len - 1);
}
