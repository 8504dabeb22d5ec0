/*
 * stats_overview - what hist-stats shows of a history at a glance: a calendar of the last year, and
 * bars by day, model, tool and cost. On a terminal, or as one HTML page.
 */
#ifndef CHATHIST_CLI_STATS_OVERVIEW_H
#define CHATHIST_CLI_STATS_OVERVIEW_H

#include <stddef.h>

#include "chathist/cli/output.h"
#include "chathist/history/stats.h"

/* The same messages by three keys, sorted. Only the models have prices. */
struct stats_overview {
    struct stats days, models, tools;
    size_t limit; /* rows of each key; 0: 14 days, and 10 of the others */
};

void stats_overview_print(struct out *o, const struct stats_overview *v);
/* Adds the page, which loads nothing and runs nothing. */
void stats_overview_add_html(struct buf *html, const struct stats_overview *v);

#endif
