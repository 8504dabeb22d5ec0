/*
 * history_name - the name that people know a history by.
 */
#ifndef CHATHIST_CLI_HISTORY_NAME_H
#define CHATHIST_CLI_HISTORY_NAME_H

#include "chathist/base/buf.h"
#include "chathist/history/locate.h"

/* Adds the directory of the repository that the history belongs to, or the file that was given as
 * --history, or the directory of the user's own history. The home directory is written as `~`. The
 * caller makes control characters visible where it prints the name. */
void history_name_add(struct buf *out, const struct history *h);

#endif
