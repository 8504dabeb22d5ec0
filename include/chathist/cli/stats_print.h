/*
 * stats_print - what hist-stats prints: records with tabs for a pipe or a file, a chart for a
 * terminal, or JSON.
 */
#ifndef CHATHIST_CLI_STATS_PRINT_H
#define CHATHIST_CLI_STATS_PRINT_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/output.h"
#include "chathist/history/stats.h"

struct stats_wish {
    size_t limit; /* so many rows, of time the newest; (size_t)-1: all */
    int64_t now;  /* µs; the calendar ends with its day, and the time zone is named by it */
    bool json;
};

/* Sorted ones. */
void stats_print(struct out *o, const struct stats *s, const struct stats_wish *w);

#endif
