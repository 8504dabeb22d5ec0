/*
 * context_window - the part of a session's thread that the context of its next turn can hold.
 *
 * Only the end of the session is read, as far as messages could be sent.
 */
#ifndef CHATHIST_CHAT_CONTEXT_WINDOW_H
#define CHATHIST_CHAT_CONTEXT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/error.h"
#include "chathist/cli/config.h"
#include "chathist/history/location.h"
#include "chathist/history/thread.h"

/* Loads the messages that a context within these bounds (llm/context) can hold, the last turn in
 * addition, and the newest system line. *cut is set if the messages before the last turn exceed the
 * bounds. With `memory` its lines are the session, and the history is not read. Returns 0, or -1
 * with *e set and nothing to release. */
int context_window_load(struct tail *tail, const struct history *h, const struct buf *memory,
                        struct str session, size_t max_messages, size_t max_bytes, bool *cut,
                        struct err *e);
/* Makes the thread of a session's lines. The caller releases it. */
void context_window_parse(struct thread *thread, const struct buf *lines);
/* Returns the index of the first message after the last prompt of the thread, or 0 without a
 * prompt. */
size_t context_window_last_turn(const struct thread *thread);

struct context_estimate {
    size_t messages; /* including the system prompt */
    size_t tokens;   /* estimated as one for every four bytes, as in English text */
};

/* Estimates what the next turn of chat sends of a session, before its prompt, with the user's
 * settings; options of chat are not known. Returns 0, or -1 with *e set if the history cannot be
 * read or a setting is bad. */
int context_estimate(struct context_estimate *f, const struct config *c, const struct history *h,
                     struct str id, struct err *e);

#endif
