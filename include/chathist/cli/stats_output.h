/*
 * stats_output - prints the counts of hist-stats: as records for a pipe, the same in columns with
 * bars on a terminal, where times begin with the newest, or as one JSON object.
 */
#ifndef CHATHIST_CLI_STATS_OUTPUT_H
#define CHATHIST_CLI_STATS_OUTPUT_H

#include "chathist/cli/choose.h"
#include "chathist/cli/output.h"
#include "chathist/history/stats.h"

/* Adds a number: all of its digits, or on a terminal, if it is long, rounded: `15.7M`. */
void stats_add_figure(struct buf *out, const struct out *o, uint64_t n);
/* Returns whether rows count calls instead of messages. */
bool stats_counts_calls(const struct stats *s);
/* Returns the i-th row of those that are shown to people: the newest or the largest is the first. */
const struct stats_row *stats_row_shown(const struct stats *s, size_t i);
/* Returns what the answers of a row cost in one currency, for the length of a bar. */
double stats_row_cost(const struct stats_row *row, size_t currency);
/* Prints the largest or newest `limit` rows on a terminal, without the totals: their costs, or the
 * messages and tokens. */
void stats_print_rows(struct out *o, const struct stats *s, size_t limit, bool costs);

/* Prints at most c->limit rows (0: all); of days, weeks and months the newest. */
void stats_print(struct out *o, const struct stats *s, const struct choice *c);

#endif
