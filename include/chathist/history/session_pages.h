/*
 * session_pages - the sessions of a history, the one used last first, of which only those are read
 * that are asked for.
 *
 * By the index. What is held then does not grow with the history: open files, and a number for each
 * session that was continued after a segment was made. Where there is no index, the list of all is
 * held (hist/session_list).
 */
#ifndef CHATHIST_HISTORY_SESSION_PAGES_H
#define CHATHIST_HISTORY_SESSION_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/index.h"
#include "chathist/history/location.h"
#include "chathist/history/session_list.h"

/* Zero-initialise. */
struct session_pages {
    size_t count;       /* sessions */
    uint64_t bad_lines; /* lines that are no valid message */
    /* private */
    const struct history *h;
    bool by_index;
    struct index index;
    /* For each segment: how many sessions are listed before its own, and which records of it are
     * not listed, for a newer segment has their sessions. */
    struct session_part {
        size_t before;
        uint64_t *hidden; /* ascending */
        size_t hidden_count, hidden_cap;
    } * parts;
    struct session_list list; /* without an index */
};

/* Opens it for the history as it is now; h is borrowed until it is closed. One that is open is
 * brought up to date; `grown`: nothing but lines behind those that were there has come since.
 * h->cancel ends it with ERR_SIGNAL. 0; -1: it is closed then. */
int session_pages_open(struct session_pages *p, const struct history *h, bool grown, struct err *e);
void session_pages_close(struct session_pages *p);
/* Those from the place `first` on, `limit` at the most, as a list that is to be released before the
 * pages are opened again or closed. 0; -1: they are not what they were any
 * more, and to be opened again. */
int session_pages_read(const struct session_pages *p, size_t first, size_t limit,
                       struct session_list *page);
/* The place of a session: 1; 0 when there is none of that id; -1 as above. */
int session_pages_find(const struct session_pages *p, struct str id, size_t *place);

#endif
