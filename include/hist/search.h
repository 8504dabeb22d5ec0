/*
 * search - messages whose decoded content holds a text, without regard to case (Unicode simple case
 * folding).
 *
 * Nothing but the decoded content is looked at, whatever escapes the line uses. A needle that is
 * not UTF-8 is repaired as stored text is.
 */
#ifndef CHATHIST_HIST_SEARCH_H
#define CHATHIST_HIST_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "hist/filter.h"
#include "hist/message.h"
#include "hist/scan.h"

struct search {
    struct scan scan;
    struct filter filter; /* borrowed; released by its owner */
    struct buf needle;    /* folded; empty: every message */
    struct buf decoded;   /* private, as is what follows */
    struct buf folded;
    struct message message;
};

/* A message that matched; borrowed from the search until the next call. */
struct hit {
    const struct message *message;
    struct line line;
    struct str content; /* decoded */
    size_t at, len;     /* the first match, in bytes of content */
};

/* `filter` may be NULL: every message. On failure there is nothing to close. */
int search_open(struct search *s, const char *history_path, struct str needle,
                const struct filter *filter, enum scan_way way, struct err *e);
void search_close(struct search *s);
/* The next hit: 1, 0, -1. */
int search_next(struct search *s, struct hit *h, struct err *e);
/* Is this line, given by this search before, a hit? It is looked at again; h->line stays as it
 * was. */
bool search_line(struct search *s, struct str line, struct hit *h);
/* The first match of a folded needle in text: true and where, in bytes of text. An empty needle is
 * found at 0. scratch is cleared; it needs twice the room of text. */
bool search_find(struct str text, struct str folded_needle, struct buf *scratch, size_t *at,
                 size_t *len);
/* Adds one line of at most `width` code points of content round the match, with `…` where it was
 * cut; white space and `safe` as vis_add_line. *mark, *mark_len (may be NULL): where the match
 * is in `out`. */
void search_snippet(struct buf *out, struct str content, size_t at, size_t len, size_t width,
                    bool safe, size_t *mark, size_t *mark_len);

#endif
