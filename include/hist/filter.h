/*
 * filter - which messages are wanted: by role and session.
 */
#ifndef CHATHIST_HIST_FILTER_H
#define CHATHIST_HIST_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "hist/message.h"

/* Zero-initialise: everything. Borrowed strings. */
struct filter {
    const char **roles; /* any of these; unknown roles can be named too */
    size_t roles_count;
    struct str session; /* STR_NONE: every session */
};

void filter_add_role(struct filter *f, const char *role);
void filter_release(struct filter *f);
bool filter_match(const struct filter *f, const struct message *m);

#endif
