/*
 * browse_serve - how what is asked for beside the keyboard is done: sessions and their messages are
 * read, a text is looked for, other programs are run. Which thread does it, and when, is
 * tui/browse_work's.
 */
#ifndef CHATHIST_BROWSE_BROWSE_SERVE_H
#define CHATHIST_BROWSE_BROWSE_SERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/words.h"
#include "chathist/history/locate.h"
#include "browse/browse_model.h"
#include "browse/browse_result.h"
#include "browse/browse_source.h"

struct browse_request {
    unsigned number;             /* of messages and hits */
    struct browse_wish wish;     /* of the sessions */
    struct browse_target target; /* whose messages */
    struct buf text;             /* looked for, copied; the name of a file that is written */
    const char *role;            /* only its messages are looked through; NULL: all */
    bool all;                    /* the histories, not only the first */
    bool sent;                   /* the text, to the terminal, which does not answer */
    enum browse_command about;   /* what the program is run for */
    struct words argv;
    struct browse_request *next; /* private */
};

struct browse_request *browse_request_new(void);
/* It and those behind it. */
void browse_request_free(struct browse_request *q);

/* Who does it: on one thread, as all that follows. */
struct browse_server {
    struct history *histories; /* which are given up by `cancel` */
    size_t count;
    atomic_bool cancel; /* set by another thread: what is being done is not wanted any more */
    /* Of the list of sessions. */
    struct browse_source source;
    bool looked; /* the quick look has been */
    /* Hands over a result, which is taken over. */
    void (*give)(void *ctx, struct browse_result *r);
    /* Called with how many hits were given so far; returns when more of them are wanted. */
    void (*rest)(void *ctx, size_t given);
    void *ctx;
};

typedef void browse_serve(struct browse_server *s, const struct browse_request *q);
/* Of a file that is read for the first time, a part before the whole. */
browse_serve browse_serve_sessions;
browse_serve browse_serve_thread;
/* In portions; the last one is `done`. An empty text has no hits, and no portion. */
browse_serve browse_serve_search;
browse_serve browse_serve_run;
browse_serve browse_serve_copy;

#endif
