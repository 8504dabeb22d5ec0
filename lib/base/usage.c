#include "chathist/base/usage.h"

#include <inttypes.h>

#include "chathist/base/json.h"

/* Every JSON reader handles numbers up to this one exactly. */
#define COUNT_MAX ((int64_t)1 << 53)
/* The largest cost of an answer; a sum of int64_t holds nine of them. */
#define COST_MAX 1000000
/* A tick of xAI, as a part of AMOUNT_UNIT. */
#define TICK 100

static const char *const names[USAGE_KINDS] = {
    [USAGE_INPUT] = "input_tokens",
    [USAGE_OUTPUT] = "output_tokens",
    [USAGE_CACHE_READ] = "cache_read_tokens",
    [USAGE_CACHE_WRITE] = "cache_write_tokens",
    [USAGE_REASONING] = "reasoning_tokens",
    [USAGE_COST] = "cost",
    [USAGE_LONG_CACHE_WRITE] = "long_cache_write_tokens",
};

void usage_init(struct usage *u)
{
    *u = (struct usage){.summed = false};
    for (int i = 0; i < USAGE_KINDS; i++)
        u->at[i] = -1;
}

bool usage_known(const struct usage *u)
{
    for (int i = 0; i < USAGE_KINDS; i++)
        if (u->at[i] >= 0)
            return true;
    return false;
}

bool usage_complete(const struct usage *u)
{
    return u->at[USAGE_INPUT] >= 0 && u->at[USAGE_OUTPUT] >= 0;
}

int64_t usage_cached(const struct usage *u)
{
    return (u->at[USAGE_CACHE_READ] > 0 ? u->at[USAGE_CACHE_READ] : 0) +
           (u->at[USAGE_CACHE_WRITE] > 0 ? u->at[USAGE_CACHE_WRITE] : 0);
}

void usage_read(struct usage *u, enum usage_kind kind, struct str value)
{
    struct amount cost;
    int64_t n;

    if (kind != USAGE_COST) {
        if (json_int(value, &n) && n >= 0 && n < COUNT_MAX)
            u->at[kind] = n;
    } else if (json_type(value) == JSON_NUMBER && amount_read(&cost, value) &&
               cost.whole < COST_MAX) {
        u->at[kind] = (int64_t)(cost.whole * AMOUNT_UNIT + cost.part);
    }
}

/* Returns a cost, or -1 for another value. */
static int64_t cost_of(struct str value)
{
    struct usage u;

    usage_init(&u);
    usage_read(&u, USAGE_COST, value);
    return u.at[USAGE_COST];
}

void usage_read_cost(struct usage *u, struct str usage)
{
    struct str cost = json_get(usage, "cost");
    int64_t gateway = cost_of(json_get(usage, "response_cost")), ticks;

    if (gateway > 0)
        u->at[USAGE_COST] = gateway;
    if (json_int(json_get(usage, "cost_in_usd_ticks"), &ticks) && ticks >= 0 &&
        ticks < COST_MAX * (AMOUNT_UNIT / TICK))
        u->at[USAGE_COST] = ticks * TICK;
    usage_read(u, USAGE_COST, json_get(cost, "total_cost"));
    usage_read(u, USAGE_COST, cost);
    if (cost_of(cost) >= 0 && json_is_true(json_get(usage, "is_byok"))) {
        int64_t own = cost_of(json_get(json_get(usage, "cost_details"), "upstream_inference_cost"));

        u->at[USAGE_COST] += own > 0 ? own : 0;
    }
}

void usage_read_members(struct usage *u, struct str object)
{
    for (int i = 0; i < USAGE_KINDS; i++)
        usage_read(u, (enum usage_kind)i, json_get(object, names[i]));
}

void usage_replace(struct usage *u, const struct usage *later)
{
    for (int i = 0; i < USAGE_KINDS; i++)
        if (later->at[i] >= 0)
            u->at[i] = later->at[i];
}

void usage_sum(struct usage *u, const struct usage *more)
{
    bool first = !u->summed && !usage_known(u);

    u->partial = u->partial || more->partial || !usage_complete(more);
    u->cost_partial = u->cost_partial || more->cost_partial ||
                      (!first && (u->at[USAGE_COST] < 0) != (more->at[USAGE_COST] < 0));
    u->summed = true;
    for (int i = 0; i < USAGE_KINDS; i++)
        if (u->at[i] < 0)
            u->at[i] = more->at[i];
        else if (more->at[i] > 0 && u->at[i] < INT64_MAX - more->at[i])
            u->at[i] += more->at[i];
    if (u->cost_partial)
        u->at[USAGE_COST] = -1;
}

struct amount usage_cost(const struct usage *u)
{
    uint64_t cost = u->at[USAGE_COST] > 0 ? (uint64_t)u->at[USAGE_COST] : 0;

    return (struct amount){cost / AMOUNT_UNIT, cost % AMOUNT_UNIT};
}

static void add_usage_value(struct buf *out, const struct usage *u, int kind)
{
    if (kind == USAGE_COST)
        amount_add_text(out, usage_cost(u));
    else
        buf_addf(out, "%" PRId64, u->at[kind]);
}

void usage_add_members(const struct usage *u, struct buf *out)
{
    for (int i = 0; i < USAGE_KINDS; i++) {
        if (u->at[i] < 0)
            continue;
        json_add_key(out, names[i]);
        add_usage_value(out, u, i);
    }
}

void usage_add_object(const struct usage *u, struct str raw, struct buf *out)
{
    buf_add_byte(out, '{');
    usage_add_members(u, out);
    if (raw.n > 0) {
        json_add_key(out, "raw");
        json_add_compact(out, raw);
    }
    buf_add_byte(out, '}');
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
            add_usage_value(out, u, i);
    }
    if (u->cost_partial)
        buf_add_c(out, " cost=unknown");
}
