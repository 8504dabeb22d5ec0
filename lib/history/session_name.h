/*
 * session_name - which sessions a part of an id can mean: those that it begins, else those that it
 * ends.
 */
#ifndef CHATHIST_HISTORY_SESSION_NAME_H
#define CHATHIST_HISTORY_SESSION_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/history/location.h"

/* A name that is the end of an id is at least this long. */
#define SESSION_SUFFIX_MIN 4

/* Ids in the order in which they were considered, each once. */
struct session_ids {
    struct buf *at;
    size_t count, cap;
    bool more; /* than were wanted */
};

struct session_name {
    struct str text; /* borrowed */
    size_t most;     /* of each kind so many are wanted */
    struct session_ids begun, ended;
};

void session_name_init(struct session_name *n, struct str text, size_t most);
/* Forgets the ids. */
void session_name_clear(struct session_name *n);
/* Takes an id in when it can be meant. */
void session_name_consider(struct session_name *n, struct str id);
/* Considers all ids of the history by its index, that used last first. false: there is none that
 * tells. */
bool session_name_consider_all(struct session_name *n, const struct history *h);
/* The sessions that are meant. */
const struct session_ids *session_name_meant(const struct session_name *n);

#endif
