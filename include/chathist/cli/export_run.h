/*
 * export_run - an export as it was asked for: what is exported, in which format, where to.
 */
#ifndef CHATHIST_CLI_EXPORT_RUN_H
#define CHATHIST_CLI_EXPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/output.h"
#include "chathist/history/location.h"
#include "chathist/convert/export.h"

/* What was asked for; strings are borrowed. */
struct export_job {
    const struct export_format *format;
    const char *output;   /* a file or a directory; NULL: standard output */
    bool directory;       /* a file for each session */
    const char *messages; /* a file of history lines, `-` for standard input; NULL: the history */
    const char *state;    /* --incremental; NULL: not so */
    char **names;         /* of sessions */
    size_t names_count;
    bool all;      /* every session */
    int64_t since; /* only sessions used at this time or later, in microseconds; INT64_MIN: any */
    int64_t until; /* only sessions used at this time or earlier; INT64_MAX: any */
    bool raw, redact, quiet;
};

/* Does it. A failure is printed and ends the program; else what the program's exit status is to be.
 * What went to `out` is still to be flushed. */
int export_run(const struct export_job *job, const struct history *h, struct out *out);

#endif
