/*
 * judge - is a line in which a needle may be a hit of the search? For hist/piece, on several
 * threads at once: each has a judge of its own.
 *
 * As far as the place of the needle alone can tell, the content is not decoded, and a line of ours
 * (hist/own_line) not parsed; nor checked, when it is proven (hist/skip).
 */
#ifndef CHATHIST_SEARCH_JUDGE_H
#define CHATHIST_SEARCH_JUDGE_H

#include "chathist/base/buf.h"
#include "chathist/history/filter.h"
#include "chathist/history/message.h"
#include "chathist/search/pattern.h"
#include "chathist/search/piece.h"
#include "chathist/history/scan.h"

struct judge {
    const struct scan *scan;     /* of the history, borrowed: which sessions it gives */
    const struct filter *filter; /* borrowed; NULL: every message */
    /* private */
    struct pattern pattern;
    struct str line;     /* that was read, */
    struct str unparsed; /* its content, when it is one of ours and was not parsed; else STR_NONE */
    bool open;           /* where that ends is not known */
    struct message message;
    struct buf decoded;
};

/* The pattern is copied. */
void judge_init(struct judge *j, const struct scan *scan, const struct filter *filter,
                const struct pattern *pattern);
void judge_release(struct judge *j);
/* A piece_job's `read` and `ask`; ctx is the struct judge. */
enum piece_verdict judge_read(void *ctx, struct str line, bool proven, struct str *content);
enum piece_verdict judge_ask(void *ctx, const char *at);

#endif
