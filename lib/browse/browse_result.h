/*
 * browse_result - what was read, found or done beside the keyboard (tui/browse_work), on its way to
 * what is shown.
 */
#ifndef CHATHIST_BROWSE_BROWSE_RESULT_H
#define CHATHIST_BROWSE_BROWSE_RESULT_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/thread.h"
#include "browse/browse_model.h"

enum browse_result_kind { BROWSE_SESSIONS, BROWSE_THREAD, BROWSE_HITS, BROWSE_RAN, BROWSE_COPIED };

struct browse_result {
    enum browse_result_kind kind;
    struct err error;                /* what failed; the rest is then empty */
    unsigned number;                 /* of the request; of messages and hits */
    struct browse_sessions sessions; /* to be taken out, as are these */
    struct thread thread;
    bool every;                /* it is every line of the session */
    struct browse_parts parts; /* its own */
    struct browse_hits hits;
    bool done;  /* no more hits follow */
    int status; /* of a program, and of copying: 0, -1 */
    bool sent;  /* the text to be copied, to the terminal */
    bool ended; /* a program was ended, for nobody wanted to wait */
    /* Of a program: */
    enum browse_command about;
    struct buf name;            /* of the file that was to be written */
    struct buf out, said;       /* what it printed on its standard output and error */
    struct browse_result *next; /* private */
};

struct browse_result *browse_result_new(enum browse_result_kind kind);
void browse_result_free(struct browse_result *r);
/* Puts a result into the state, and takes out of it what it holds. Returns true if a program has
 * changed a history. */
bool browse_take(struct browse *b, struct browse_result *r);
/* Has a program not done what it was asked for? Adds why. */
bool browse_take_failure(struct buf *out, const struct browse_result *r);

#endif
