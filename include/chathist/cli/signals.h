/*
 * signals - catches the signals that would end a program, so that it can first store what arrived.
 *
 * interrupt_... is for one turn of chat or one long task; line_signals_... is for a program that
 * reads lines from the terminal, and may hold a turn between two lines. Signals that the program
 * was started with ignored stay ignored (nohup, background jobs). System calls are restarted, so
 * code that must react polls the descriptor. A signal handler can reach only static variables, so a
 * process can use each of the two once at a time.
 */
#ifndef CHATHIST_CLI_SIGNALS_H
#define CHATHIST_CLI_SIGNALS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "chathist/base/error.h"

/* Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT. Returns a descriptor that becomes readable with the
 * first of them, or -1 with *e set. */
int interrupt_begin(struct err *e);
/* Returns the first signal that arrived, or 0. */
int interrupt_signal(void);
/* Restores the former handlers and closes the descriptor. */
void interrupt_end(void);

/* Catches the same signals while lines are read. Returns 0, or -1 with *e set. */
int line_signals_begin(struct err *e);
/* Restores the former handlers. */
void line_signals_end(void);
/* Also catches SIGTSTP, SIGCONT and SIGWINCH while a line is edited. */
void line_signals_edit(bool editing);
/* Returns the descriptor that becomes readable with a signal. */
int line_signals_fd(void);
/* Returns the next signal that arrived, or 0. */
int line_signals_next(void);
/* Stops the process as an uncaught SIGTSTP does, and returns when it is continued. */
void line_signals_stop(void);
/* Forgets the signals that arrived between two lines, except one that ends the program. */
void line_signals_forget(void);
/* Returns a flag that is true if SIGINT arrived since line_signals_forget, or a signal that ends
 * the program. */
const atomic_bool *line_signals_cancel(void);
/* Returns the signal that is to end the program, or 0. */
int line_signals_fatal(void);
/* Raises the signals again that arrived since the line was read, after interrupt_begin. */
void line_signals_raise(void);

#endif
