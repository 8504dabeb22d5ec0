/*
 * search_run - the search of hist-search: searches the histories and prints the results, the newest
 * first.
 *
 * A failure is reported when it happens. The limit that was reached, bad lines and absent sessions
 * are reported at the end, after the output of the pager.
 */
#ifndef CHATHIST_CLI_SEARCH_RUN_H
#define CHATHIST_CLI_SEARCH_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/process.h"
#include "chathist/cli/brief.h"
#include "chathist/cli/choose.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/output.h"
#include "chathist/search/pattern.h"
#include "chathist/search/query.h"
#include "chathist/search/search_merge.h"

enum search_what {
    SEARCH_MESSAGES,
    SEARCH_SESSIONS,         /* -l */
    SEARCH_SESSIONS_WITHOUT, /* -L */
    SEARCH_COUNT,            /* -c */
    SEARCH_NOTHING,          /* -q */
};

/* The program sets the first part and opens the histories and the output; the rest starts
 * zeroed. */
struct search_run {
    /* The command line: */
    struct choice choice;
    struct arg_list texts, operands; /* the alternatives of -e, or each TEXT */
    const char *query_text;          /* NULL: no query */
    const char *complete;            /* a query that is to be completed; NULL: none */
    const char *like;                /* --like; NULL: none */
    struct words like_words;         /* then the operands are these */
    struct pattern pattern;          /* its options; the rest by search_run_set_texts: */
    struct query query;              /* its words are in the pattern */
    /* With --in-session what a session must hold, one pattern for each; then `pattern` has all of
     * them as alternatives. */
    struct pattern *wanted;
    size_t wanted_count;
    enum search_what what;
    unsigned in; /* bits of enum search_in */
    bool invert, only, reverse;
    bool best;            /* prompts and answers before results of tools */
    bool in_session;      /* the texts may be in different messages of a session */
    bool nearly;          /* if no session has all of them, one may be missing */
    size_t before, after; /* messages of context */
    size_t threads;       /* 0: not given */
    struct brief brief;   /* for --json */
    struct out out;
    /* private */
    struct search_part *parts; /* the parts of the histories that are searched */
    size_t count_parts;
    struct search_merge merge;
    struct hits_form form;
    uint64_t count;     /* the hits in all histories */
    size_t may_lack;    /* this many texts may be missing in a session */
    bool listed;        /* a session was printed */
    bool sessions_hold; /* no message holds all texts, but sessions do */
    struct buf asked;   /* the query with other forms of the words */
    bool failed;        /* a failure was reported, or will be */
    uint64_t unmatched; /* messages that could not be matched */
    bool cut;           /* more messages match than the limit allows */
};

/* Makes the patterns of the texts and of the words of a query (NULL: none), in place of those that
 * there are. Ends the program if one is bad. */
void search_run_set_texts(struct search_run *r, const char *query);
/* Frees what the command line has set. */
void search_run_release(struct search_run *r);
/* Searches the chosen histories, prints, waits for the pager and reports; then updates the skip
 * indexes of large histories (search/skip_index). Returns the exit code. */
int search_run_histories(struct search_run *r);

#endif
