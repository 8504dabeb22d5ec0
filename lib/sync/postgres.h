/*
 * postgres - a connection to a PostgreSQL server. The only code that calls libpq.
 *
 * libpq finds what the user does not write into the connection string as psql does: in PGHOST,
 * PGUSER, PGSERVICE and the other variables, in ~/.pgpass and in ~/.pg_service.conf
 * (https://www.postgresql.org/docs/current/libpq-connect.html). No message has the connection
 * string, because it may have a password.
 *
 * If the program is killed, the server undoes the transaction. Errors have the kinds of a model
 * server's: ERR_AUTH, ERR_NETWORK, ERR_TIMEOUT, ERR_BUSY if the server is at fault and another
 * attempt may succeed, ERR_USAGE if the database has no tables of hist-sync or cannot have them.
 */
#ifndef SYNC_POSTGRES_H
#define SYNC_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

struct pg;

/* Called with each warning of the server; may be NULL. */
typedef void pg_warn(void *arg, const char *message);

/* Connects to the server of a URI `postgresql://…` or `postgres://…`, or to the first one that
 * answers if the URI has several: with `write` to the first that can be written to, else to one as
 * the URI's target_session_attrs asks for. The text is UTF-8 in both directions. Returns NULL with
 * *e set. */
struct pg *pg_open(const char *place, bool write, pg_warn *warn, void *arg, struct err *e);
/* After an error: returns whether the server has ended, or can no longer be written to, and the URI
 * has others, one of which may take its place. */
bool pg_can_fail_over(const struct pg *p);
/* Frees it; NULL is allowed. A transaction that is open is undone. */
void pg_close(struct pg *p);

/* Called with the values of a row, absent ones for NULL, borrowed until it returns. Returns 0, or
 * -1 with *e set, which ends the query. */
typedef int pg_row(void *arg, const struct str *value, struct err *e);
/* Begins a transaction that uses the tables of hist-sync. It first checks that they belong to a
 * role that may be trusted ($trust$ in docs/hist-sync.sql), without using them, and fails with
 * ERR_USAGE if they do not. */
int pg_begin(struct pg *p, struct err *e);
int pg_commit(struct pg *p, struct err *e);
/* Runs one command with `count` parameters $1, $2, …, and calls `row` (may be NULL) for each row of
 * the result as it arrives. Outside of a transaction of pg_begin it begins and commits one. Returns
 * 0, or -1 with *e set. */
int pg_query(struct pg *p, const char *sql, const struct str *parameter, size_t count, pg_row *row,
             void *arg, struct err *e);
/* Runs commands without parameters, as one transaction if they begin none. Commands that use the
 * tables are run after pg_begin. */
int pg_run(struct pg *p, const char *sql, struct err *e);
/* Runs `COPY … FROM STDIN` with this data. */
int pg_copy(struct pg *p, const char *sql, struct str data, struct err *e);

/* ---- the tables of hist-sync ---- */

/* docs/hist-sync.sql, and the version that it makes. */
extern const char sync_sql[];
#define SYNC_SQL_VERSION 2
struct sync_job;
/* Connects to the place of a job to read, and checks that the tables have this version. Returns NULL
 * with *e set. */
struct pg *pg_open_ready(const struct sync_job *job, struct err *e);

/* ---- values ---- */

/* Numbers in results and for parameters. */
int64_t pg_number(struct str value);
void pg_add_number(struct buf *out, int64_t n);
/* Adds a text to the parameter of a text[]; pg_array_end ends it. */
void pg_array_add(struct buf *array, struct str text);
void pg_array_end(struct buf *array);

#endif
