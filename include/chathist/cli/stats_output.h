/*
 * stats_output - prints the counts of hist-stats: as records for a pipe, the same in columns with
 * bars on a terminal, or as one JSON object.
 */
#ifndef CHATHIST_CLI_STATS_OUTPUT_H
#define CHATHIST_CLI_STATS_OUTPUT_H

#include "chathist/cli/choose.h"
#include "chathist/cli/output.h"
#include "chathist/history/stats.h"

/* Prints at most c->limit rows (0: all); of days, weeks and months the newest. */
void stats_print(struct out *o, const struct stats *s, const struct choice *c);

#endif
