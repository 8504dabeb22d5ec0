/*
 * brief - stored lines for a reader that pays for each word, such as a model: shortened to a
 * budget, without secrets, and only of the user's own sessions.
 *
 *     brief_read_option -> brief_check_options -> for each line: brief_add -> brief_end
 */
#ifndef CHATHIST_CLI_BRIEF_H
#define CHATHIST_CLI_BRIEF_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/hash_map.h"
#include "chathist/cli/config.h"
#include "chathist/cli/output.h"
#include "chathist/convert/redact.h"
#include "chathist/history/location.h"

/* Rows for the option table of a program that prints stored lines with --json. */
enum { BRIEF_BUDGET = 3584, BRIEF_SKIP, BRIEF_REDACT, BRIEF_OWN, BRIEF_EXCEPT };
/* clang-format off */
#define BRIEF_OPTIONS                                                                              \
    {BRIEF_BUDGET, "budget", OPT_NUMBER, "TOKENS",                                                 \
     "with --json: about so many tokens at most, shortening what is long"},                        \
    {BRIEF_SKIP, "skip", OPT_NUMBER, "N", "with --json: leave out the first N"},                   \
    {BRIEF_REDACT, "redact", OPT_FLAG, NULL,                                                       \
     "with --json: replace keys, tokens and passwords by '[redacted ...]'"},                       \
    {BRIEF_OWN, "own", OPT_FLAG, NULL, "leave out sessions that came with a repository"},          \
    {BRIEF_EXCEPT, "except", OPT_SESSION, "ID", "leave out the session with this id"}
/* clang-format on */

/* Zero-initialise. */
struct brief {
    bool own;           /* --own */
    const char *except; /* --except, or NULL */
    bool redact;        /* --redact */
    bool full;          /* a line found no room */
    /* The caller sets it with --own: what import.exclude names is left out, too. */
    const struct config *config;
    /* The caller sets it: where the next line is from, which becomes its last member `history`; or
     * NULL. */
    const char *place;
    /* private */
    bool budget;
    size_t skip; /* how many lines are left out */
    size_t left; /* bytes that may still be printed */
    size_t most; /* bytes of one line */
    size_t seen; /* lines that were offered */
    struct redactor *redactor;
    struct words excluded; /* by import.exclude, once brief_wants has listed it */
    bool listed, closed;   /* closed: the setting cannot be used, so no history is shown */
    /* Sessions that brief_wants was asked about, by their history and id. */
    struct hash_map own_sessions, others;
};

/* Handles BRIEF_OPTIONS. Returns false for another key. */
bool brief_read_option(struct brief *b, int key, const char *value);
/* Call after all options. The program ends if they need --json and it is not given. `lines`: --own
 * and --except need it, too. */
void brief_check_options(struct brief *b, bool json, bool lines);
void brief_release(struct brief *b);

/* Returns whether the program prints a session: not that of --except, nor, with --own, one that
 * came with the repository (session_came), or of a repository that is excluded (config_excluded).
 * `h` is its history; NULL: the user's database. */
bool brief_wants(struct brief *b, const struct history *h, struct str session);

/* Returns whether a line may be printed otherwise than it is stored, or not at all. */
bool brief_changes(const struct brief *b);
/* Sets `out` to a line in the form to print. `hit`: the text of the match, which stays when a text
 * that has it is shortened; empty: its ends stay. Returns 1; 0 if the line is one of those that are
 * skipped; -1 if it does not fit: then no further line is printed. `out` is empty unless it
 * is 1. */
int brief_add(struct brief *b, struct str line, struct str hit, struct buf *out);
/* After the last line: if one did not fit, prints `{"more":true,"skip":N}`, with the N
 * for --skip that continues here. */
void brief_end(const struct brief *b, struct out *o);

#endif
