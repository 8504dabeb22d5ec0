/*
 * fork - a new session that begins as another one did.
 */
#ifndef CHATHIST_HISTORY_FORK_H
#define CHATHIST_HISTORY_FORK_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/location.h"

/* Copies the thread of `session` (hist/thread) up to and with the message `at` (its id, else a
 * unique beginning of it, else a unique end of 4 characters or more; STR_NONE: all of it) into the
 * session `fresh`, all lines or none. Of a message that was replaced or reset, it is the thread as
 * it was until then. Results of calls that stand behind that message go with it.
 * The copies have ids and times of their own; `forked_from` names the line that each is a copy of,
 * `reply_to` the copied prompt, `replaces` is left out as are the lines that it names, all else is
 * as it was. *count: how many there are. -1: ERR_ABSENT when the session has no messages or none
 * that is called so, ERR_FAILURE when several are, or a line has a field of a wrong type, which
 * cannot be written. */
int fork_session(struct history *h, struct str session, struct str at, struct str fresh,
                 size_t *count, uint64_t *bad_lines, struct err *e);

#endif
