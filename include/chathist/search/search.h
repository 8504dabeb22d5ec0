/*
 * search - messages whose decoded content matches a pattern.
 *
 * Nothing but the decoded content is looked at, whatever escapes the line uses.
 *
 * Fixed strings are looked for in a large file, backward, by hist/sweep: lines that cannot hold
 * them are passed over, and not counted when they are bad.
 */
#ifndef CHATHIST_SEARCH_SEARCH_H
#define CHATHIST_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/filter.h"
#include "chathist/history/locate.h"
#include "chathist/history/message.h"
#include "chathist/search/pattern.h"
#include "chathist/history/scan.h"
#include "chathist/search/sweep.h"

struct search {
    struct scan scan;
    /* To be set before the first message, or left as search_open makes them: */
    bool invert;                   /* messages that do not match are the hits; false */
    size_t threads;                /* CREW_MAX at most; 0: as many as are of use */
    enum simd with;                /* simd_best() */
    const struct history *history; /* it has a skip index (hist/skip), which is used; NULL */
    off_t skip_block;              /* SKIP_BLOCK */
    const atomic_bool *cancel; /* another thread ends the search: there are no more hits; NULL */
    /* private */
    struct search_sweep *sweep;
    bool started;
    struct buf line;
    struct pattern *pattern;
    const struct filter *filter;
    struct buf decoded;
    struct message message;
};

/* A message that was looked at; borrowed from the search until the next call. */
struct hit {
    const struct message *message;
    struct line line;
    struct str content; /* decoded */
    bool asked;         /* the filter wants it */
    bool found;         /* and it is a hit */
    size_t at, len;     /* the first match, in bytes of content; 0, 0 when there is none */
};

/* The pattern and the filter (may be NULL: every message) are borrowed. On failure there is nothing
 * to close. */
int search_open(struct search *s, int dir, const char *history_path, struct pattern *pattern,
                const struct filter *filter, enum scan_way way, struct err *e);
void search_close(struct search *s);
/* This one message could not be matched, *e says why (see pattern_find): it is no hit, and the
 * search goes on with the next call. */
#define SEARCH_FAILED 2
/* The next hit: 1, 0, -1, SEARCH_FAILED. */
int search_next(struct search *s, struct hit *h, struct err *e);
/* The next message, a hit or not: the same. */
int search_each(struct search *s, struct hit *h, struct err *e);
/* How many hits there are, in place of search_next; with `any`, 0 or 1 of them. 1; 0 when
 * search_next must be asked all the same; -1. */
int search_count(struct search *s, bool any, uint64_t *count, struct err *e);
/* Did it look through so much of the history that the next one is worth having a skip index made
 * for? See skip_build. */
bool search_was_long(const struct search *s);
/* Looks again at a line that this search gave before; h->line stays as it was. 0, -1. */
int search_again(struct search *s, struct str line, struct hit *h, struct err *e);
/* Adds one line of at most `width` code points of content round the match, with `…` where it was
 * cut; white space and `safe` as vis_add_line. *mark, *mark_len (may be NULL): where the match
 * is in `out`. */
void search_snippet(struct buf *out, struct str content, size_t at, size_t len, size_t width,
                    bool safe, size_t *mark, size_t *mark_len);

#endif
