/*
 * show - a session's messages for people: the same bytes to a pipe and to a file, made safe on a
 * terminal.
 */
#ifndef CHATHIST_FRONT_SHOW_H
#define CHATHIST_FRONT_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term.h"
#include "hist/filter.h"
#include "hist/locate.h"
#include "hist/thread.h"

/* How much is shown. */
struct show {
    uint64_t
        bad_lines; /* out: the bad lines met, to be reported once; the same ones for each session */
    bool json;     /* stored lines */
    bool raw;      /* every line, replaced and reset ones too */
    size_t last;   /* of those the last N; (size_t)-1: all */
    struct filter filter; /* only messages that it lets through; the caller releases it */
};

/* Prints a session's thread. Ends the program when it cannot be read. Returns how many messages it
 * holds. */
size_t show_session(struct out *o, const struct history *h, const char *id, struct show *s);

#endif
