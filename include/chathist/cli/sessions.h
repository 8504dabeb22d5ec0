/*
 * sessions - the SESSION arguments of a program; `-` reads ids from standard input.
 */
#ifndef CHATHIST_CLI_SESSIONS_H
#define CHATHIST_CLI_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

/* The given names; `-` is replaced by the lines of standard input. */
struct session_names {
    struct session_name {
        char *text;
        size_t len;
        bool exact;        /* it is a whole id, not a part of one, nor `last` or `current` */
        bool found;        /* session_args_resolve has found it in a history */
        struct err absent; /* else why it was not found in the last history */
    } * at;
    size_t count, cap;
};

struct session_args {
    struct str *ids;
    size_t count, cap;
    int status;     /* 0, or 1 if a named session is absent, which was reported on stderr */
    bool must_name; /* `last` is refused as in sessions_resolve_named */
    /* private */
    struct buf *bytes; /* of the ids */
};

/* Reads standard input for each `-`: every line up to its first TAB is an exact id; empty lines are
 * skipped. An id in the form of a JSON string, as list_add_id writes it, is decoded; one given as
 * an argument in that form is exact, too. A text that begins with `"` and is no JSON string ends
 * the program. Without names, `otherwise` is the only one, unless it is NULL. */
void session_names_read(struct session_names *n, char **names, size_t count, const char *otherwise);
void session_names_release(struct session_names *n);
/* Adds the ids of the named sessions in this history. `a` starts as {0}; the function may be called
 * for several histories. An ambiguous name ends the program. */
void session_args_resolve(struct session_args *a, const struct history *h, struct session_names *n);
/* Reports each name that was found in no history. Returns 0, or the exit code for an absent
 * session. */
int session_names_report(const struct session_names *n);

/* Resolves each of `names`, or without names the name `otherwise`. An ambiguous name ends the
 * program. */
void session_args_load(struct session_args *a, const struct history *h, char **names, size_t count,
                       const char *otherwise);
/* Resolves the name of a session that is to be made current. Returns 0, or -1 with *e set as
 * session_resolve, ERR_USAGE for `last` in a history that is not trusted. */
int sessions_resolve_named(const struct history *h, struct str name, struct buf *id, struct err *e);
/* Finds the session that chat -s names by the six digits at the end of its generated id, as prompts
 * show them. Returns 1 and *id; 0 if no such session exists, or if a session has the name itself as
 * its id; -1 if several end so (ERR_USAGE, the message lists them) or the history cannot be
 * read. */
int sessions_find_digits(const struct history *h, struct str name, struct buf *id, struct err *e);
/* Empties it, for the next history. */
void session_args_clear(struct session_args *a);
void session_args_release(struct session_args *a);

#endif
