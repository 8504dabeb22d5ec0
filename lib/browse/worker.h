/*
 * worker - what takes time and is done beside the keyboard: reading sessions and messages, searching,
 * running other programs.
 *
 * Each kind of request has its own thread, started by the first request, because a program may run
 * for long while the list must stay current. A newer request replaces a waiting one of its kind, and
 * stops a search that is running. Programs are different: every program that was requested is run, in
 * order. Only the thread that draws may call these functions; it alone receives signals. If a thread
 * cannot be started, the result of the request is that error.
 */
#ifndef CHATHIST_BROWSE_WORKER_H
#define CHATHIST_BROWSE_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/process.h"
#include "chathist/history/location.h"
#include "chathist/history/thread.h"
#include "browse/model.h"

enum browse_result_kind { BROWSE_SESSIONS, BROWSE_THREAD, BROWSE_HITS, BROWSE_RAN, BROWSE_COPIED };

struct browse_result {
    enum browse_result_kind kind;
    struct err error;                /* if set, the other fields are empty */
    unsigned number;                 /* number of the request (messages, hits) */
    struct browse_sessions sessions; /* browse_take moves this and the next fields into the state */
    struct thread thread;
    bool every; /* the thread holds every line of the session */
    struct browse_parts parts;
    struct browse_hits hits;
    bool done;  /* this is the last result of the search */
    int status; /* of a program: its exit status; of copying: 0 or -1 */
    bool sent;  /* the text to copy was also sent to the terminal */
    bool ended; /* the program was stopped because the user did not want to wait */
    /* The program that was run: */
    enum browse_command about;
    struct buf name;            /* the file that it was to write */
    struct buf out, said;       /* its standard output and standard error */
    struct browse_result *next; /* private */
};

void browse_result_free(struct browse_result *r);
/* Moves the contents of a result into the state. Returns true if a program has changed a history. */
bool browse_take(struct browse *b, struct browse_result *r);
/* If the result is that of a program that failed, appends the reason to `out` and returns true. */
bool browse_take_failure(struct buf *out, const struct browse_result *r);

struct browse_work;

/* Returns NULL with *e set on failure. The histories are borrowed. */
struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e);

/* How long browse_work_end waits for programs that are running or have been requested. */
struct browse_patience {
    bool none;          /* they are stopped at once */
    int fd;             /* they are stopped when this becomes readable; -1: never */
    void (*tell)(void); /* called when waiting takes long; may be NULL */
};
/* Stops all other work and waits for programs as `patience` says. Afterwards only browse_work_next
 * and browse_work_free may be called. */
void browse_work_end(struct browse_work *w, const struct browse_patience *patience);
void browse_work_free(struct browse_work *w);

/* Returns a descriptor that becomes readable when there is a result. */
int browse_work_fd(const struct browse_work *w);
/* Returns the next result, which the caller frees, or NULL. */
struct browse_result *browse_work_next(struct browse_work *w);

/* Reads the sessions that browse_wish(b) names; histories that have not changed are not read again.
 * The first result for a large history lists only the sessions at its end. */
void browse_work_sessions(struct browse_work *w, const struct browse *b);
/* Reads the messages of a session. */
void browse_work_thread(struct browse_work *w, unsigned number, const struct browse_target *target);
/* Searches for a text. Hits come in several results; after some hundreds the search pauses until
 * browse_work_more is called with the number of hits received. An empty text only stops the search
 * that is running. `role` is NULL or a constant. */
void browse_work_search(struct browse_work *w, unsigned number, struct str text, const char *role,
                        bool all);
void browse_work_more(struct browse_work *w, size_t held);
/* Runs a program without a terminal after all programs requested before it. Takes ownership of argv.
 * `about` and `name` come back in the result. */
void browse_work_run(struct browse_work *w, enum browse_command about, struct str name,
                     struct words *argv);
/* Gives a text to tmux and to the clipboard programs of the desktop. `sent` comes back in the result. */
void browse_work_copy(struct browse_work *w, struct str text, bool sent);

#endif
