/*
 * browse_work - what takes time, done beside the keyboard (tui/browse_serve). Each kind has a
 * thread of its own, which begins with the first request; a newer request replaces the one that
 * waits, and ends a search that runs. But each program that was asked for is run, one behind the
 * other.
 *
 * All functions are for the one thread that draws. Signals stay its own. When no thread can be
 * started, the result is that error.
 */
#ifndef CHATHIST_BROWSE_BROWSE_WORK_H
#define CHATHIST_BROWSE_BROWSE_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/words.h"
#include "chathist/browse/browse_keys.h"
#include "browse/browse_model.h"
#include "browse/browse_result.h"

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

#endif
