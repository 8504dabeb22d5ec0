/*
 * remote - the option --remote of choose: sessions and messages of the user's database, read like
 * those of a history on this machine.
 *
 * Only hist-sync speaks to databases. These functions run it, without a place: it uses the setting
 * `remote`. It reports its failures itself, and then they end the program with its exit status.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/cli/options.h"
#include "chathist/history/session_list.h"

/* Of which history the database is read; strings are borrowed. */
struct remote {
    const char *history; /* --history; NULL: that of this place */
    bool all, quiet;
    size_t limit; /* only this many of the newest; SIZE_MAX: all */
};

/* Adds the lines of a named session. As without --remote, it is found in all of the user's
 * histories, but `last` is a session of this one. The name becomes exact. */
void remote_session(const struct remote *r, struct buf *name, bool *exact, struct buf *lines);
/* Adds the messages that have all of the texts in their content or tool calls, upper and lower case
 * being the same, the oldest first. */
void remote_matches(const struct remote *r, const struct arg_list *texts, struct buf *lines);
/* Lists the sessions, the last used first. `now` is in microseconds. The caller releases the
 * list. */
void remote_list(const struct remote *r, struct session_list *l, int64_t now);
/* Writes lines into a temporary file, to be removed when the program ends. Returns its path.
 * Called once. */
const char *remote_store(struct str lines);

#endif
