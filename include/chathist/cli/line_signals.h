/*
 * line_signals - the signals that come to a program that lives by lines typed on the terminal
 * (cli/line). A handler can reach nothing but variables of the file: one at a time in a process.
 *
 * Signals that the program was started with ignored stay ignored. Calls are restarted: who waits
 * polls the descriptor.
 */
#ifndef CHATHIST_CLI_LINE_SIGNALS_H
#define CHATHIST_CLI_LINE_SIGNALS_H

#include <stdbool.h>

#include "chathist/base/err.h"

/* Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT from now on. */
int line_signals_begin(struct err *e);
/* Puts the former handlers back. */
void line_signals_end(void);
/* While a line is edited SIGTSTP, SIGCONT and SIGWINCH are caught as well. */
void line_signals_edit(bool editing);
/* The descriptor that becomes readable with a signal. */
int line_signals_fd(void);
/* The next signal that came, 0: no more. */
int line_signals_next(void);
/* Stops the process as SIGTSTP does that nobody catches; returns when it goes on. */
void line_signals_stop(void);
/* Forgets what came between two lines, all but what is to end the program. */
void line_signals_forget(void);

/* Has SIGINT come since line_signals_forget? */
bool line_signals_interrupted(void);
/* The signal that came and is to end the program, 0: none. */
int line_signals_fatal(void);
/* Raises again what came since the line was read, for one who catches signals only from now on. */
void line_signals_raise(void);

#endif
