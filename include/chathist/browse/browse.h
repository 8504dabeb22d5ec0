/*
 * browse - runs the full-screen browser until the user leaves it: keys, signals and the data read
 * change the state (browse/model), and the screen is drawn from it (browse/view). One thread does
 * all that: between slices of a search (browse/reader) it looks at the keyboard.
 */
#ifndef CHATHIST_BROWSE_BROWSE_H
#define CHATHIST_BROWSE_BROWSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"

struct browse_setup {
    const struct history *histories; /* the first is the one the user means */
    size_t count;
    const char *self;       /* argv[0] */
    const char *state_path; /* file of positions to restore; NULL: none is kept */
    struct str query;       /* first search; absent: that of the last visit */
    struct str session;     /* the id of a session to open, in histories[session_history] */
    size_t session_history;
    bool choosing; /* Enter chooses */
    bool lines;    /* and of marked sessions the stored lines are wanted, not a text */
    bool for_chat; /* `chat` has started it, and continues with the choice */
    bool color;
    bool mouse; /* clicks and the wheel are used; else the terminal keeps them */
    /* Called at the end when requested programs take long; may be NULL. */
    void (*tell_wait)(void);
};

enum browse_end {
    BROWSE_CANCELLED,
    BROWSE_CHOSEN,
    BROWSE_CHOSEN_TO_LOAD,   /* the session becomes the current one */
    BROWSE_CHOSEN_TO_PROMPT, /* the message is to be the beginning of a prompt */
};

/* How it ended. */
struct browse_outcome {
    enum browse_end end;
    bool nothing; /* the list was empty */
    int signal;   /* signal that ends the program, or 0 */
    size_t history;
    struct buf session; /* id of the chosen session */
    struct buf line;    /* current message as stored; empty: none */
    /* If sessions are marked, and one was not chosen to load: */
    struct browse_outcome_session {
        size_t history;
        struct buf id;
    } * marked;
    size_t marked_count;
    struct buf text;    /* their text, or lines */
    size_t undeleted;   /* this many were to be deleted, but the user did not say so */
    uint64_t bad_lines; /* in the first history */
    struct err forgot;  /* why the state could not be saved */
    struct err failed;  /* why a requested program failed, or the sessions cannot be read */
};

/* Returns 0 when the user leaves, with the terminal restored, or -1 with *e set if it cannot
 * start. */
int browse_loop(const struct browse_setup *setup, struct browse_outcome *outcome, struct err *e);
void browse_outcome_release(struct browse_outcome *o);

#endif
