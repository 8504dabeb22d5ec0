/*
 * browse_source - the sessions of one history or of several in one list, which is read again when a
 * history has changed.
 *
 * Several histories are merged by when their sessions were used.
 */
#ifndef CHATHIST_BROWSE_BROWSE_SOURCE_H
#define CHATHIST_BROWSE_BROWSE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/history/location.h"
#include "chathist/history/session_list.h"
#include "browse/browse_rows.h"
#include "browse/browse_watch.h"

/* A session of the merged list. */
struct browse_entry {
    size_t history;
    const struct session *session;
};

struct browse_source {
    const struct history *histories;
    size_t count;
    /* private */
    struct session_list *lists;   /* one for each history */
    struct browse_watch *watches; /* the states in which the histories were read */
    bool *open;                   /* which lists were read */
    size_t scope;                 /* how many of the histories are in the merged list */
    struct browse_entry *merged;
    size_t total;
    unsigned number;
};

/* The histories are borrowed. */
void browse_source_init(struct browse_source *s, const struct history *histories, size_t count);
void browse_source_release(struct browse_source *s);
/* Reads what was wished for; `out` is zero-initialised. 0; -1 with an empty list: ERR_SIGNAL when
 * it was given up (history.cancel). */
int browse_source_read(struct browse_source *s, const struct browse_wish *wish,
                       struct browse_sessions *out, struct err *e);

#endif
