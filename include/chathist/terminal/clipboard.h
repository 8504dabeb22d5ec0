/*
 * clipboard - copies a text to the user's clipboard, by the terminal and by programs.
 *
 * The terminal gets the sequence OSC 52, programs get the text on their standard input: both,
 * because many terminals ignore the sequence and none reports that. Inside tmux the terminal gets
 * nothing: tmux drops the sequence by default, and has a program. Of the programs the text goes to
 * tmux and to the first one of the desktop that accepts it; one that reads nothing for two seconds
 * is ended.
 */
#ifndef CHATHIST_TERMINAL_CLIPBOARD_H
#define CHATHIST_TERMINAL_CLIPBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/process.h"

/* Most terminals accept at most this many bytes in one OSC 52 sequence. */
#define CLIPBOARD_TERMINAL_MAX ((size_t)74994)
/* clipboard_step is called again after this many milliseconds. */
#define CLIPBOARD_STEP_MS 20

/* A text that is being copied. Initialise with zeros. */
struct clipboard {
    /* private */
    const char *commands[5]; /* the programs' commands, tried in order */
    size_t count;
    size_t at;    /* the number of the present one */
    bool started; /* it runs: */
    struct child child;
    size_t written; /* bytes of the text that it got */
    int unread;     /* bytes of these that it has not read yet */
    int64_t until;  /* it is ended then, unless it reads */
    struct buf text;
    bool copying;
    bool sent; /* the text was also sent to the terminal, which does not answer */
    bool kept; /* a program has accepted it */
};

/* Begins to copy a text, in place of one that is being copied. `fd` is the terminal, -1: none. */
void clipboard_start(struct clipboard *c, struct str text, int fd);
/* Continues without waiting. Returns true once, when the copying has ended; the result is added to
 * `said` as a message for the user. */
bool clipboard_step(struct clipboard *c, struct buf *said);
bool clipboard_busy(const struct clipboard *c);
/* Returns a descriptor that becomes writable when clipboard_step can copy more, or -1. */
int clipboard_fd(const struct clipboard *c);
/* Gives up the copy under way. */
void clipboard_stop(struct clipboard *c);

/* Copies a text and waits until that has ended, or until cancel_fd (-1: none) is readable. Adds the
 * result to `said`. SIGPIPE is ignored by the caller. */
void clipboard_copy(struct str text, int fd, int cancel_fd, struct buf *said);

#endif
