/*
 * worker - the thread that reads beside the keyboard: the sessions, the messages of one session,
 * and the hits of a search.
 *
 * At most one request of each kind waits; a newer one replaces it. The thread takes the most urgent
 * kind first: messages, then hits, then sessions. A more urgent request cancels the one at work,
 * and the thread begins that one again afterwards. Little is lost: histories whose lists have been
 * read are not read again, and hits that have been given are not given again.
 *
 * Only the thread that draws may call these functions; it alone receives signals.
 */
#ifndef CHATHIST_BROWSE_WORKER_H
#define CHATHIST_BROWSE_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "browse/model.h"

struct browse_work;

/* Starts the thread. Returns NULL with *e set on failure. The histories are borrowed. */
struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e);
/* Cancels the request at work and ends the thread. */
void browse_work_free(struct browse_work *w);

/* Requests what b->wants says, and clears it. A search pauses after some hundreds of hits until
 * more are wanted. */
void browse_work_ask(struct browse_work *w, struct browse *b);
/* Returns a descriptor that becomes readable when there are results. */
int browse_work_fd(const struct browse_work *w);
/* Moves the results that have arrived into the state. */
void browse_work_take(struct browse_work *w, struct browse *b);

#endif
