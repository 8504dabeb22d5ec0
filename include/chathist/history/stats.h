/*
 * stats - messages counted: all together, by day, and by one more thing that they have.
 *
 * Every line of a history counts, replaced and reset ones too: their tokens were used. The tokens
 * of a line that copies another one (`forked_from`) were used once, with that. What an answer does
 * not tell of its tokens is unknown, and counted as such; nothing is estimated.
 *
 * Days, weeks and months are those of the local calendar; weeks begin on Monday (ISO 8601). Memory
 * goes by the number of different keys, and of pairs of a key and a session, not of messages.
 */
#ifndef CHATHIST_HISTORY_STATS_H
#define CHATHIST_HISTORY_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/keymap.h"
#include "chathist/history/filter.h"
#include "chathist/history/message.h"

enum stats_by {
    STATS_DAY,
    STATS_WEEK,
    STATS_MONTH,
    STATS_MODEL,    /* answers only */
    STATS_PROVIDER, /* answers only */
    STATS_ROLE,
    STATS_TOOL, /* calls, not messages */
    STATS_SESSION,
    STATS_BY_COUNT,
};

/* `day`, `week`, … */
const char *stats_by_name(enum stats_by by);
bool stats_is_time(enum stats_by by);

struct stats_count {
    uint64_t messages;
    uint64_t calls; /* of tools */
    uint64_t sessions;
    uint64_t answers;       /* of a model, copies left out: those that have used tokens */
    uint64_t unknown;       /* answers that tell no tokens */
    uint64_t input, output; /* tokens of the others */
};

struct stats_row {
    char *key; /* `2024-06-27`, `2024-W26`, `2024-06`, a name; NULL: the line does not tell */
    size_t len;
    int64_t day; /* of time: a day in it, counted from 1970-01-01 */
    struct stats_count count;
};

struct stats_table {
    enum stats_by by;
    struct stats_row *at;
    size_t count, cap;
    /* private */
    struct keymap places;
    size_t unknown; /* the row without a key; (size_t)-1: none */
};

struct stats {
    struct stats_count total;
    struct stats_table rows;
    struct stats_table days; /* messages alone; in no order */
    bool timed;              /* some message has a time: */
    int64_t first, last;     /* µs */
    /* private */
    struct keymap sessions, pairs;
    char **owned; /* keys of the two */
    size_t owned_count, owned_cap;
};

void stats_init(struct stats *s, enum stats_by by);
void stats_release(struct stats *s);
void stats_add(struct stats *s, const struct message *m);
/* Counts what the filter lets through of a history, at the most the `newest` messages of that,
 * beyond which nothing is read; a missing file has nothing. *bad (may be NULL) is increased by the
 * bad lines met. 0, -1. */
int stats_scan(struct stats *s, int dir, const char *history_path, const struct filter *f,
               size_t newest, uint64_t *bad, struct err *e);
/* Puts the rows into order: times by time, all else the largest first; what is unknown last. No
 * message can be added after that. */
void stats_sort(struct stats *s);

#endif
