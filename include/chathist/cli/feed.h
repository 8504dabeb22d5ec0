/*
 * feed - messages that another program hands over as JSON lines on standard input.
 *
 * Given in batches as they come, so that a slow writer's lines are stored while it still writes. A
 * wrong line is named on stderr and passed over: the others are not lost for it.
 */
#ifndef CHATHIST_CLI_FEED_H
#define CHATHIST_CLI_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/history/message.h"

struct feed {
    struct draft *drafts; /* the present batch; each has role and content */
    size_t count;
    bool refused; /* a line was wrong */
    /* private */
    struct buf pending;
    size_t cap, number;
    bool ended;
};

#define FEED_INIT                                                                                  \
    {                                                                                              \
        .pending = BUF_INIT(BUF_LINE)                                                              \
    }

/* Waits for the next batch. Lines without a role get `role`. false at the end; a read error ends
 * the program. */
bool feed_next(struct feed *f, const char *role);
void feed_release(struct feed *f);

#endif
