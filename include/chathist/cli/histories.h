/*
 * histories - all histories of the user: those of an option such as --all, and the one that has a
 * session which the present history does not have.
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
/* Adds all histories of the user that exist and are not in the list, the last written first. Ends
 * the program if the register cannot be read. */
void histories_add_all(struct histories *l, const struct config *c);
/* Keeps only the histories in whose name (history_name_add) `text` occurs; case does not count.
 * Ends the program if there is none. */
void histories_restrict(struct histories *l, const char *text);
void histories_release(struct histories *l);

/* Adds the name by which people know a history: the directory of its repository, or the file that
 * was given as --history, or the directory of the user's own history. The home directory is written
 * as `~`. The caller makes control characters visible where it prints the name. */
void history_name_add(struct buf *out, const struct history *h);

/* If a history has no message yet, says on a terminal how many others of the user --all reads. */
void histories_hint_others(const struct history *h, const struct config *c);

/* Looks a session of a history up: with `exact` by its whole id, else as session_resolve does.
 * Returns 0 and *id, or -1 with *e set (ERR_ABSENT if the history has no such session). */
int history_look_up(const struct history *h, struct str name, bool exact, struct buf *id,
                    struct err *e);
/* Finds the session that `name` means in one of the trusted histories from number `first` on: its
 * id, else, unless `exact` is set, a unique beginning or end of it in all of them. Returns 1,
 * *place and *id; 0; or -1 with *e set if several histories have such a session, or one cannot be
 * read. */
int histories_find(const struct histories *l, size_t first, struct str name, bool exact,
                   size_t *place, struct buf *id, struct err *e);

/* Copies a session into the history `to`, with its title, up to the message `at` (see
 * fork_session), and sets *id to the id of the copy and *count to the number of messages in it. If
 * `from` is the same history, that accepts one that is not trusted. Returns 0, or -1 with *e
 * set. */
int histories_fork(struct history *to, struct history *from, struct str session, struct str at,
                   struct buf *id, size_t *count, bool quiet, struct err *e);
/* Asks on the terminal whether a session of another history is to be copied into this one, and
 * copies it. Returns 1 and *id; 0 if the user does not want that, or if standard input or error is
 * no terminal; or -1 with *e set. */
int histories_offer(struct history *to, struct history *from, struct str session, struct buf *id,
                    bool quiet, struct err *e);

/* Looks for the session of chat -s, if this history does not have it, in the other histories of the
 * user. If one has a session of that id, which programs generate, it must not begin here as another
 * one: the user may have it copied into this history, else the program ends. If the id is a name,
 * which two repositories may have, a hint on a terminal says so. Returns the id of the copy, which
 * the caller frees, or NULL. */
char *histories_seek(const struct resume_wish *wish, const struct config *c, struct history *h,
                     bool quiet);

#endif
