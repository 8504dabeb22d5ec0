/*
 * calendar - a year of activity for a terminal: a column for each week, a row for each day of it,
 * five shades. They are shades without colour, too.
 */
#ifndef CHATHIST_CLI_CALENDAR_H
#define CHATHIST_CLI_CALENDAR_H

#include <stdint.h>

#include "chathist/cli/output.h"
#include "chathist/history/stats.h"

/* Prints the weeks up to that of `last` (counted in days from 1970-01-01), a year of them, or as
 * many as fit; nothing when no message is in them or not even a few fit. */
void calendar_print(struct out *o, const struct stats_table *days, int64_t last);

#endif
