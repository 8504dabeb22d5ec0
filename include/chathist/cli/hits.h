/*
 * hits - what a search found, printed: `session TAB message TAB time TAB role TAB snippet`, with
 * `TAB :` or `TAB -` behind it when there is context, and `TAB history` when there are several; or
 * in columns on a terminal.
 */
#ifndef CHATHIST_CLI_HITS_H
#define CHATHIST_CLI_HITS_H

#include "chathist/base/keymap.h"
#include "chathist/cli/output.h"
#include "chathist/search/match_context.h"
#include "chathist/search/search.h"

/* What a row has beside the five fields. On a terminal the history is a line above its rows. */
struct hits_form {
    const char *history; /* NULL: there is only one */
    bool context;        /* a field says `:` of a hit, `-` of a message that stands near one */
    bool headed;         /* private: the history was named */
};

/* One hit, or message of context, on a line: the snippet has the match in colour and fits a
 * terminal's width. */
void hits_print(struct out *o, const struct hit *hit, struct hits_form *form);
/* One match in it, n bytes at `at`, whole: in the place of the snippet. */
void hits_print_match(struct out *o, const struct hit *hit, size_t at, size_t n,
                      struct hits_form *form);
/* A session's id on a line, as hist-sessions prints it. */
void hits_print_session(struct out *o, struct str id, struct hits_form *form);

/* Hits kept as places in the file, for printing them in another order. Zero-initialise. */
struct hits {
    struct context_item *at;
    size_t count, cap;
};
void hits_keep(struct hits *h, const struct hit *hit);
/* Reads a message again that this search has given before. 0; -1: unreadable. */
int hits_again(struct context_item place, struct search *s, struct buf *line, struct hit *hit,
               struct err *e);
void hits_release(struct hits *h);

/* The sessions met so far, in their order. Zero-initialise. */
struct hits_sessions {
    struct keymap seen; /* where in `at` */
    struct hits_session {
        char *id;
        size_t len;
        bool found; /* a hit in it */
    } * at;
    size_t count, cap;
};
/* true when this is the first hit in the session, if it is one. */
bool hits_add_session(struct hits_sessions *s, struct str id, bool found);
void hits_sessions_release(struct hits_sessions *s);

#endif
