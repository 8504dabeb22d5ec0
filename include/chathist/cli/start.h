/*
 * start - what every program begins with: the configuration with its flags, and the history that is
 * meant.
 *
 * The layer front joins cli and hist (and, for chat, llm) for the programs in cmd/. Like them it
 * ends the program when something is wrong.
 */
#ifndef CHATHIST_CLI_START_H
#define CHATHIST_CLI_START_H

#include "chathist/cli/config.h"
#include "chathist/cli/options.h"
#include "chathist/history/location.h"
#include "chathist/history/resume.h"

/* Where the user's histories are, by configuration and environment; borrowed from c. */
struct locate_from start_from(const struct config *c);

/* Loads the configuration, puts the common flags over it and locates the history. Call after
 * opt_next gave 0. The caller releases both. */
void start_history(struct config *c, struct history *h, const struct opt_common *o);
/* The same for one that works without a place for a history, too. */
void start_history_if_any(struct config *c, struct history *h, const struct opt_common *o);
/* The same for a program that makes no history: start_expect. */
void start_reader(struct config *c, struct history *h, const struct opt_common *o);
/* Like start_reader, for a program that also reads h->foreign (hist/locate). */
void start_reader_of_several(struct config *c, struct history *h, const struct opt_common *o);
/* Ends the program if the history was named by --history or $CHAT_HISTORY and does not exist: the
 * name may be mistyped, and a job that goes on would report success. */
void start_expect(const struct history *h);
/* The session that a new message goes to: `named` (-s) or $CHAT_SESSION, else as the wish's flags
 * and the time-out say; `again`: its last turn is meant, which no time-out ends. Says so when a
 * directory's own pointer is not trusted. */
void start_session(struct resume *r, struct resume_wish *wish, const struct config *c,
                   const struct history *h, bool again, bool quiet);
/* Tells the user, when a session begins, why the history is not that of the enclosing repository,
 * and that an earlier history of the repository is kept. */
void start_tell_place(const struct history *h, bool quiet);
/* Makes a session current that the user has named, which accepts a history that is not trusted. Says
 * so if $CHAT_SESSION overrides it all the same. */
void start_make_current(const struct config *c, struct history *h, struct str id, bool quiet);
/* The same for a program that goes on when it fails: 0, -1. */
int start_try_current(const struct config *c, struct history *h, struct str id, bool quiet,
                      struct err *e);
/* Reports bad lines that were met, once: "skipped N bad lines". */
void start_report_bad(const struct history *h, uint64_t bad_lines, bool quiet);
/* The same of entries of a file that is no history; `-` is standard input. `too_deep`: some are
 * JSON that is nested too deeply. */
void start_report_entries(const char *file, size_t bad, bool too_deep, bool quiet);

#endif
