/*
 * suite - what the program `chathist` prints: the programs of the suite, and where everything is.
 */
#ifndef CHATHIST_CHAT_SUITE_H
#define CHATHIST_CHAT_SUITE_H

#include <stdbool.h>

#include "chathist/cli/config.h"
#include "chathist/cli/output.h"
#include "chathist/history/location.h"

/* Prints the programs with a line each, or as JSON lines. */
void suite_list(struct out *out, bool json);
/* Prints where the history, the current session, the configuration and the model server are, with
 * sizes and versions, as lines or as one JSON object. No key and no password is printed, only where
 * the key comes from. */
void suite_report(struct out *out, const struct config *c, const struct history *h, bool json);

#endif
