/*
 * check - is a history what chathist(5) says? Reads all of it, with the files beside it, and tells
 * what is wrong.
 *
 * A problem is something that hist/mend or hist/rewrite can put right: bad lines, a last line
 * without its end, files that were left behind. A warning is something that only the user can
 * judge: names that lead nowhere, ids that come twice, rights. Changes nothing and takes no lock.
 */
#ifndef CHATHIST_HISTORY_CHECK_H
#define CHATHIST_HISTORY_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/locate.h"

struct finding {
    bool warning;
    const char *file;
    uint64_t line;     /* counted from 1; 0: the file as a whole */
    struct str reason; /* made visible, on one line */
};

struct check {
    void (*found)(void *arg, const struct finding *f); /* told of each; what is borrowed dies with
                                                        * the call */
    void *arg;
    /* Counted. */
    uint64_t lines, messages, sessions, problems, warnings;
};

/* Checks. c has `found` and `arg`, all else zero. A history that does not exist has no lines. 0,
 * -1. */
int check_run(struct check *c, const struct history *h, struct err *e);

#endif
