/*
 * browse_act - the actions of hist-browse that others do: the programs beside it (export, fork,
 * delete, show), pager and editor.
 */
#ifndef CHATHIST_BROWSE_ACTIONS_H
#define CHATHIST_BROWSE_ACTIONS_H

#include <stdatomic.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/base/words.h"
#include "chathist/history/locate.h"
#include "browse/model.h"

struct browse_act {
    const struct history *histories; /* the first is the one that was meant */
    char *dir;                       /* of our own program; NULL: it was found in PATH */
};

/* `self` is how the program was started, argv[0]. */
void browse_act_init(struct browse_act *a, const struct history *histories, const char *self);
void browse_act_release(struct browse_act *a);

/* The command of an action: BROWSE_FORK, of what is chosen; BROWSE_EXPORT and BROWSE_DELETE, of
 * what was asked about. false: there is nothing to act on. argv is to be released. */
bool browse_act_command(const struct browse_act *a, const struct browse *b,
                        enum browse_command command, struct words *argv);
/* Makes the name that was asked for that of the file it means: `~/` is in the home directory, and
 * of a directory it is the file of the usual name in it. */
void browse_act_settle_name(struct browse *b);
/* Is a file of the name that was asked for there, so that to export overwrites it? */
bool browse_act_overwrites(const struct browse *b);
/* Shows what has the focus in a pager (BROWSE_PAGER) or an editor: the message, or the session. The
 * terminal is theirs meanwhile, and so is Ctrl-C: the threads of browse/worker take no signals,
 * and what they start has none ignored, so that nobody else misses it. 0; -1. */
int browse_act_open(const struct browse_act *a, const struct browse *b, enum browse_command command,
                    struct err *e);

/*
 * browse_clipboard - puts a text on the clipboard, by the terminal (OSC 52) and by a program: many
 * terminals ignore the sequence, and none says so.
 */

/* What terminals take at once, most of them. */
#define BROWSE_CLIPBOARD_MAX ((size_t)74994)

/* Sends it to the terminal, which does not answer: 0; -1 if it is known not to take such a text. In
 * tmux nothing is sent, for tmux drops the sequence by default and has a program instead. */
int browse_clipboard_terminal(int fd, struct str text);
/* Gives it to tmux, where one runs, and to the first program of the desktop that takes it: 0; -1:
 * none did, or *cancel was set. */
int browse_clipboard_programs(struct str text, const atomic_bool *cancel);

#endif
