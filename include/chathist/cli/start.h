/*
 * start - what the configuration says of the place of histories, and reports of what programs skip.
 */
#ifndef CHATHIST_CLI_START_H
#define CHATHIST_CLI_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/config.h"
#include "chathist/history/location.h"

/* Returns where the user's histories are, from configuration and environment; borrowed from c. */
struct locate_from start_from(const struct config *c);

/* Reports how many bad lines of the history were skipped. */
void start_report_bad(const struct history *h, uint64_t bad_lines, bool quiet);
/* The same for entries of a file that is no history; `-` is standard input. `too_deep`: some are
 * JSON that is nested too deeply. */
void start_report_entries(const char *file, size_t bad, bool too_deep, bool quiet);

#endif
