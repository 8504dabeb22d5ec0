/*
 * session_match - the sessions of a history that the options of choose.h select: by name, the time
 * of their last use, the role or model of a message, or a query (search/query.h). A session meets
 * a query if one of its messages does, or, if the query has only words, its title.
 */
#ifndef CHATHIST_CLI_SESSION_MATCH_H
#define CHATHIST_CLI_SESSION_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/cli/choose.h"
#include "chathist/history/location.h"
#include "chathist/history/session_list.h"

/* Sets the query of --match, and ends the program if it is bad or empty. */
void session_match_query(struct choice *c, const char *query);
/* After a query without a session: sets *asked to the query with other forms of its words
 * (search/forms.h), empty without any, and *said to what that does. Not for a program that
 * deletes. Returns 0, or -1 with *e set. */
int session_match_forms(const struct choice *c, struct buf *asked, struct buf *said, struct err *e);
/* Clears the marks of the sessions of a list that are not selected; their names are not compared.
 * `h` may be NULL if neither roles, models nor a query are given. Returns 0, or -1 with *e set. */
int session_match_mark(const struct choice *c, const struct session_list *l, bool *marked,
                       const struct history *h, struct err *e);
/* Lists the sessions of a history that are selected, the last used first, at most `limit`. With
 * `id`, only those whose id begins, or else ends, with it, or else those of which it begins the
 * digits at the end. Returns 0, or -1 with *e set. */
int session_match_list(struct choice *c, struct session_list *l, const struct history *h,
                       const char *id, size_t limit, struct err *e);

#endif
