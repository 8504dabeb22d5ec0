/*
 * consent - does the user want this tool call to be run?
 *
 * Asked on the controlling terminal, whatever standard input and output are. What is shown of the
 * call is made visible; typing from before the question is thrown away.
 */
#ifndef CHATHIST_CHAT_CONSENT_H
#define CHATHIST_CHAT_CONSENT_H

#include <stdbool.h>

#include "chathist/base/buf.h"

struct consent {
    bool all; /* nothing is asked */
    const char
        *allowed; /* names that are not asked for, between blanks; `*` at the end of one stands
                          * for anything. NULL: none. Borrowed */
    int cancel_fd;
    /* Brings the terminal into the modes for reading a line, and out of them again; NULL: it is in
     * them. */
    void (*lend)(void *arg, bool lent);
    void *lend_arg;
    struct buf always; /* names that were answered with "always", each ended by a newline */
};

#define CONSENT_INIT                                                                               \
    {                                                                                              \
        .cancel_fd = -1, .always = BUF_INIT(BUF_SMALL)                                             \
    }

enum consent_answer {
    CONSENT_GIVEN, /* without a question */
    CONSENT_YES,
    CONSENT_NO,
    CONSENT_NOBODY,   /* there is no terminal to ask on */
    CONSENT_CANCELLED /* cancel_fd became readable */
};

/* `args` is valid JSON. */
enum consent_answer consent_ask(struct consent *c, struct str name, struct str args);
/* Is the name one of the patterns? */
bool consent_matches(const char *patterns, struct str name);
/* What was answered with "always" is asked for again. */
void consent_forget(struct consent *c);
void consent_release(struct consent *c);

#endif
