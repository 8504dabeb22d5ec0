/*
 * filter - which messages are wanted: by role, session, model, file and time.
 *
 * Of each kind any of those that were added will do; a kind of which none was added does not count.
 */
#ifndef CHATHIST_HISTORY_FILTER_H
#define CHATHIST_HISTORY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/history/message.h"

struct filter_list {
    struct str *at;
    size_t count, cap;
};

/* Zero-initialise: everything. Borrowed strings. */
struct filter {
    struct filter_list roles;    /* unknown ones can be named, too */
    struct filter_list sessions; /* whole ids */
    struct filter_list models;   /* as stored, or `provider:model` */
    struct filter_list files;    /* in `files` or `files_modified`; `./` before either is nothing */
    bool has_since, has_until;
    int64_t since, until; /* µs; both belong to the time. A message whose time cannot be read is in
                           * none */
};

void filter_add(struct filter_list *l, struct str value);
/* Removes all values of one kind. */
void filter_clear(struct filter_list *l);
void filter_release(struct filter *f);
/* Is every message wanted? */
bool filter_is_empty(const struct filter *f);
bool filter_match(const struct filter *f, const struct message *m);

#endif
