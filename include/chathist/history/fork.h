/*
 * fork - a new session as a copy of another one.
 */
#ifndef CHATHIST_HISTORY_FORK_H
#define CHATHIST_HISTORY_FORK_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

/* Copies the thread of `session` (history/thread) in the history `from`, up to and including the
 * message `at`, into the session `fresh` of the history `to`, which may be the same one. The lines
 * are appended at once: a program that is killed within that may leave the first ones. `at` is an
 * id, a unique beginning of one, or a unique end of 4 characters or more; STR_NONE copies
 * everything. If that message was replaced or reset, the earlier thread is copied. Results of tool
 * calls that follow the message are copied, too.
 *
 * The copies have new ids and times. `forked_from` names the original line, `reply_to` the copied
 * prompt; `replaces` is omitted, like the lines that it names; other fields do not change. *count
 * is the number of copies, *bad_lines that of the bad lines on the way.
 *
 * Returns 0, or -1 with *e set: ERR_ABSENT if the session has no messages or no such message,
 * ERR_FAILURE if several messages match, or if a line has a field of a wrong type. */
int fork_session(struct history *to, struct history *from, struct str session, struct str at,
                 struct str fresh, size_t *count, uint64_t *bad_lines, struct err *e);

#endif
