/*
 * stats_output - prints the counts of hist-stats: records with tabs for a pipe or a file, a chart
 * for a terminal, or JSON.
 */
#ifndef CHATHIST_CLI_STATS_OUTPUT_H
#define CHATHIST_CLI_STATS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/output.h"
#include "chathist/history/stats.h"

struct stats_form {
    size_t limit; /* the most rows to print, of times the newest; (size_t)-1: all */
    int64_t now;  /* microseconds; the local time zone at this time is named */
    bool json;
};

/* Prints counts that stats_sort has sorted. */
void stats_print(struct out *o, const struct stats *s, const struct stats_form *f);

#endif
