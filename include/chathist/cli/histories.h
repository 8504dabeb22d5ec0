/*
 * histories - the histories that a reader is to look at: the one that is meant, several that were
 * named, or all that are in the register.
 */
#ifndef CHATHIST_CLI_HISTORIES_H
#define CHATHIST_CLI_HISTORIES_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/cli/config.h"
#include "chathist/history/locate.h"

struct histories {
    struct config config;
    struct history *at;
    size_t count, cap;
};

/* `files` are explicit ones, in their order. With `all` those of the register follow, that which
 * was written last first, those that are gone left out. With neither it is the one that
 * start_reader finds. Ends the program if one that was named does not exist, or something else is
 * wrong. */
void histories_open(struct histories *h, char **files, size_t count, bool all, bool quiet);
/* Begins with a history that the caller has located, and takes it over. With `registered` the
 * histories of the register follow. */
void histories_open_beside(struct histories *h, struct history meant, bool registered);
void histories_release(struct histories *h);

#endif
