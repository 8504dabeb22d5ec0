/*
 * progress - a sign on standard error that something is waited for: it turns, and tells after a
 * while for how long, or how much is done.
 *
 * Only where it is seen and can be erased: standard error is a terminal that can move its cursor,
 * and the program is in its foreground. It comes late, so that nothing flickers, and the messages
 * of cli/die erase it.
 */
#ifndef CHATHIST_CLI_PROGRESS_H
#define CHATHIST_CLI_PROGRESS_H

#include <stdbool.h>

/* Is there a terminal for it? */
bool progress_possible(void);
/* Waiting goes on: to be called every tenth of a second or so. The first call begins it. */
void progress_turn(void);
/* The same for work of the program's own, which goes on by itself: shown after a second. */
void progress_work(void);
/* And so much of it is done, which is told in place of the time. */
void progress_part(int percent);
/* Takes the sign away, before something else is printed; the next progress_turn brings it back. */
void progress_erase(void);
/* What was waited for has come. */
void progress_end(void);

#endif
