/*
 * choose_session - the session that a new message belongs to, and the message about it. The
 * histories were opened by choose_open.
 */
#ifndef CHATHIST_CLI_CHOOSE_SESSION_H
#define CHATHIST_CLI_CHOOSE_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/cli/choose.h"
#include "chathist/history/location.h"
#include "chathist/history/session.h"

/* Chooses the session of a new message in the first history: request.named (-s), else $CHAT_SESSION,
 * else as the other fields of the request and the time-out say. A session that is named and `fresh`
 * becomes current, and ends the program if it has begun already. With `again` the last turn of the
 * session is repeated, and the time-out does not apply. Ends the program on an error.
 *
 * If request.by_digits is set, and this history does not have the session, it is looked for in the
 * other histories of the user. A session with an id that programs generate must not begin here as
 * another one: the user may have it copied into this history, else the program ends. If the id is a
 * name, which two repositories may have, a hint on a terminal says so.
 *
 * Calls choose_tell_place for a new session. */
void choose_session(struct resume *r, struct resume_request request, const struct choice *c,
                    bool again, bool quiet);
/* Called when a session begins. Warns if the history is not that of the enclosing repository, and
 * why, if all its sessions came with the repository, and if an earlier one is kept. */
void choose_tell_place(struct history *h, bool quiet);
/* Makes a session current that the user has named, and remembers that (session_trust). Warns if
 * $CHAT_SESSION overrides the current session. Ends the program on an error. */
void choose_make_current(const struct choice *c, struct history *h, struct str id);
/* The same for a program that continues if it fails. Returns 0, or -1 with *e set. */
int choose_try_current(const struct choice *c, struct history *h, struct str id, struct err *e);
/* Copies a session into the history `to`, with its title, up to the message `at` (see
 * fork_session), and sets *id to the id of the copy and *count to the number of messages in it. If
 * `from` is the same history, that accepts one that is not trusted. Returns 0, or -1 with *e
 * set. */
int choose_copy(struct history *to, struct history *from, struct str session, struct str at,
                struct buf *id, size_t *count, bool quiet, struct err *e);
/* Asks on the terminal whether a session of another history is to be copied into this one, and
 * copies it. Returns 1 and *id; 0 if the user does not want that, or if standard input or error is
 * no terminal; or -1 with *e set. */
int choose_offer_copy(struct history *to, struct history *from, struct str session, struct buf *id,
                      bool quiet, struct err *e);
/* Names what something else, such as another copy of the history, has put into the current session
 * after its mark (session_mark) that changes what a model is sent. Lines with ids in `own` do not
 * count. If the session has a mark, `seen` becomes the id of its newest line. It is printed also
 * with --quiet, because it is printed once. */
void choose_tell_news(const struct history *h, struct str session, const struct hash_map *own,
                      struct buf *seen);

#endif
