/*
 * hits - prints the messages that a search found: `session TAB message TAB time TAB role TAB
 * snippet`, followed by `TAB :` or `TAB -` with context, and by `TAB history` with several
 * histories; on a terminal in columns.
 */
#ifndef CHATHIST_CLI_HITS_H
#define CHATHIST_CLI_HITS_H

#include "chathist/base/hash_map.h"
#include "chathist/cli/output.h"
#include "chathist/search/match_context.h"
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
/* Prints a session's id on a line, as hist-sessions does. */
void hits_print_session(struct out *o, struct str id, struct hits_form *form);

/* Hits kept as places in the file, to be printed in another order. Zero-initialise. */
struct hits {
    struct context_item *at;
    size_t count, cap;
};
void hits_keep(struct hits *h, const struct hit *hit);
/* Reads a message again that this search has returned before. Returns 0, or -1 with *e set. */
int hits_again(struct context_item place, struct search *s, struct buf *line, struct hit *hit,
               struct err *e);
void hits_release(struct hits *h);

/* The sessions of the messages so far, in that order. Zero-initialise. */
struct hits_sessions {
    struct hash_map seen; /* the place in `at` by id */
    struct hits_session {
        char *id;
        size_t len;
        bool found; /* it has a hit */
    } * at;
    size_t count, cap;
};
/* Adds the session of a message. Returns true for the first hit in the session. */
bool hits_add_session(struct hits_sessions *s, struct str id, bool found);
void hits_sessions_release(struct hits_sessions *s);

#endif
