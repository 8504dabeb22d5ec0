/*
 * search_run - runs hist-search: searches one history after the other and prints the results. A
 * failure is reported when it happens. The limit that was reached, bad lines and absent sessions
 * are reported at the end, after the output of the pager.
 */
#ifndef CHATHIST_CLI_SEARCH_RUN_H
#define CHATHIST_CLI_SEARCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/cli/output.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/search_args.h"
#include "chathist/cli/sessions.h"
#include "chathist/history/location.h"

struct search_run {
    struct search_args *args;   /* borrowed */
    struct session_names names; /* the sessions that are wanted; borrowed */
    bool many;                  /* there may be several histories, so each row names its own */
    struct out out;
    /* private */
    struct hits_form form;
    uint64_t count;     /* the hits in all histories */
    bool listed;        /* a session was printed by -L, or a group with context */
    bool failed;        /* a failure was reported, or will be */
    uint64_t unmatched; /* messages that could not be matched */
    bool done;          /* nothing more is wanted */
    bool cut;           /* more messages match than the limit allows */
    struct searched {
        const struct history *history;
        uint64_t bad; /* lines that are not valid messages */
        struct search_learned *learned;
    } * searched;
    size_t searched_count, searched_cap;
};

/* Searches a history unless nothing more is wanted. Errors are reported, and the next history can
 * be searched. The history is borrowed until search_run_finish. */
void search_run_history(struct search_run *r, const struct history *h);
/* Prints the total, waits for the pager, and reports bad lines and absent sessions. Then updates
 * the skip indexes of large histories (search/skip_index). Returns the exit code. */
int search_run_finish(struct search_run *r);

#endif
