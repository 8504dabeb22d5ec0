/*
 * usage - what an answer cost, as its server counted it (chathist(5), `usage`).
 *
 * Tokens that were read from a cache or written to it are part of the input, and those of reasoning
 * are part of the output, whichever way the server counts: OpenAI's totals hold them, Anthropic's
 * do not. They are kept apart beside the totals because each has a price of its own.
 */
#ifndef CHATHIST_BASE_USAGE_H
#define CHATHIST_BASE_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

enum usage_kind {
    USAGE_INPUT,
    USAGE_OUTPUT,
    USAGE_CACHE_READ,
    USAGE_CACHE_WRITE,
    USAGE_REASONING,
    USAGE_COST, /* in the server's unit, mostly US dollars, times USAGE_COST_UNIT */
    USAGE_KINDS
};

#define USAGE_COST_UNIT 1000000000000 /* 12 decimals */

struct usage {
    int64_t at[USAGE_KINDS]; /* -1: the server did not tell */
};

void usage_init(struct usage *u);
/* Did the server tell how many tokens there were? */
bool usage_known(const struct usage *u);
/* Reads a count, or for USAGE_COST an amount, from a JSON value. Another value, a negative one, and
 * one too large to count change nothing. */
void usage_read(struct usage *u, enum usage_kind kind, struct str value);
/* Later counts of the same answer replace earlier ones. */
void usage_replace(struct usage *u, const struct usage *later);
/* Adds the counts of another answer. */
void usage_sum(struct usage *u, const struct usage *more);
/* Adds the members of a JSON object: the tokens of input and output always, 0 when the server did
 * not tell; of the rest what it told. */
void usage_add_members(const struct usage *u, struct buf *out);
/* Adds `input_tokens=12 output_tokens=unknown`, and what else the server told. */
void usage_add_text(const struct usage *u, struct buf *out);

#endif
