/*
 * sync/postgres - a history and its copies in a PostgreSQL database.
 *
 * docs/hist-sync.sql describes the tables. Rows are numbered for each role in the order in which
 * they become visible, so a copy asks for the rows after the last number that it has. What a copy
 * and the database have from one another is kept in the database, and each entry has a checksum of
 * the lines that it stands for: a history or a database that was shortened, replaced or restored is
 * compared with the other as a whole, by digests.
 */
#ifndef CHATHIST_SYNC_POSTGRES_H
#define CHATHIST_SYNC_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/sync/sync.h"

/* Returns whether a place is a database: `postgresql://…` or `postgres://…`. */
bool sync_is_postgres(const char *place);

/* Makes or upgrades the tables. Does nothing if they are up to date. Of the job only the place
 * and options.warn are used. */
int sync_postgres_init(const struct sync_job *job, struct err *e);
/* Brings the lines and deletions of the history to the database (job->push), then those of the
 * database to the history (job->pull). */
int sync_postgres(struct sync_job *job, struct err *e);

/* Called with each result, borrowed until it returns. Returns 0, or -1 with *e set, which ends the
 * query. */
typedef int sync_result(void *arg, struct str result, struct err *e);

/* Reads from the database. Of the job the same members are used, and its name; with NULL as name
 * all histories of the user are read. Each returns 0, or -1 with *e set. */

/* Gives the lines that have all of the texts in their content or tool calls, upper and lower case
 * being the same, the newest first, at most `limit`. */
int sync_postgres_search(const struct sync_job *job, const struct str *texts, size_t count,
                         size_t limit, sync_result *give, void *arg, struct err *e);
/* Gives the summaries of the sessions (session_add_json), the last used first, at most `limit`. */
int sync_postgres_sessions(const struct sync_job *job, size_t limit, sync_result *give, void *arg,
                           struct err *e);
/* Gives the lines of a session in their order. The session is an id, else the beginning of exactly
 * one, else the end of exactly one, else `last`. Fails with ERR_ABSENT if no session
 * matches. */
int sync_postgres_show(const struct sync_job *job, struct str session, sync_result *give, void *arg,
                       struct err *e);

#endif
