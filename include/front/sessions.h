/*
 * sessions - the SESSION arguments of a reader, `-` and its ids from standard input included.
 */
#ifndef CHATHIST_FRONT_SESSIONS_H
#define CHATHIST_FRONT_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "hist/locate.h"

struct session_args {
    char **ids;
    size_t count, cap;
    int status; /* 0; 1 when a named session is absent (said on stderr) */
    /* private */
    bool must_name;
};

/* Resolves each of `names` (`-`: every line of standard input up to its first TAB; empty lines are
 * passed over); without names the one called `otherwise`. Ambiguous names end the program. */
void session_args_load(struct session_args *a, const struct history *h, char **names, size_t count,
                       const char *otherwise);
/* The same for a program that makes the session current, with `last` for `otherwise`. What came
 * with a directory that is not trusted is not continued unless it is named: there `last`, wherever
 * it comes from, is a usage error that ends the program. */
void session_args_load_named(struct session_args *a, const struct history *h, char **names,
                             size_t count);
/* Is this one of the ids? */
bool session_args_has(const struct session_args *a, struct str id);
void session_args_release(struct session_args *a);

#endif
