/*
 * search - finds the messages of a history that match a pattern.
 *
 * The search looks at decoded texts, whatever escapes the line uses: the content, and the names
 * and arguments of tool calls, unless other parts are chosen. A match lies within one text.
 *
 * Hits are returned in the order of their times (history/order.h), the newest first. A large
 * history is searched on several threads (search/parallel_scan). If texts are known that every
 * match holds, lines that cannot contain them are passed over, so that bad lines among these are
 * not counted, and a message that could not be matched is no failure there.
 *
 * The words of a query (search/query) are added to the pattern by query_add_words; its other terms
 * are asked here.
 */
#ifndef CHATHIST_SEARCH_SEARCH_H
#define CHATHIST_SEARCH_SEARCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/filter.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "chathist/history/scan.h"
#include "chathist/search/pattern.h"
#include "chathist/search/query.h"
#include "chathist/search/searched_text.h"

struct search {
    struct scan scan;
    /* Set by search_open; the caller may change these before the first message: */
    unsigned in;         /* bits of enum search_in; default SEARCH_IN_DEFAULT */
    struct query *query; /* its fields and unwanted words count, too; NULL: none */
    bool invert;         /* the hits are the messages that do not match; default false */
    size_t threads;      /* at most THREAD_POOL_MAX; default 0: chosen by the size */
    bool wide;           /* with vectors of 32 bytes; default simd_wide() */
    /* The one that is searched: its clock and its indexes are used. NULL: no index is, and hits
     * have the order of the file, the last one first. */
    const struct history *history;
    bool any_order;            /* hits have the order of the file in any case; default false */
    off_t skip_block;          /* of the skip index; default SKIP_BLOCK; 0: it is not used */
    off_t most;                /* only the newest part of the history, of this size; 0: all */
    const atomic_bool *cancel; /* the search ends when another thread sets it; NULL: never */
    /* A time of time_ticks. When it has passed, search_next and search_count return SEARCH_PAUSED,
     * some milliseconds later at most, or after a step of the work on a very long line. NULL: they
     * never do. */
    const int64_t *until;
    /* private */
    struct search_work *work; /* NULL: not started */
    struct buf line;
    struct pattern *pattern;
    const struct filter *filter;
    struct searched_text *texts;
    struct message message;
};

/* A message that was looked at; borrowed from the search until the next call. */
struct hit {
    const struct message *message;
    struct line line;
    int64_t time;    /* when it counts as written; 0 if hits have the order of the file */
    bool asked;      /* the filter and the fields of the query accept it */
    bool found;      /* and it is a hit */
    struct str text; /* the decoded text with the first match; without one, the first text */
    size_t at, len;  /* the first match, in bytes of text; 0, 0 without one */
    bool in_content; /* the text is the content */
};

/* Opens a search of the history at `history_path` below the directory `dir`. The pattern and the
 * filter (NULL: every message) are borrowed. Returns 0, or -1 with *e set and nothing to close. */
int search_open(struct search *s, int dir, const char *history_path, struct pattern *pattern,
                const struct filter *filter, struct err *e);
void search_close(struct search *s);
/* This message could not be matched and *e says why (see pattern_find). It is not a hit, and the
 * search continues with the next call. */
#define SEARCH_FAILED 2
/* The time `until` has passed; the next call continues. */
#define SEARCH_PAUSED 3
/* Returns 1 and the next hit, 0 at the end, -1 with *e set, SEARCH_FAILED or SEARCH_PAUSED. */
int search_next(struct search *s, struct hit *h, struct err *e);
/* Returns whether the filter has refused a message so far that may match the pattern. */
bool search_refused(const struct search *s);
/* Sets *latest to a time that no hit is after: LINE_OLDEST if the history has no messages, or if
 * hits have the order of the file. Reads no text. Returns 0, or -1 with *e set. */
int search_latest(struct search *s, int64_t *latest, struct err *e);
/* Calls `see` for each match in the texts of the hit. Returns 0, or -1 with *e set (see
 * pattern_find). hit->text is the text of the match meanwhile. */
typedef void search_see(void *ctx, const struct hit *h, size_t at, size_t len);
int search_matches(struct search *s, struct hit *h, search_see *see, void *ctx, struct err *e);
/* Counts the hits, instead of search_next; with `any`, at most one. Returns 1; 0 if a message could
 * not be matched, so that the caller must use search_next after all; -1 with *e set; or
 * SEARCH_PAUSED. */
int search_count(struct search *s, bool any, uint64_t *count, struct err *e);
/* Decides again about a line that this search returned before. h->line is not changed. Returns 0,
 * or -1 with *e set. */
int search_again(struct search *s, struct str line, struct hit *h, struct err *e);

/* Frees what only the search for further hits needs. search_again can still be called. */
void search_let_go(struct search *s);

/* What a search learned about the skip index of its history. */
struct search_learned;
/* Takes it from a search that has ended, before search_close. Returns NULL if the search did not
 * look at the whole history or does not use an index. */
struct search_learned *search_learned(struct search *s);
/* Frees it (NULL is allowed). With `update`, the history that was searched, first writes it to the
 * index and makes the index larger, by a part or (`all`) by all of a small history (SKIP_ALL): to
 * be called when the hits are printed. */
void search_learned_free(struct search_learned *l, const struct history *update, bool all);

/* Adds one line of at most `width` code points of content around the match, with `…` where it was
 * cut; white space and `safe` as in vis_add_line. *mark and *mark_len (may be NULL) are set to
 * where the match is in `out`. */
void search_snippet(struct buf *out, struct str content, size_t at, size_t len, size_t width,
                    bool safe, size_t *mark, size_t *mark_len);

#endif
