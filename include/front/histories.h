/*
 * histories - the histories that a reader is to look at: the one that is meant, several that were
 * named, or all that are in the register.
 */
#ifndef CHATHIST_FRONT_HISTORIES_H
#define CHATHIST_FRONT_HISTORIES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/config.h"
#include "hist/locate.h"

struct histories {
    struct config config;
    struct history *at;
    size_t count, cap;
};

/* `files` are explicit ones, in their order. With `all` those of the register follow, that which
 * was written last first, those that are gone left out. With neither it is the one that
 * start_reader finds. Says, unless `quiet`, which of them are not there. Ends the program when
 * something is wrong. */
void histories_open(struct histories *h, char **files, size_t count, bool all, bool quiet);
void histories_release(struct histories *h);

#endif
