/*
 * session_match - the sessions that meet a query (search/query.h): one message of the session meets
 * it, or, if the query has only words, the title.
 */
#ifndef CHATHIST_CLI_SESSION_MATCH_H
#define CHATHIST_CLI_SESSION_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/session_summary.h"

/* Clears the marks of the sessions of a history that do not meet the query. Its times count from
 * `now`, in microseconds. Returns 0, or -1 with *e set (ERR_USAGE for a bad query). */
int session_match_mark(const char *query, int64_t now, const struct session_list *l, bool *marked,
                       const struct history *h, struct err *e);
/* Removes the sessions that do not meet the query from the list. Returns as session_match_mark. */
int session_match_restrict(const char *query, int64_t now, struct session_list *l,
                           const struct history *h, struct err *e);
/* Returns 0, or -1 with *e set to ERR_USAGE if the query is bad or empty. */
int session_match_check(const char *query, struct err *e);

#endif
