/*
 * stats - counts messages: in total, and in groups by properties (day, model, role, …).
 *
 * Every line of a history counts, also replaced ones and those before a reset, because their tokens
 * were used. The tokens of a line that copies another one (`forked_from`) count only with that one,
 * and those of a response that several sessions have (`response`) in the session that has it first.
 * A message that several histories have counts in the first of them.
 * If an answer does not say how many tokens it used, they are unknown and counted as such; nothing
 * is estimated.
 *
 * Days, weeks and months are those of the local calendar; weeks begin on Monday (ISO 8601). Memory
 * grows with the number of different keys, and of pairs of a key and a session, not of messages.
 */
#ifndef CHATHIST_HISTORY_STATS_H
#define CHATHIST_HISTORY_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/hash_map.h"
#include "chathist/history/filter.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"
#include "chathist/history/prices.h"

enum stats_by {
    STATS_DAY,
    STATS_WEEK,
    STATS_MONTH,
    STATS_MODEL,    /* answers only */
    STATS_PROVIDER, /* answers only */
    STATS_ROLE,
    STATS_TOOL, /* calls instead of messages */
    STATS_SESSION,
    STATS_FROM, /* the program that a message was imported from, or `chathist` */
    STATS_REPO, /* the name of the history, given by the caller */
    STATS_BY_COUNT,
};

/* Returns `day`, `week`, and so on. */
const char *stats_by_name(enum stats_by by);
/* Returns whether the groups are days, weeks or months. */
bool stats_is_time(enum stats_by by);

struct stats_count {
    uint64_t messages;
    uint64_t calls; /* the calls of tools */
    uint64_t sessions;
    uint64_t answers;       /* the answers of a model, without copies */
    uint64_t unknown;       /* answers whose input or output tokens are unknown */
    uint64_t input, output; /* the tokens that are known */
};

/* What answers cost in one currency; in the place PRICES_UNKNOWN, those whose cost is unknown. */
struct stats_cost {
    struct amount reported, computed;
    uint64_t answers, tokens; /* tokens: input and output, 0 where they are unknown */
};

/* A list of them by the places of history/prices. The places after `count` are empty. */
struct stats_costs {
    struct stats_cost *at;
    size_t count, cap;
};

struct stats_row {
    char *key; /* a JSON array of texts: `2024-06-27`, `2024-W26`, `2024-06` or a name for each
                * property, null if the lines do not have it; NULL: they have none of them */
    size_t len;
    int64_t day; /* if the first is the day, week or month: a day in it, counted from 1970-01-01 */
    struct stats_count count;
    struct stats_costs costs;
};

struct stats_table {
    enum stats_by by[STATS_BY_COUNT];
    size_t by_count; /* 0: no groups */
    struct stats_row *at;
    size_t count, cap;
    /* private */
    struct hash_map places;
    size_t unknown; /* the row without a key; (size_t)-1: it does not exist */
};

struct stats {
    struct prices *prices; /* borrowed, set by the caller; NULL: costs are not counted */
    struct stats *also;    /* counts the same messages by other keys; borrowed, set by the caller */
    struct stats_count total;
    struct stats_costs total_costs;
    struct stats_table rows;
    bool timed;          /* some message has a time, and these are set: */
    int64_t first, last; /* microseconds */
    bool several;        /* set by the caller: more than one history is counted */
    struct str place;    /* the name of the next history, set by the caller for STATS_REPO */
    /* private */
    struct hash_map sessions, pairs;
    struct hash_map responses; /* -> the number of the session that counts, in response_session */
    size_t *response_session;
    struct hash_map lines; /* hashes of session and id; used if there are several histories */
};

/* The name of the task that stats_scan reports. */
#define STATS_TASK "count"

void stats_init(struct stats *s);
/* Adds a property that messages are grouped by. Returns false if it is one already. */
bool stats_group(struct stats *s, enum stats_by by);
void stats_release(struct stats *s);
/* Counts the messages of a history that the filter lets through, at most the `newest` of them
 * (history/order.h); blocks of older ones are not read. A missing file has no messages. Adds the
 * bad lines that were met to *bad (may be NULL). Returns 0, or -1 with *e set. */
int stats_scan(struct stats *s, const struct history *h, const struct filter *f, size_t newest,
               uint64_t *bad, struct err *e);
/* Returns the sum of the reported and the computed costs. */
struct amount stats_cost_sum(const struct stats_cost *c);
/* Sorts the rows: times by time, everything else with the largest first; the unknown row is last.
 * If costs are counted, the largest has the highest cost, and rows without an answer are removed.
 * No message can be added afterwards. */
void stats_sort(struct stats *s);

#endif
