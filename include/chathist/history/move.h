/*
 * move - sessions from one history of the user to another.
 *
 * The lines are appended to the other history and synced before this one is rewritten without them.
 * A program that is killed in between leaves them in both; moving the sessions again completes it,
 * because a line that the other history has is not appended again.
 */
#ifndef CHATHIST_HISTORY_MOVE_H
#define CHATHIST_HISTORY_MOVE_H

#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/history/location.h"

/* Moves all lines of the sessions that are the keys of the map, byte for byte, and sets *moved to
 * their number. Their ids enter the deletions of `from`, as those of erased lines. A line that was
 * erased from the other history stays, and so does one that is appended meanwhile. A line that was
 * moved away from there gets another id, also where these lines name it: its id stays erased there.
 * If that makes a line longer than BUF_LINE, it stays. A line of a session that is not moved keeps
 * the id that it names: if a line changed, hist-sync would keep both forms of it. Returns 0, or -1
 * with *e set; no line is lost then. */
int history_move(struct history *from, struct history *to, const struct hash_map *sessions,
                 uint64_t *moved, struct err *e);

#endif
