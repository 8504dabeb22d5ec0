/*
 * stats_chart - counts for a terminal: what there is, the calendar, and a bar for each row, all
 * fitted to its width.
 */
#ifndef CHATHIST_CLI_STATS_CHART_H
#define CHATHIST_CLI_STATS_CHART_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/output.h"
#include "chathist/history/stats.h"

/* What a row is called for people; borrowed. */
struct str stats_key(const struct stats_row *row);
/* Prints the totals of s, and of its rows the `count` at `at`. */
void stats_chart_print(struct out *o, const struct stats *s, const struct stats_row *at,
                       size_t count, int64_t now);

#endif
