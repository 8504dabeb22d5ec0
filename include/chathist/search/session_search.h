/*
 * session_search - finds the sessions whose messages together hold all texts: for hist-search
 * --in-session, and for the box of hist-browse and /search when no message holds all of them.
 *
 * Each text has its own search (search/search.h), the newest message first. Only
 * places in the file are kept; session_search_read reads a message again.
 */
#ifndef CHATHIST_SEARCH_SESSION_SEARCH_H
#define CHATHIST_SEARCH_SESSION_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chathist/base/hash_map.h"
#include "chathist/search/match_context.h"
#include "chathist/search/search.h"

/* ---- hits, kept as places to be printed in another order; initialise with zeros ---- */

struct session_hits {
    struct session_hit {
        struct context_item place;
        size_t history, session;   /* their numbers; each history has its own sessions */
        bool result;               /* it is the result of a tool */
        size_t rank;               /* of its session; that of the lowest is the first */
        struct context_item first; /* hit of its session; set by session_hits_group */
    } * at;
    size_t count, cap;
};

void session_hits_add(struct session_hits *h, size_t history, size_t session,
                      const struct hit *hit);
/* Adds the hits of another history. */
void session_hits_add_all(struct session_hits *h, const struct session_hits *other);
/* Puts the hits of a session together: the session with the newest hit first, and its newest hit
 * first. With `best`, prompts and answers come before results of tools, and sessions with one
 * before those without. */
void session_hits_group(struct session_hits *h, bool best);
/* Returns whether the hit of that number begins another session than the one before. */
bool session_hits_begins(const struct session_hits *h, size_t number);
void session_hits_release(struct session_hits *h);

/* ---- what a session must hold ---- */

struct session_texts {
    struct pattern *at; /* any match of each of these; at most PATTERN_GROUPS */
    size_t count;
    struct pattern any; /* all of them as alternatives */
};

/* Takes the words and phrases of a query. Returns 0, or -1 with *e set (ERR_USAGE: too many) and
 * nothing to release. */
int session_texts_of(struct session_texts *t, const struct query *q, struct err *e);
void session_texts_release(struct session_texts *t);
/* Returns whether sessions can hold what no message holds: all texts and fields of the query, or
 * with `may_lack` 1 all texts but one. */
bool session_texts_help(const struct session_texts *t, const struct query *q, size_t may_lack);

/* ---- the search of one history; other members start zeroed ---- */

struct session_search {
    /* Set by the caller, and borrowed: */
    struct pattern *wanted; /* what a session must hold, one pattern for each text */
    size_t wanted_count;
    size_t may_lack; /* this many of them may be missing; sessions without a common one are first */
    bool best;       /* the order of the hits, see session_hits_group */
    struct query *query; /* its fields and unwanted words count, too; its in_session is set */
    bool newest_only;    /* of the messages of a session with a text, only the newest is kept */
    size_t history;      /* the number of the history in the hits */
    /* Opens a search for a pattern, as search_open does, with the options of the caller. */
    int (*open)(void *ctx, struct search *s, struct pattern *p, struct err *e);
    /* Hears of a message that cannot be matched (SEARCH_FAILED); may be NULL. */
    void (*unmatched)(void *ctx, const struct hit *hit, const struct err *e);
    void *ctx;
    /* The result: */
    struct session_hits hits;
    uint64_t bad;                   /* lines that are not valid messages */
    struct search_learned *learned; /* by the first search; the caller may take it */
    /* private */
    struct hash_map sessions; /* with hits, by their ids */
    struct session_held *held;
    size_t step; /* each text is a step, then the fields of the query, then its unwanted words */
    size_t common[PATTERN_GROUPS]; /* the number of messages with each text */
    bool opened;                   /* the search of this step */
    struct search search;
    struct pattern every; /* matches every message */
    bool noted;           /* the first search has ended */
};

/* Fills in g->hits: the messages that hold any of the texts, in the sessions that hold enough of
 * them, grouped. Returns 0; -1 with *e set; or SEARCH_PAUSED if `open` sets `until` of struct
 * search, and the next call continues. To be released in any case. */
int session_search_run(struct session_search *g, struct err *e);
void session_search_release(struct session_search *g);
/* Reads a message again that a search has returned before. The pattern of `s` finds the match in
 * it. Returns 0, or -1 with *e set. */
int session_search_read(struct search *s, struct context_item place, struct buf *line,
                        struct hit *hit, struct err *e);

#endif
