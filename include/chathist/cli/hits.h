/*
 * hits - prints the messages that a search found: `session TAB message TAB time TAB role TAB
 * snippet`, followed by `TAB :` or `TAB -` with context, and by `TAB history` with several
 * histories; on a terminal in columns.
 */
#ifndef CHATHIST_CLI_HITS_H
#define CHATHIST_CLI_HITS_H

#include "chathist/cli/output.h"
#include "chathist/search/search.h"

/* Parts of a row besides the five fields. On a terminal the history is a line above its rows. */
struct hits_form {
    const char *history; /* NULL: rows do not name it */
    bool context;        /* a field is `:` for a hit, `-` for a message near one */
    bool headed;         /* private: the line above the rows was printed */
};

/* Prints a hit, or a message of context, on a line. The snippet has the match in colour and fits
 * the width of a terminal. */
void hits_print(struct out *o, const struct hit *hit, struct hits_form *form);
/* Prints one match of a hit, n bytes at `at`, whole and in place of the snippet. */
void hits_print_match(struct out *o, const struct hit *hit, size_t at, size_t n,
                      struct hits_form *form);
/* Prints how many hits below the one before are not shown, because they are results of tools. */
void hits_print_folded(struct out *o, size_t count);
/* Prints a session's id on a line, as hist-sessions does. */
void hits_print_session(struct out *o, struct str id, struct hits_form *form);

#endif
