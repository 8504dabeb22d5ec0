/*
 * thread - the messages of one session as a conversation.
 *
 * Order is the file's. A line named in a later line's `replaces` is left out; a system line with
 * `reset` drops all before it and stays itself; a line that names an earlier prompt in `reply_to`
 * stands with that prompt's turn, before the next prompt (two turns that ran at once are told
 * apart), every other one with the prompt before it. All of this is honoured within the session
 * only, and a name that leads nowhere changes nothing.
 */
#ifndef CHATHIST_HISTORY_THREAD_H
#define CHATHIST_HISTORY_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/err.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"

struct thread {
    struct message *at; /* each with a line of its own */
    size_t count;
    char **lines; /* private: the memory behind them */
    size_t lines_count;
    size_t cap, lines_cap;
    uint64_t all;       /* lines of the session in the file, replaced and reset ones included */
    uint64_t bad_lines; /* bad lines that were parsed on the way */
};

/* Loads a session's thread by reading the whole history; `raw`: every line, in file order. A
 * session without lines gives an empty thread. On failure there is nothing to release. */
int thread_load(struct thread *t, int dir, const char *history_path, struct str session_id,
                bool raw, struct err *e);
/* The same for one whose lines are known to lie from `first`, the beginning of a line, to `end`,
 * behind one (hist/session). */
int thread_load_between(struct thread *t, int dir, const char *history_path, struct str session_id,
                        off_t first, off_t end, struct err *e);
/* The same by the index, where there is one. */
int thread_find(struct thread *t, const struct history *h, struct str session_id, bool raw,
                struct err *e);
/* The same from lines that the caller has read: adds a copy of a valid line to a thread, which was
 * zero-initialised; then, unless every line is wanted, leaves out and orders as above. */
void thread_add(struct thread *t, struct str line);
void thread_settle(struct thread *t);
/* Drops the messages that are marked, one mark for each. */
void thread_leave_out(struct thread *t, const bool *out);
/* The other way to settle: the thread as it was until the line at that place was replaced or
 * reset. */
void thread_turn_back(struct thread *t, size_t place);
void thread_release(struct thread *t);

#endif
