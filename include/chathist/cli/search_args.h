/*
 * search_args - parses the command line of hist-search.
 */
#ifndef CHATHIST_CLI_SEARCH_ARGS_H
#define CHATHIST_CLI_SEARCH_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/cli/options.h"
#include "chathist/history/filter.h"
#include "chathist/search/pattern.h"

enum search_what {
    SEARCH_MESSAGES,
    SEARCH_SESSIONS,         /* -l */
    SEARCH_SESSIONS_WITHOUT, /* -L */
    SEARCH_COUNT,            /* -c */
    SEARCH_NOTHING,          /* -q */
};

struct search_list {
    char **at;
    size_t count, cap;
};

/* Texts are borrowed from argv; the arrays and the pattern are owned. */
struct search_args {
    struct opt_common common;
    struct pattern pattern;
    struct filter filter;     /* without the sessions */
    struct search_list names; /* of sessions, as given */
    struct search_list files; /* histories */
    bool all;                 /* every history in the register */
    enum search_what what;
    bool invert, only, reverse;
    bool unpaged;
    size_t limit;         /* 0: not given */
    size_t before, after; /* messages of context */
    size_t threads;       /* 0: not given */
};

/* Ends the program on an error, and after --help and --version. */
void search_args_parse(struct search_args *a, int argc, char **argv);
void search_args_release(struct search_args *a);

#endif
