/*
 * remote - the option --remote: sessions and messages of the user's database, read like those of a
 * history on this machine.
 *
 * Only hist-sync speaks to databases. These functions run it, without a place: it takes the setting
 * `remote`. The lines that it prints go to a temporary file of the user, which is opened as the one
 * history of the choice and removed when the program ends. hist-sync reports its failures itself;
 * then the program ends with the exit status of hist-sync.
 */
#ifndef CHATHIST_CLI_REMOTE_H
#define CHATHIST_CLI_REMOTE_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/cli/choose.h"
#include "chathist/history/session_list.h"

/* Each of these is called in the place of choose_open. They end the program if --remote is combined
 * with options that choose several histories, or with --repo. */

/* Opens a history of the named sessions, or without names of the session `otherwise` (may be NULL).
 * As without --remote, they are found in all of the user's histories, but `last` is a session of
 * this one. An absent session ends the program. */
void remote_open_sessions(struct choice *c, const char *otherwise);
/* Opens a history of the messages that have all of the texts in their content or tool calls, upper
 * and lower case being the same; only the newest `limit`. If sessions are named it has these
 * sessions, with all of their messages. */
void remote_open_matches(struct choice *c, const struct str *texts, size_t count, size_t limit);
/* Opens an empty history, and lists the sessions of the database, the last used first, at most
 * `limit`. The caller releases the list. */
void remote_open_list(struct choice *c, struct session_list *l, size_t limit);

#endif
