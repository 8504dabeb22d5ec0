/*
 * browse_act - the actions of hist-browse that others do: the programs beside it (export, fork,
 * delete, show), pager and editor.
 */
#ifndef CHATHIST_BROWSE_BROWSE_ACT_H
#define CHATHIST_BROWSE_BROWSE_ACT_H

#include <stddef.h>

#include "chathist/base/err.h"
#include "chathist/base/words.h"
#include "chathist/history/locate.h"
#include "browse/browse_model.h"

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
 * terminal is theirs meanwhile, and so is Ctrl-C: the threads of tui/browse_work take no signals,
 * and what they start has none ignored, so that nobody else misses it. 0; -1. */
int browse_act_open(const struct browse_act *a, const struct browse *b, enum browse_command command,
                    struct err *e);

#endif
