/*
 * histories - the histories that a program reads: the one of the working directory, several named
 * ones, or all histories of the user.
 */
#ifndef CHATHIST_CLI_HISTORIES_H
#define CHATHIST_CLI_HISTORIES_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/cli/config.h"
#include "chathist/history/location.h"

struct histories {
    struct config config;
    struct history *at;
    size_t count, cap;
};

/* Opens explicit histories in the order of `files`. With `all`, all histories of the user follow
 * that exist, the last written first. With neither, opens the history that start_reader finds, and
 * the foreign ones beside it. Ends the program if a named history does not exist, or on any other
 * error. */
void histories_open(struct histories *h, char **files, size_t count, bool all, bool quiet);
/* Begins with a history that the caller has located, and takes it over. With `all`, all histories
 * of the user follow. */
void histories_open_beside(struct histories *h, struct history first, bool all);
void histories_release(struct histories *h);

/* Adds the name by which people know a history: the directory of its repository, or the file that
 * was given as --history, or the directory of the user's own history. The home directory is written
 * as `~`. The caller makes control characters visible where it prints the name. */
void history_name_add(struct buf *out, const struct history *h);

#endif
