/*
 * sessions - the SESSION arguments of a reader, `-` and its ids from standard input included.
 */
#ifndef CHATHIST_FRONT_SESSIONS_H
#define CHATHIST_FRONT_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "hist/locate.h"

/* Names as they were given, with the lines of standard input for `-`. */
struct session_names {
    struct session_name {
        char *text;
        size_t len;
        bool found;        /* by session_args_resolve, in some history */
        struct err absent; /* what the last one that has it not says */
    } * at;
    size_t count, cap;
};

struct session_args {
    char **ids;
    size_t count, cap;
    int status; /* 0; 1 when a named session is absent (said on stderr) */
    /* private */
    bool must_name;
};

/* Reads standard input for each `-`: ids from every line up to its first TAB; empty lines are
 * passed over. */
void session_names_read(struct session_names *n, char **names, size_t count);
void session_names_release(struct session_names *n);
/* Adds the ids that the names have in this history (`a` starts as {0}); may be done for several.
 * Ambiguous names end the program. */
void session_args_resolve(struct session_args *a, const struct history *h, struct session_names *n);
/* Says of each name that was found in no history that it is absent. 0, or the exit code for
 * that. */
int session_names_report(const struct session_names *n);

/* Resolves each of `names` (`-`: every line of standard input up to its first TAB; empty lines are
 * passed over); without names the one called `otherwise`. Ambiguous names end the program. */
void session_args_load(struct session_args *a, const struct history *h, char **names, size_t count,
                       const char *otherwise);
/* The same for a program that makes the session current, with `last` for `otherwise`. What came
 * with a directory that is not trusted is not continued unless it is named: there `last`, wherever
 * it comes from, is a usage error that ends the program. */
void session_args_load_named(struct session_args *a, const struct history *h, char **names,
                             size_t count);
/* The session of that name for a program that makes it current. -1: as session_resolve; ERR_USAGE
 * for `last` in a directory that is not trusted. */
int sessions_resolve_named(const struct history *h, struct str name, struct buf *id, struct err *e);
void session_args_release(struct session_args *a);

#endif
