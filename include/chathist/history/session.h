/*
 * session - which session is meant: the current pointer, and names.
 */
#ifndef CHATHIST_HISTORY_SESSION_H
#define CHATHIST_HISTORY_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/location.h"
#include "chathist/history/session_list.h"

/* ---- the current session ---- */

/* The id in the pointer file: 1 and *id; 0 when there is none, it is not trusted or not an id; -1.
 * *since (may be NULL) is when it was made current (µs): the pointer file's modification time. */
int session_current(const struct history *h, struct buf *id, int64_t *since, struct err *e);
/* Writes the pointer, making the directory when needed (see history_enter). -1: ERR_USAGE for an id
 * that id_session_valid does not take, such as another client may have made. */
int session_make_current(struct history *h, struct str id, struct err *e);
/* Has a session been idle for longer than timeout_ms at `now` (µs), counted from the later of
 * its last line and `since`? 1, 0, -1. A last line whose time cannot be read does not count; a
 * clock that was set back makes nothing expire. */
int session_expired(const struct history *h, struct str id, int64_t since, int64_t timeout_ms,
                    int64_t now, struct err *e);
/* The session that was used last: the session of the last valid line. Where several worktrees share
 * the history, the current session of this worktree, if it has one. 1 and *id, 0 if there is none,
 * -1. */
int session_last(const struct history *h, struct buf *id, struct err *e);

/* Is it the id of a session that has lines, or of the current session, which may have none yet? 1,
 * 0, -1. */
int session_exists(const struct history *h, struct str id, struct err *e);
/* A reader's session argument: `current`, `last` (both names are reserved), an id, else a unique
 * prefix, else a unique suffix of 4 characters or more. 0 and *id; -1: ERR_ABSENT when there is
 * none, ERR_FAILURE when it is ambiguous (the message names some candidates). The current
 * session is found even before its first message, by its whole id and as `current`. */
int session_resolve(const struct history *h, struct str name, struct buf *id, struct err *e);

#endif
