/*
 * actions - what the browser does by means of other programs: export, fork, delete, show, the
 * pager, the editor and the clipboard.
 */
#ifndef CHATHIST_BROWSE_ACTIONS_H
#define CHATHIST_BROWSE_ACTIONS_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/process.h"
#include "chathist/terminal/clipboard.h"
#include "chathist/history/location.h"
#include "browse/model.h"

/* Completes the file name that the user typed: expands `~/`, and appends the default file name to
 * the name of a directory. Returns whether the file already exists, so that an export would
 * overwrite it. */
bool browse_act_complete_name(struct browse *b);
/* Shows the current message, or the chosen session if the list has the focus, in the pager
 * (BROWSE_PAGER) or the editor. That program has the terminal until it ends, and gets Ctrl-C: the
 * threads of a search block all signals, and the programs inherit no ignored ones. Returns 0, or -1
 * with *e set. */
int browse_act_open(const struct browse *b, enum browse_command command, struct err *e);

/* Appends the text of the last `messages` of a session (SIZE_MAX: all), as hist-show prints it, or
 * with `lines` its stored lines. Returns 0, or -1 with *e set. */
int browse_act_read_session(const struct browse *b, size_t history, struct str id, size_t messages,
                            bool lines, struct buf *out, struct err *e);
/* Runs an interactive `chat` in the chosen session. It has the terminal until it ends. Returns 0,
 * or -1 with *e set. */
int browse_act_chat(const struct browse *b, struct err *e);

/* ---- programs beside the browser ----
 *
 * browse_jobs_step must be called every BROWSE_JOBS_MS milliseconds while browse_jobs_busy. It does
 * not wait. Programs that were requested with browse_act_run run in order, one at a time. Beside
 * them one text is copied (terminal/clipboard). */

#define BROWSE_JOBS_MS CLIPBOARD_STEP_MS

/* A program that runs without a terminal. */
struct browse_job {
    enum browse_command about;
    struct buf name; /* the file that it is to write, or the sessions that it deletes */
    struct words argv;
    struct buf in; /* its standard input, as far as it was not written */
    size_t count;  /* of the sessions */
    struct child child;
    bool started;
    struct buf out, said; /* its standard output and standard error */
    struct browse_job *next;
};

/* Initialise with zeros. */
struct browse_jobs {
    struct browse_job *first;
    bool changed; /* a program has ended, which may have changed a history; the caller clears it */
    struct clipboard clipboard; /* the text that is being copied */
};

/* Runs the program for BROWSE_FORK (of the chosen session), BROWSE_EXPORT (of b->subject),
 * BROWSE_DELETE (of all sessions that are to be deleted) or BROWSE_LIKE (for b->searched), and says
 * so in the state. A search ends when b->searched is another text. */
void browse_act_run(struct browse_jobs *j, struct browse *b, enum browse_command command);
bool browse_jobs_busy(const struct browse_jobs *j);
/* Continues, and reports in the state. Appends the reason of a failure of a program
 * to `failures` (may be NULL). */
void browse_jobs_step(struct browse_jobs *j, struct browse *b, struct buf *failures);
/* Stops the programs, and forgets those that have not been started. Appends to `failures` the
 * sessions that were not deleted. */
void browse_jobs_stop(struct browse_jobs *j, struct buf *failures);

#endif
