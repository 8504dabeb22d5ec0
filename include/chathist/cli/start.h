/*
 * start - the common beginning of the programs: loads the configuration with the flags, locates the
 * history, and chooses the session. These functions end the program on an error.
 */
#ifndef CHATHIST_CLI_START_H
#define CHATHIST_CLI_START_H

#include "chathist/base/hash_map.h"
#include "chathist/cli/config.h"
#include "chathist/cli/options.h"
#include "chathist/history/location.h"
#include "chathist/history/session.h"

/* Returns where the user's histories are, from configuration and environment; borrowed from c. */
struct locate_from start_from(const struct config *c);

/* Loads the configuration, applies the common flags to it and locates the history. Called after
 * opt_next has returned 0. The caller releases both. */
void start_history(struct config *c, struct history *h, const struct opt_common *o);
/* The same for a program that also works without a place for a history. */
void start_history_if_any(struct config *c, struct history *h, const struct opt_common *o);
/* The same for a program that makes no history: calls start_expect. `others`: the program also
 * reads another program's history beside it (history/location.h). */
void start_reader(struct config *c, struct history *h, const struct opt_common *o, bool others);
/* Opens a history file for reading, with a configuration that is loaded; calls start_expect. */
void start_reader_of_file(const struct config *c, struct history *h, const char *file, bool quiet);
/* Ends the program if the history was named by --history or $CHAT_HISTORY and does not exist: the
 * name may be mistyped, and a job that continued would report success. */
void start_expect(const struct history *h);
/* For a program that writes: ends it if the file is not a history (store_check). */
void start_check(struct history *h);
/* Chooses the session of a new message: wish->named (-s), else $CHAT_SESSION, else as the other
 * fields of the wish and the time-out say. A session that is named and `fresh` becomes current, and
 * ends the program if it has begun already. With `again` the last turn of the session is repeated,
 * and the time-out does not apply. Calls start_tell_place for a new session. */
void start_session(struct resume *r, struct resume_wish *wish, const struct config *c,
                   struct history *h, bool again, bool quiet);
/* Called when a session begins. Warns if the history is not that of the enclosing repository, and
 * why, if all its sessions came with the repository, and if an earlier one is kept. */
void start_tell_place(struct history *h, bool quiet);
/* Remembers that the user has named the session, and says so if it came with the repository
 * (session_accept). Returns 0, or -1 with *e set. */
int start_accept(struct history *h, struct str id, bool quiet, struct err *e);
/* Makes a session current that the user has named (start_accept). Warns if $CHAT_SESSION overrides
 * the current session. */
void start_make_current(const struct config *c, struct history *h, struct str id, bool quiet);
/* The same for a program that continues if it fails. Returns 0, or -1 with *e set. */
int start_try_current(const struct config *c, struct history *h, struct str id, bool quiet,
                      struct err *e);
/* Reports how many bad lines of the history were skipped. */
void start_report_bad(const struct history *h, uint64_t bad_lines, bool quiet);
/* Names what something else, such as another copy of the history, has put into the current session
 * after its mark (session_mark) that changes what a model is sent. Lines with ids in `own` do not
 * count. If the session has a mark, `seen` becomes the id of its newest line. It is printed also
 * with --quiet, because it is printed once. */
void start_tell_news(const struct history *h, struct str session, const struct hash_map *own,
                     struct buf *seen);
/* The same for entries of a file that is no history; `-` is standard input. `too_deep`: some are
 * JSON that is nested too deeply. */
void start_report_entries(const char *file, size_t bad, bool too_deep, bool quiet);

#endif
