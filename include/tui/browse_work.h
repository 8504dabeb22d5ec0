/*
 * browse_work - what takes time, done beside the keyboard: reading sessions and their messages,
 * searching, running other programs. Each kind has a thread of its own, which begins with the first
 * request; a newer request replaces the one that waits, and ends a search that runs. But each
 * program that was asked for is run, one behind the other.
 *
 * All functions are for the one thread that draws. Signals stay its own.
 */
#ifndef CHATHIST_TUI_BROWSE_WORK_H
#define CHATHIST_TUI_BROWSE_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/words.h"
#include "hist/thread.h"
#include "tui/browse_keys.h"
#include "tui/browse_model.h"
#include "tui/browse_rows.h"

enum browse_result_kind { BROWSE_SESSIONS, BROWSE_THREAD, BROWSE_HITS, BROWSE_RAN };

struct browse_result {
    enum browse_result_kind kind;
    struct err error;                /* what failed; the rest is then empty */
    unsigned number;                 /* of the request; of messages and hits */
    struct browse_sessions sessions; /* to be taken out, as are these */
    struct thread thread;
    bool every;                /* it is every line of the session */
    struct browse_parts parts; /* its own */
    struct browse_hits hits;
    bool done; /* no more hits follow */
    /* Of a program: */
    enum browse_command about;
    struct buf name; /* of the file that was to be written */
    int status;
    struct buf out, said;       /* what it printed on its standard output and error */
    struct browse_result *next; /* private */
};

struct browse_work;

/* The histories are borrowed. NULL with *e. */
struct browse_work *browse_work_new(const struct history *histories, size_t count, struct err *e);
/* Ends what is being done; programs that run, or are to, are waited for. */
void browse_work_free(struct browse_work *w);
/* Becomes readable with a result. */
int browse_work_fd(const struct browse_work *w);
/* The next result, NULL: there is none now. To be freed. */
struct browse_result *browse_work_next(struct browse_work *w);
void browse_result_free(struct browse_result *r);

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

#endif
