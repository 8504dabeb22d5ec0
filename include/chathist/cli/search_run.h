/*
 * search_run - hist-search at work: one history after the other is searched, and what was asked for
 * is printed. A failure is said when it is met; what was cut off, which lines were bad and which
 * sessions are absent at the end, below what a pager showed.
 */
#ifndef CHATHIST_CLI_SEARCH_RUN_H
#define CHATHIST_CLI_SEARCH_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/cli/output.h"
#include "chathist/cli/hits.h"
#include "chathist/cli/search_args.h"
#include "chathist/cli/sessions.h"
#include "chathist/history/locate.h"

struct search_run {
    struct search_args *args;   /* borrowed, as are these */
    struct session_names names; /* the sessions that are asked for */
    bool many;                  /* there may be several histories: each row names its own */
    struct out out;
    /* private */
    struct hits_form form;
    uint64_t count;     /* of hits, in all histories */
    bool listed;        /* -L: there was a session to print; with context, a group */
    bool failed;        /* something was said on standard error, or will be */
    uint64_t unmatched; /* messages that could not be matched */
    bool done;          /* nothing is left to be found */
    bool cut;           /* more than the limit match */
    struct searched {
        const struct history *history;
        uint64_t bad; /* lines that are none */
        struct search_learned *learned;
    } * searched;
    size_t searched_count, searched_cap;
};

/* Searches a history, as long as something is left to be found. Errors are reported, and the next
 * one can be searched. It is borrowed until search_run_finish. */
void search_run_history(struct search_run *r, const struct history *h);
/* Prints the total, waits for the pager, says which lines were bad and which sessions are absent.
 * Has the next search in a large history read less (hist/skip). Gives the exit code. */
int search_run_finish(struct search_run *r);

#endif
