/*
 * choose - which histories and sessions a program works with. Every program opens them with
 * choose_open, whatever it does with them, and the options that choose have the same names and the
 * same meaning in all of them.
 *
 *     choose_next -> choose_open -> for each history: choose_in -> choose_report -> choose_release
 *
 * session_match.h lists the sessions that the options select, and choose_session.h chooses the one
 * that a new message belongs to.
 */
#ifndef CHATHIST_CLI_CHOOSE_H
#define CHATHIST_CLI_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/cli/config.h"
#include "chathist/cli/histories.h"
#include "chathist/cli/options.h"
#include "chathist/history/filter.h"
#include "chathist/history/location.h"
#include "chathist/history/session_summary.h"

/* Keys of the options that have no letter. */
enum {
    CHOOSE_SINCE = 2048,
    CHOOSE_UNTIL,
    CHOOSE_MODEL,
    CHOOSE_FROM,
    CHOOSE_ALL,
    CHOOSE_REPO,
    CHOOSE_NO_PAGER,
    CHOOSE_DATABASE
};

/* The names that --from takes. */
#define FROM_NAMES MESSAGE_OURS "|" IMPORTERS

/* clang-format off */
/* Rows for the option table of a program that chooses messages; `session` is the help of -s. */
#define CHOOSE_MESSAGES(session)                                                                   \
    {'r', "role", OPT_ROLE, "ROLE", "only messages of this role; may be repeated"},                \
    {'s', "session", OPT_SESSION, "SESSION", session},                                             \
    {CHOOSE_SINCE, "since", OPT_TIME, "TIME",                                                      \
     "only messages of this time or later: a date, 7d, ..."},                                      \
    {CHOOSE_UNTIL, "until", OPT_TIME, "TIME", "only messages of this time or earlier"},            \
    {CHOOSE_MODEL, "model", OPT_MODEL, "MODEL", "only answers of this model; may be repeated"},   \
    {CHOOSE_FROM, "from", OPT_WORD, FROM_NAMES,                                                     \
     "only messages of this program; may be repeated"}
/* The same for a program that chooses sessions. */
#define CHOOSE_SESSIONS                                                                            \
    {'r', "role", OPT_ROLE, "ROLE",                                                                \
     "only sessions with a message of this role; may be repeated"},                                \
    {'s', "session", OPT_SESSION, "SESSION", "only this session; may be repeated"},                \
    {CHOOSE_SINCE, "since", OPT_TIME, "TIME",                                                      \
     "only sessions used then or later: a date, 7d, ..."},                                         \
    {CHOOSE_UNTIL, "until", OPT_TIME, "TIME", "only sessions used then or earlier"},               \
    {CHOOSE_MODEL, "model", OPT_MODEL, "MODEL",                                                    \
     "only sessions with an answer of this model; may be repeated"},                               \
    {CHOOSE_FROM, "from", OPT_WORD, FROM_NAMES,                                                     \
     "only sessions of this program; may be repeated"}
/* The row `-n NUM`; the help says of what. */
#define CHOOSE_LIMIT(help) {'n', "limit", OPT_NUMBER, "N", help}
/* Rows for a program that reads several histories. */
#define CHOOSE_HISTORIES                                                                           \
    {CHOOSE_ALL, "all", OPT_FLAG, NULL, "read every history that is registered as yours"},         \
    {CHOOSE_REPO, "repo", OPT_TEXT, "TEXT", "read only those of --all with TEXT in their path"},   \
    {OPT_HISTORY, "history", OPT_FILE, "FILE", "read this history file; may be repeated"}
/* The row of a program that also reads the user's database (see struct choose_want). */
#define CHOOSE_REMOTE                                                                              \
    {CHOOSE_DATABASE, "remote", OPT_FLAG, NULL, "read your database, with hist-sync"}
/* The row of a program whose output may go to a pager (out_page). */
#define CHOOSE_PAGER                                                                               \
    {CHOOSE_NO_PAGER, "no-pager", OPT_FLAG, NULL,                                                  \
     "print long output on the terminal, without a pager"}
/* clang-format on */

/* Zero-initialise. A program that does not call choose_next sets `common`. */
struct choice {
    struct opt_common common;
    struct filter filter; /* its sessions are those of the last choose_in */
    size_t limit;         /* SIZE_MAX: all; 0: not given */
    bool all, unpaged;
    bool remote;           /* --remote: read the user's database */
    const char *match;     /* only sessions that meet this query (session_match.h); NULL: all */
    const char *repo;      /* --repo, or NULL */
    struct arg_list names; /* the names of sessions: -s and the operands */
    struct arg_list files; /* --history */
    /* Set by choose_open: */
    struct config config;
    struct histories histories;
    /* private */
    struct named_session {
        struct buf name;
        bool exact; /* it is a whole id, not a part of one, nor `last` or `current` */
        bool found; /* a history has it */
        bool bound; /* only the history with the number `home` is asked */
        size_t home;
        struct err absent; /* else why it was not found in the last history */
        struct buf id;     /* its id in the last history that has it */
    } * sessions;          /* the names; `-` is replaced by the lines of standard input */
    size_t sessions_count, sessions_cap;
};

/* Like opt_next, but handles the options of these rows. When it returns 0, the operands follow the
 * sessions in `names` if the program takes sessions as operands. */
int choose_next(struct choice *c, struct opt_parser *p, char **value);

/* What a program wants. All zero: to read one history. */
struct choose_want {
    enum choose_use {
        CHOOSE_READ,         /* it stores nothing, and a history that is named must exist */
        CHOOSE_CHANGE,       /* it changes a history, which must exist if it is named */
        CHOOSE_STORE,        /* it stores messages, and may begin the history */
        CHOOSE_STORE_IF_ANY, /* the same, but it also works without a place for a history */
    } use;
    /* Which histories are opened if neither --history nor --all is given. */
    enum choose_reach {
        CHOOSE_ONE, /* the one of this place (history/location.h) */
        /* The same; a session that it does not have is looked for in all trusted histories of the
         * user, which then follow the first, unless the history was named with CHAT_HISTORY. */
        CHOOSE_ANYWHERE,
        CHOOSE_BESIDE, /* that, and another program's beside it */
        CHOOSE_USERS,  /* that, and all others of the user */
    } reach;
    bool fresh;          /* with `import = fresh`, as for CHOOSE_READ: new conversations with other
                          * programs are imported first */
    bool checked;        /* a file that is not a history must not be changed (store_check) */
    const char *session; /* the session if none is named; NULL: none */
    /* With --remote the only history is one of the named sessions, or of `last`. If no session is
     * named, the program may want one of these instead: */
    const struct arg_list *texts; /* the messages that have all of the texts in their content or
                                   * tool calls, upper and lower case being the same */
    struct session_list *list;    /* an empty history, and the sessions of the database in this
                                   * list, which the caller releases, the last used first */
    size_t limit;                 /* only this many of the newest; SIZE_MAX: all */
};

/* Loads the configuration and opens the histories: those of --history in their order, then with
 * --all every history of the user, the last written first. Returns the first of them.
 *
 * Reads the names of the sessions. For each `-` it reads standard input: every line up to its first
 * TAB is an exact id; empty lines are skipped. An id in the form of a JSON string, as list_add_id
 * writes it, is decoded and exact, also as an argument. Ends the program if such a string is not
 * JSON, if a history that must exist does not (its name may be mistyped, and a job that continued
 * would report success), if a session of the database is absent, or on any other error. */
struct history *choose_open(struct choice *c, const struct choose_want *want);
/* Runs hist-import --scan with an option, and adds what it prints. Returns its exit status, or -1 with
 * *e set if it cannot run. */
int choose_scan(const struct choice *c, const char *option, struct buf *printed, struct err *e);
/* Sets how a program waits, warns and shows progress while it uses a history that it has located
 * itself, as choose_open does. Returns 0, or -1 with *e set: the configuration is wrong. */
int choose_prepare(const struct choice *c, struct history *h, struct err *e);
/* Returns whether there may be several histories, so that each row must name its own. */
bool choose_many(const struct choice *c);
/* Puts the ids of the named sessions of a history into filter.sessions. Returns false if sessions
 * are named and this history has none of them. An ambiguous name ends the program. */
bool choose_in(struct choice *c, const struct history *h);
/* Like choose_in for a program that works on one session of the history of choose_home. Another
 * number ends the program, and so does `last` if the history is not trusted. Reports an absent
 * session. Returns 0, or the exit code for an absent session. */
int choose_one(struct choice *c);
/* Returns the history that has the named sessions: the first one, or with CHOOSE_ANYWHERE another.
 * Sessions of several histories end the program. */
struct history *choose_home(const struct choice *c);
/* Ends the program if the file that an option names is one of the chosen histories or belongs to
 * one. NULL: no file. */
void choose_check_output(const struct choice *c, const char *option, const char *file);
/* Reports in which other histories the sessions are, unless the program is quiet. */
void choose_tell_homes(const struct choice *c);
/* If nothing was found because the one history that was read is empty, says on a terminal that the
 * user has others. Returns whether it said so. */
bool choose_hint_others(const struct choice *c);
/* Returns whether any option restricts the messages or sessions, apart from the names of sessions.
 * */
bool choose_restricts(const struct choice *c);
/* Returns the exit code for named sessions that were in no history, or 0 without such a session.
 * choose_report also reports each of them. */
int choose_status(const struct choice *c);
int choose_report(const struct choice *c);
void choose_release(struct choice *c);

#endif
