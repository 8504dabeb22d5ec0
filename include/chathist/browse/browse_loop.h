/*
 * browse_loop - hist-browse from the first screen to the choice: keys, signals and results come in,
 * the state changes, the screen is drawn.
 */
#ifndef CHATHIST_BROWSE_BROWSE_LOOP_H
#define CHATHIST_BROWSE_BROWSE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/locate.h"
#include "chathist/browse/browse_keys.h"

struct browse_setup {
    const struct history *histories; /* the first is the one that is meant */
    size_t count;
    const char *self;       /* argv[0] */
    const char *state_path; /* NULL: nothing is remembered */
    struct str query;       /* to begin with; absent: as it was left */
    bool choosing;          /* Enter chooses */
    bool color;
    /* Called at the end when what was to be done takes long; NULL: nobody is told. */
    void (*tell_wait)(void);
};

/* How it ended. */
struct browse_outcome {
    enum browse_command
        command;  /* BROWSE_ENTER, BROWSE_LOAD, BROWSE_PROMPT; BROWSE_CLOSE: cancelled */
    bool nothing; /* there was nothing to choose */
    int signal;   /* that is to end the program; 0: none */
    size_t history;
    struct buf session; /* the session's id; */
    struct buf line;    /* the message acted on, as it is stored; empty: none */
    uint64_t bad_lines; /* of the first history */
    struct err forgot;  /* why nothing could be remembered */
    struct err failed;  /* why something was not done that had been begun */
};

/* Returns when the user leaves, with the terminal as it was. 0; -1: it could not begin. */
int browse_loop(const struct browse_setup *setup, struct browse_outcome *outcome, struct err *e);
void browse_outcome_release(struct browse_outcome *o);

#endif
