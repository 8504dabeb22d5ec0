/*
 * pipe - a pipe that no program we start inherits, whichever thread starts it.
 */
#ifndef CHATHIST_BASE_PIPE_H
#define CHATHIST_BASE_PIPE_H

/* ends[0] is read, ends[1] written; the caller closes both. 0, or -1 with errno set, and both are
 * -1 then. */
int pipe_open(int ends[2]);
/* The same, and neither end waits: for a signal or a thread to wake a poll(2). */
int pipe_open_wake(int ends[2]);

#endif
