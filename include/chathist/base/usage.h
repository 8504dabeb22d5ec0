/*
 * usage - the tokens and cost of a response, as its server counted them (chathist(5), `usage`).
 *
 * Tokens read from a cache or written to it are part of the input, and reasoning tokens are part of
 * the output, however the server counts: OpenAI's totals include them, Anthropic's do not. They are
 * also stored separately, because each kind has its own price.
 */
#ifndef CHATHIST_BASE_USAGE_H
#define CHATHIST_BASE_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/amount.h"
#include "chathist/base/buf.h"

enum usage_kind {
    USAGE_INPUT,
    USAGE_OUTPUT,
    USAGE_CACHE_READ,
    USAGE_CACHE_WRITE,
    USAGE_LONG_CACHE_WRITE, /* of USAGE_CACHE_WRITE, what stays for an hour or longer */
    USAGE_REASONING,
    USAGE_COST, /* in the server's unit, mostly US dollars, times AMOUNT_UNIT */
    USAGE_KINDS
};

struct usage {
    int64_t at[USAGE_KINDS]; /* -1: unknown */
    bool summed;             /* it is the sum of at least one response */
    bool partial;            /* the input or the output of some of them is unknown */
    bool cost_partial;       /* the cost of some of them is known, so that of all is not */
};

void usage_init(struct usage *u);
/* Returns true if the server reported a number of tokens or a cost. */
bool usage_known(const struct usage *u);
/* Returns true if it reported the tokens of the input and those of the output. */
bool usage_complete(const struct usage *u);
/* Returns the tokens read from a cache and written to it, 0 where they are unknown. */
int64_t usage_cached(const struct usage *u);
/* Returns the cost that the server reported, or 0. */
struct amount usage_cost(const struct usage *u);
/* Reads a count, or an amount for USAGE_COST, from a JSON value. Anything but a number that is not
 * negative, not too large and, for a count, an integer, changes nothing: it is unknown. */
void usage_read(struct usage *u, enum usage_kind kind, struct str value);
/* Reads the cost from the object in which a server reports its usage: `cost` of OpenRouter
 * ("Usage Accounting"; with a key of the user's own it is the fee, and what the provider charged is
 * beside it), `cost.total_cost` of Perplexity, `cost_in_usd_ticks` of xAI
 * (docs.x.ai/developers/cost-tracking: 10^10 of them are a dollar), and `response_cost` of LiteLLM,
 * 0 for a model without a known price. */
void usage_read_cost(struct usage *u, struct str usage);
/* Reads the members that usage_add_members writes. */
void usage_read_members(struct usage *u, struct str object);
/* Replaces earlier counts of the same response by later ones. */
void usage_replace(struct usage *u, const struct usage *later);
/* Adds the counts of another response. A sum of tokens is that of the known ones; the cost is
 * unknown if that of one response is. */
void usage_sum(struct usage *u, const struct usage *more);
/* Adds the members of a JSON object: the counts that are known. */
void usage_add_members(const struct usage *u, struct buf *out);
/* Adds the object that the history stores: the known counts, and then as its member `raw` what the
 * server itself reported, JSON or empty. */
void usage_add_object(const struct usage *u, struct str raw, struct buf *out);
/* Adds `input_tokens=12 output_tokens=unknown`, and the other counts if they are known,
 * and `cost=unknown` if that of only some responses is known. */
void usage_add_text(const struct usage *u, struct buf *out);

#endif
