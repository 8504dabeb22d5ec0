/*
 * actions - what the browser does by means of other programs: export, fork, delete, show, the pager,
 * the editor and the clipboard.
 */
#ifndef CHATHIST_BROWSE_ACTIONS_H
#define CHATHIST_BROWSE_ACTIONS_H

#include <stdatomic.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/base/process.h"
#include "chathist/history/location.h"
#include "browse/model.h"

struct browse_act {
    const struct history *histories; /* borrowed; the first is the one the user meant */
    char *dir; /* directory of hist-browse, where its sister programs are; NULL: they are in PATH */
};

/* `self` is argv[0]. */
void browse_act_init(struct browse_act *a, const struct history *histories, const char *self);
void browse_act_release(struct browse_act *a);

/* Builds the command line for BROWSE_FORK (of the chosen session), BROWSE_EXPORT or BROWSE_DELETE (of
 * b->subject). Returns false without a session. The caller releases argv. */
bool browse_act_command(const struct browse_act *a, const struct browse *b,
                        enum browse_command command, struct words *argv);
/* Completes the file name that the user typed: expands `~/`, and appends the default file name to the
 * name of a directory. */
void browse_act_settle_name(struct browse *b);
/* Returns true if the file already exists, so that an export would overwrite it. */
bool browse_act_overwrites(const struct browse *b);
/* Shows the current message, or the chosen session if the list has the focus, in the pager
 * (BROWSE_PAGER) or the editor. That program has the terminal until it ends, and gets Ctrl-C: the
 * worker threads block all signals, and their programs inherit no ignored ones. Returns 0, or -1 with
 * *e set. */
int browse_act_open(const struct browse_act *a, const struct browse *b, enum browse_command command,
                    struct err *e);

/* Runs a program without a terminal and waits for it. Appends its output to `out` and its standard
 * error to `said`. Another thread stops it by setting *cancel. Returns the exit status, 128 + N if
 * signal N ended it, or -1 with *e set if it could not be started. */
int browse_child_run(char *const argv[], struct buf *out, struct buf *said,
                     const atomic_bool *cancel, struct err *e);
/* Writes a text to a program such as xclip, which may continue to run afterwards. Returns 0, or -1 if
 * it cannot be started or does not read the whole text. A program that reads nothing for
 * BROWSE_CHILD_GIVE_MS is stopped, also when *cancel becomes true. */
#define BROWSE_CHILD_GIVE_MS ((int64_t)2000)
int browse_child_give(char *const argv[], struct str text, const atomic_bool *cancel);

/* Most terminals accept at most this many bytes in one OSC 52 sequence. */
#define BROWSE_CLIPBOARD_MAX ((size_t)74994)

/* A text is copied both by the terminal (the sequence OSC 52) and by a program, because many terminals
 * ignore the sequence and none reports that. */

/* Sends the text to the terminal, which does not answer. Returns 0, or -1 if the terminal is known to
 * ignore it. Inside tmux nothing is sent: tmux drops the sequence by default, and has a program. */
int browse_clipboard_terminal(int fd, struct str text);
/* Gives the text to tmux, if it runs, and to the first program of the desktop that accepts it.
 * Returns 0, or -1 if none did or *cancel was set. */
int browse_clipboard_programs(struct str text, const atomic_bool *cancel);

#endif
