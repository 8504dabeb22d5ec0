/*
 * browse_source - the sessions of one history or of several, in one list of which a part is read at
 * a time; what has changed is looked at again.
 *
 * Several histories are merged by when their sessions were used; those of one stay in its order.
 * What is held of a list does not grow with it, but for a place in each history for some hundreds
 * of sessions.
 */
#ifndef CHATHIST_BROWSE_BROWSE_SOURCE_H
#define CHATHIST_BROWSE_BROWSE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/history/location.h"
#include "chathist/history/session_pages.h"
#include "browse/browse_rows.h"
#include "browse/browse_watch.h"

struct browse_source {
    const struct history *histories;
    size_t count;
    /* private */
    struct session_pages *pages;
    struct browse_watch *watches; /* of what the pages are of */
    bool *open;
    size_t scope; /* so many of the histories are in the list */
    size_t total;
    unsigned number;
    /* Every so many sessions of a merged list: how many of each history come before. */
    size_t *marks;
    size_t mark_count, mark_cap;
};

/* The histories are borrowed. */
void browse_source_init(struct browse_source *s, const struct history *histories, size_t count);
void browse_source_release(struct browse_source *s);
/* Reads what was wished for; `out` is zero-initialised. 0; -1 with an empty list: ERR_SIGNAL when
 * it was given up (history.cancel). */
int browse_source_read(struct browse_source *s, const struct browse_wish *wish,
                       struct browse_sessions *out, struct err *e);

#endif
