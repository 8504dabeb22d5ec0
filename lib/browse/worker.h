/*
 * browse_work - what takes time, done beside the keyboard (browse/worker). Each kind has a
 * thread of its own, which begins with the first request; a newer request replaces the one that
 * waits, and ends a search that runs. But each program that was asked for is run, one behind the
 * other.
 *
 * All functions are for the one thread that draws. Signals stay its own. When no thread can be
 * started, the result is that error.
 */
#ifndef CHATHIST_BROWSE_WORKER_H
#define CHATHIST_BROWSE_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/words.h"
#include "chathist/history/locate.h"
#include "chathist/history/thread.h"
#include "browse/browse_source.h"
#include "browse/input.h"
#include "browse/model.h"

struct browse_work;

/* The histories are borrowed. NULL with *e. */
struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e);

/* How long the end waits for other programs that run, or are to. */
struct browse_patience {
    bool none;          /* they are ended at once */
    int fd;             /* until it can be read: then they are ended; -1: until they are through */
    void (*tell)(void); /* called when that takes long; may be NULL */
};
/* Ends what is being done, other programs when there is no patience for them. After this there are
 * only results. */
void browse_work_end(struct browse_work *w, const struct browse_patience *patience);
void browse_work_free(struct browse_work *w);

/* Becomes readable with a result. */
int browse_work_fd(const struct browse_work *w);
/* The next result, NULL: there is none now. To be freed. */
struct browse_result *browse_work_next(struct browse_work *w);

/* What it wishes for of the sessions. Only what has changed is read again. The first time a part of
 * the file is given before the whole. */
void browse_work_sessions(struct browse_work *w, const struct browse *b);
void browse_work_thread(struct browse_work *w, unsigned number, const struct browse_target *target);
/* Gives hits in portions, and stops after a while until browse_work_more, which tells how many are
 * there. An empty text has none: what was looked for before is given up. `role`: NULL, or a
 * constant. */
void browse_work_search(struct browse_work *w, unsigned number, struct str text, const char *role,
                        bool all);
void browse_work_more(struct browse_work *w, size_t held);
/* Runs a program without a terminal, behind all that were asked for before it; argv is taken over.
 * `name` comes back with the result. */
void browse_work_run(struct browse_work *w, enum browse_command about, struct str name,
                     struct words *argv);
/* Gives a text to tmux and the programs of the desktop. `sent`: it went to the terminal, too. */
void browse_work_copy(struct browse_work *w, struct str text, bool sent);

/*
 * browse_serve - how what is asked for beside the keyboard is done: sessions and their messages are
 * read, a text is looked for, other programs are run. Which thread does it, and when, is
 * browse/worker's.
 */

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

/*
 * browse_result - what was read, found or done beside the keyboard (browse/worker), on its way to
 * what is shown.
 */

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

/*
 * browse_child - the other programs that hist-browse runs: with their output taken, with the
 * terminal lent to them, or with a text for them.
 */

/* Runs one without a terminal and waits for it; what it prints is added to `out` and `said`, its
 * standard error. *cancel, set by another thread, ends it. Its status, 128 + N when signal N ended
 * it; -1 with *e when it could not be started. */
int browse_child_run(char *const argv[], struct buf *out, struct buf *said,
                     const atomic_bool *cancel, struct err *e);
/* Gives a text to a program that keeps it: 0; -1 when there is no such program, or it does not take
 * it all. One that does not go on to read it for BROWSE_CHILD_GIVE_MS is ended, as it is when
 * *cancel is set; one that has read it may stay as long as it likes. */
#define BROWSE_CHILD_GIVE_MS ((int64_t)2000)
int browse_child_give(char *const argv[], struct str text, const atomic_bool *cancel);

#endif
