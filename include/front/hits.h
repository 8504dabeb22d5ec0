/*
 * hits - what a search found, printed: `session TAB message TAB time TAB role TAB snippet`, or in
 * columns on a terminal.
 */
#ifndef CHATHIST_FRONT_HITS_H
#define CHATHIST_FRONT_HITS_H

#include "base/keymap.h"
#include "cli/term.h"
#include "hist/search.h"

/* One hit on a line: the snippet has the match in colour and fits a terminal's width. */
void hits_print(struct out *o, const struct hit *hit);

/* A session's id on a line, as hist-sessions prints it. */
void hits_print_session(struct out *o, struct str id);

/* Hits kept as places in the file, for printing them in another order. Zero-initialise. */
struct hits {
    struct hits_place {
        off_t at;
        size_t n;
    } * at;
    size_t count, cap;
};
void hits_keep(struct hits *h, const struct hit *hit);
/* Reads the i-th kept hit again. -1: unreadable. */
int hits_again(const struct hits *h, size_t i, struct search *s, struct buf *line, struct hit *hit,
               struct err *e);
void hits_release(struct hits *h);

/* The ids of sessions met so far. Zero-initialise. */
struct hits_sessions {
    struct keymap seen;
    char **ids;
    size_t count, cap;
};
/* true when this is the first time. */
bool hits_new_session(struct hits_sessions *s, struct str id);
void hits_sessions_release(struct hits_sessions *s);

#endif
