/*
 * browse - runs the full-screen browser until the user leaves it: keys, signals and results of the
 * worker change the state (browse/model), and the screen is drawn from it (browse/view).
 */
#ifndef CHATHIST_BROWSE_BROWSE_H
#define CHATHIST_BROWSE_BROWSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

/* What a key, or an answer to a question, asks the browser to do. */
enum browse_command {
    BROWSE_NOTHING, /* no command: in the box, a key that edits it */
    BROWSE_UP,
    BROWSE_DOWN,
    BROWSE_PAGE_UP,
    BROWSE_PAGE_DOWN,
    BROWSE_HALF_UP,
    BROWSE_HALF_DOWN,
    BROWSE_FIRST,
    BROWSE_LAST,
    BROWSE_NEXT_PANEL,
    BROWSE_LAST_PANEL,
    BROWSE_TO_BOX,
    BROWSE_TO_LIST,
    BROWSE_TO_TEXT,
    BROWSE_ENTER,
    BROWSE_NEXT_HIT,
    BROWSE_LAST_HIT,
    BROWSE_NEXT_MESSAGE,
    BROWSE_LAST_MESSAGE,
    BROWSE_FOLD,
    BROWSE_FOLD_ALL,
    BROWSE_ROLE,
    BROWSE_SCOPE,
    BROWSE_FIND,
    BROWSE_ZOOM,
    BROWSE_FOLLOW,
    BROWSE_BACK,
    BROWSE_LOAD,
    BROWSE_PROMPT,
    BROWSE_CHAT,
    BROWSE_COPY,
    BROWSE_COPY_PART, /* asks which; the next three answer that, and are on no key */
    BROWSE_COPY_CODE,
    BROWSE_COPY_ID,
    BROWSE_COPY_SESSION,
    BROWSE_PAGER,
    BROWSE_EDITOR,
    BROWSE_EXPORT,
    BROWSE_OVERWRITE, /* on no key: to export, where a file is */
    BROWSE_FORK,
    BROWSE_DELETE,
    BROWSE_HELP,
    BROWSE_REDRAW,
    BROWSE_SUSPEND,
    BROWSE_CLOSE,
    BROWSE_CANCEL,
};

struct browse_setup {
    const struct history *histories; /* the first is the one the user means */
    size_t count;
    const char *self;       /* argv[0] */
    const char *state_path; /* file of positions to restore; NULL: none is kept */
    struct str query;       /* first search; absent: that of the last visit */
    struct str session;     /* the id of a session to open, in histories[session_history] */
    size_t session_history;
    bool choosing; /* Enter chooses */
    bool for_chat; /* `chat` has started it, and continues with what is chosen */
    bool color;
    bool mouse; /* clicks and the wheel are used; else the terminal keeps them */
    /* Called at the end when requested programs take long; may be NULL. */
    void (*tell_wait)(void);
};

/* How it ended. */
struct browse_outcome {
    enum browse_command
        command;  /* BROWSE_ENTER, BROWSE_LOAD, BROWSE_PROMPT; BROWSE_CLOSE: cancelled */
    bool nothing; /* the list was empty */
    int signal;   /* signal that ends the program, or 0 */
    size_t history;
    struct buf session; /* id of the chosen session */
    struct buf line;    /* current message as stored; empty: none */
    uint64_t bad_lines; /* in the first history */
    struct err forgot;  /* why the state could not be saved */
    struct err failed;  /* why a requested program failed */
};

/* Returns 0 when the user leaves, with the terminal restored, or -1 with *e set if it cannot
 * start. */
int browse_loop(const struct browse_setup *setup, struct browse_outcome *outcome, struct err *e);
void browse_outcome_release(struct browse_outcome *o);

#endif
