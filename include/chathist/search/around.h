/*
 * around - the messages round hits: for each hit some that were said before it and after it in its
 * session, groups that touch joined into one.
 *
 * Fed with the messages of a history, the newest first; it keeps places in the file, no text. Other
 * sessions that were written meanwhile do not come between.
 */
#ifndef CHATHIST_SEARCH_AROUND_H
#define CHATHIST_SEARCH_AROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "chathist/base/buf.h"
#include "chathist/base/keymap.h"

/* A message: where its line lies, as in struct line. */
struct around_item {
    off_t at;
    size_t n;
    bool hit;
};

struct around_items {
    struct around_item *at;
    size_t count, cap;
};

struct around {
    struct around_items *groups; /* that with the newest hit first; in each the newest item first */
    size_t count, cap;
    /* private */
    size_t before, after;
    struct keymap by_id;
    struct around_session *sessions;
    size_t sessions_count, sessions_cap;
    size_t waiting;
};

/* So many messages before and after each hit. */
void around_init(struct around *a, size_t before, size_t after);
void around_release(struct around *a);
/* The next older message. */
void around_add(struct around *a, struct str session, struct around_item item);
/* Could an older message that is no hit still belong to a group? */
bool around_wants_more(const struct around *a);

#endif
