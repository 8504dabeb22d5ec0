/*
 * export_run - performs one export of hist-export: selects messages, converts them, and writes the
 * output. Files are created with mode 0600; only regular files are replaced or appended to.
 */
#ifndef CHATHIST_CLI_EXPORT_RUN_H
#define CHATHIST_CLI_EXPORT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/cli/choose.h"
#include "chathist/cli/output.h"
#include "chathist/history/location.h"
#include "chathist/convert/export.h"

/* The options of an export; strings are borrowed. */
struct export_job {
    const struct export_format *format;
    const char *output;   /* a file or a directory; NULL: standard output */
    bool directory;       /* a file for each session */
    const char *messages; /* a file of history lines, `-` for standard input; NULL: the history */
    const char *state;    /* --incremental, or NULL */
    struct choice choice; /* opened */
    bool all;             /* every session that is chosen; else only the named ones */
    bool raw, redact;
};

/* Performs the export. Returns the exit status of the program; the caller flushes `out`. Prints a
 * failure and ends the program. */
int export_run(struct export_job *job, const struct history *h, struct out *out);
/* The same for every trusted history of the choice: the output and the state, if they are given,
 * are directories with one entry for each, which has the name of the history (history_name_add)
 * with `%` for each slash. */
int export_run_all(struct export_job *job, struct out *out);

#endif
