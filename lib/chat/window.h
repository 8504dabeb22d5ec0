/*
 * window - the part of a session's thread that the context of its next turn can hold.
 *
 * Only the end of the session is read, until it is certain that nothing before it would be sent.
 */
#ifndef CHATHIST_CHAT_WINDOW_H
#define CHATHIST_CHAT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/history/locate.h"
#include "chathist/history/tail.h"

/* Loads what a context with these bounds (llm/context) can hold, the last turn beside it, and the
 * newest system line. *cut: the messages before the last turn are more than the bounds allow. 0, or
 * -1: there is nothing to release. */
int window_load(struct tail *tail, const struct history *h, struct str session, size_t max_messages,
                size_t max_bytes, bool *cut, struct err *e);
/* Where the answers of the last turn begin, right after its prompt; 0 if there is no prompt. */
size_t window_last_turn(const struct thread *thread);

#endif
