#include "chathist/base/usage.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chathist/base/json.h"

/* Every JSON reader handles numbers up to this one exactly. */
#define COUNT_MAX ((int64_t)1 << 53)
#define COST_DECIMALS 12
#define COST_MAX ((int64_t)1000000 * USAGE_COST_UNIT)

static const char *const names[USAGE_KINDS] = {
    [USAGE_INPUT] = "input_tokens",           [USAGE_OUTPUT] = "output_tokens",
    [USAGE_CACHE_READ] = "cache_read_tokens", [USAGE_CACHE_WRITE] = "cache_write_tokens",
    [USAGE_REASONING] = "reasoning_tokens",   [USAGE_COST] = "cost",
};

void usage_init(struct usage *u)
{
    for (int i = 0; i < USAGE_KINDS; i++)
        u->at[i] = -1;
}

bool usage_known(const struct usage *u)
{
    return u->at[USAGE_INPUT] >= 0 || u->at[USAGE_OUTPUT] >= 0;
}

/* Reads a cost and rounds it to units of 1 / USAGE_COST_UNIT. */
static bool read_cost(struct str number, int64_t *cost)
{
    double units = strtod(number.p, NULL) * (double)USAGE_COST_UNIT;

    if (units < 0 || units >= (double)COST_MAX)
        return false;
    *cost = (int64_t)(units + 0.5);
    return true;
}

void usage_read(struct usage *u, enum usage_kind kind, struct str value)
{
    int64_t n;

    if (kind == USAGE_COST ? json_type(value) == JSON_NUMBER && read_cost(value, &n)
                           : json_int(value, &n) && n >= 0 && n < COUNT_MAX)
        u->at[kind] = n;
}

void usage_replace(struct usage *u, const struct usage *later)
{
    for (int i = 0; i < USAGE_KINDS; i++)
        if (later->at[i] >= 0)
            u->at[i] = later->at[i];
}

void usage_sum(struct usage *u, const struct usage *more)
{
    for (int i = 0; i < USAGE_KINDS; i++)
        if (u->at[i] < 0)
            u->at[i] = more->at[i];
        else if (more->at[i] > 0 && u->at[i] < INT64_MAX - more->at[i])
            u->at[i] += more->at[i];
}

static void add_value(struct buf *out, int kind, int64_t value)
{
    if (kind != USAGE_COST) {
        buf_addf(out, "%" PRId64, value);
        return;
    }
    buf_addf(out, "%" PRId64 ".%0*" PRId64, value / USAGE_COST_UNIT, COST_DECIMALS,
             value % USAGE_COST_UNIT);
    while (str_ends(buf_str(out), STR("0")))
        buf_truncate(out, out->len - 1);
    if (str_ends(buf_str(out), STR(".")))
        buf_truncate(out, out->len - 1);
}

void usage_add_members(const struct usage *u, struct buf *out)
{
    for (int i = 0; i < USAGE_KINDS; i++) {
        if (i > USAGE_OUTPUT && u->at[i] < 0)
            continue;
        json_add_key(out, names[i]);
        add_value(out, i, u->at[i] < 0 ? 0 : u->at[i]);
    }
}

void usage_add_text(const struct usage *u, struct buf *out)
{
    for (int i = 0; i < USAGE_KINDS; i++) {
        if (i > USAGE_OUTPUT && u->at[i] < 0)
            continue;
        buf_addf(out, "%s%s=", i > 0 ? " " : "", names[i]);
        if (u->at[i] < 0)
            buf_add_c(out, "unknown");
        else
            add_value(out, i, u->at[i]);
    }
}
