/*
 * histories - the histories that a program has opened, or all of the user's, and the one of them
 * that has a session. Programs open them with choose_open (choose.h).
 */
#ifndef CHATHIST_CLI_HISTORIES_H
#define CHATHIST_CLI_HISTORIES_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/cli/config.h"
#include "chathist/history/location.h"
#include "chathist/history/session.h"

/* Zero-initialise. */
struct histories {
    struct history *at;
    size_t count, cap;
};

/* Takes over a history. */
void histories_add(struct histories *l, struct history h);
/* Adds the user's own history, in whichever directory the program was started; it may not exist
 * yet. */
void histories_add_own(struct histories *l, const struct config *c);
/* Adds all histories of the user that exist and are not in the list, the last written first. Ends
 * the program if the register cannot be read. */
void histories_add_all(struct histories *l, const struct config *c);
/* Keeps only the histories in whose name (history_name_add) `text` occurs; case does not count.
 * Ends the program if no history is left. */
void histories_restrict(struct histories *l, const char *text);
void histories_release(struct histories *l);

/* Returns the directory of a repository, or another one that has a history; or the file that was
 * given as --history. It lives as long as h. */
struct str history_place(const struct history *h);
/* Adds the name by which people know a history: the directory of its repository, or the file that
 * was given as --history, or the directory of the user's own history. The home directory is written
 * as `~`. The caller makes control characters visible where it prints the name. */
void history_name_add(struct buf *out, const struct history *h);

/* Adds the last part of the name of all[number], with as many parts before it as tell it from the
 * other histories. */
void history_name_add_end(struct buf *out, const struct history *all, size_t count, size_t number);

/* If a history has no message yet, says on a terminal how many others of the user --all reads.
 * Returns whether it said so. */
bool histories_hint_others(const struct history *h, const struct config *c);

/* Looks a session of a history up: with `exact` by its whole id, else as session_resolve does.
 * Returns 0 and *id, or -1 with *e set (ERR_ABSENT if the history has no such session). */
int history_find_session(const struct history *h, struct str name, bool exact, struct buf *id,
                         struct err *e);
/* Finds the session that `name` means in one of the trusted histories from number `first` on: its
 * id, else, unless `exact` is set, a unique beginning or end of it in all of them. Returns 1,
 * *place and *id; 0; or -1 with *e set if several histories have such a session, or one cannot be
 * read. */
int histories_find(const struct histories *l, size_t first, struct str name, bool exact,
                   size_t *place, struct buf *id, struct err *e);

#endif
