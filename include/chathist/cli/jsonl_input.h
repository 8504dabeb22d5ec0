/*
 * jsonl_input - reads messages of another program as JSON lines from standard input.
 *
 * Messages are given in batches as they arrive, so that lines of a slow writer are stored while it
 * still writes. A line that cannot be stored is reported and skipped.
 */
#ifndef CHATHIST_CLI_JSONL_INPUT_H
#define CHATHIST_CLI_JSONL_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/history/message.h"

struct jsonl_input {
    struct draft *drafts; /* the current batch; each draft has a role and content */
    size_t count;
    bool refused; /* a line was skipped */
    /* private */
    struct buf pending;
    size_t cap, number;
    bool ended;
};

#define JSONL_INPUT_INIT                                                                           \
    {                                                                                              \
        .pending = BUF_INIT(BUF_LINE)                                                              \
    }

/* Waits for the next batch. Lines without a role get `role`. Returns false at the end. A read error
 * ends the program. */
bool jsonl_input_next(struct jsonl_input *in, const char *role);
void jsonl_input_release(struct jsonl_input *in);

#endif
