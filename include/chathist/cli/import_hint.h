/*
 * import_hint - says once, on a terminal, that conversations with other programs belong to the
 * repository in which the user works, and how to bring them here.
 */
#ifndef CHATHIST_CLI_IMPORT_HINT_H
#define CHATHIST_CLI_IMPORT_HINT_H

#include "chathist/cli/choose.h"

/* Looks for them with hist-import, until the user was told or has run a scan; at most once a day,
 * if there are none. For the end of a program, after choose_open. */
void import_hint(const struct choice *c);

#endif
