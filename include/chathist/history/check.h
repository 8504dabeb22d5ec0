/*
 * check - verifies that a history is what chathist(5) describes, and repairs it.
 *
 * A problem is something that repair_run can put right: bad lines, a last line without a newline,
 * files that killed programs left. A warning is something that only the user can judge: references
 * to messages that do not exist, ids that are used twice, permissions.
 */
#ifndef CHATHIST_HISTORY_CHECK_H
#define CHATHIST_HISTORY_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

struct finding {
    bool warning;
    const char *file;
    uint64_t line;     /* counted from 1; 0: the file as a whole */
    struct str reason; /* one line, with control characters made visible */
};

struct check {
    /* Called for each finding; *f is valid during the call. */
    void (*found)(void *arg, const struct finding *f);
    void *arg;
    /* Counts. */
    uint64_t lines, messages, sessions, problems, warnings;
};

/* Reads the whole history and examines the files beside it. Takes no lock, and changes nothing
 * except that an index that does not match the history is removed. The caller sets `found` and
 * `arg`; everything else in *c is zero. A history that does not exist has no lines. Returns 0, or
 * -1 with *e set if the history cannot be read. */
int check_run(struct check *c, const struct history *h, struct err *e);

/* What a repair has done. */
struct repair {
    uint64_t moved;     /* lines, or parts of lines, that were moved to the quarantine */
    uint64_t recovered; /* messages that were found in bad lines */
    uint64_t ended;     /* last lines that got a newline: 0 or 1 */
};

/* Takes the bad lines out of the history without losing a byte: they are moved to the quarantine
 * (history/rewrite.h) unchanged. If a bad line holds whole messages, as when the lines of two
 * writers came onto one line, or after a torn line without a newline, these messages become lines
 * and only the rest is moved. A valid last line without a newline gets one. Also removes the files
 * that killed programs left. Returns 1 if the history was rewritten, 0 if there was nothing to do,
 * or -1 with *e set as by rewrite_run. */
int repair_run(struct repair *r, struct history *h, struct err *e);

#endif
