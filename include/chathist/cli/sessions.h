/*
 * sessions - the SESSION arguments of a reader, `-` and its ids from standard input included.
 */
#ifndef CHATHIST_CLI_SESSIONS_H
#define CHATHIST_CLI_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/locate.h"

/* Names as they were given, with the lines of standard input for `-`. */
struct session_names {
    struct session_name {
        char *text;
        size_t len;
        bool exact;        /* it is an id: no beginning or end of one, not `last` or `current` */
        bool found;        /* by session_args_resolve, in some history */
        struct err absent; /* what the last one that has it not says */
    } * at;
    size_t count, cap;
};

struct session_args {
    struct str *ids;
    size_t count, cap;
    int status; /* 0; 1 when a named session is absent (said on stderr) */
    /* private */
    bool must_name;
    struct buf *bytes; /* of the ids */
};

/* Reads standard input for each `-`: every line up to its first TAB is an exact id; empty lines are
 * skipped. An id in the form of a JSON string, as list_add_id writes it, is decoded; one given as an
 * argument in that form is exact, too. A text that begins with `"` and is no JSON string ends the
 * program. */
void session_names_read(struct session_names *n, char **names, size_t count);
void session_names_release(struct session_names *n);
/* Adds the ids that the names have in this history (`a` starts as {0}); may be done for several.
 * Ambiguous names end the program. */
void session_args_resolve(struct session_args *a, const struct history *h, struct session_names *n);
/* Says of each name that was found in no history that it is absent. 0, or the exit code for
 * that. */
int session_names_report(const struct session_names *n);

/* Resolves each of `names`, as session_names_read takes them; without names the one called
 * `otherwise`. Ambiguous names end the program. */
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
/* Finds the session that chat -s names by the six digits at the end of its generated id, as prompts
 * show them. Returns 1 and *id; 0 if no such session exists, or if a session has the name itself as its
 * id; -1 if several end so (ERR_USAGE, the message lists them) or the history cannot be read. */
int sessions_find_digits(const struct history *h, struct str name, struct buf *id, struct err *e);
void session_args_release(struct session_args *a);

#endif
