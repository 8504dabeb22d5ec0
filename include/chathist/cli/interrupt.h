/*
 * interrupt - SIGINT, SIGTERM, SIGHUP and SIGQUIT during a turn: noted, so that what has come can
 * be stored first.
 *
 * A signal that the program was started with ignored stays ignored (nohup, background jobs). Calls
 * are restarted: what has to end soon polls the descriptor. What the handler must reach is in
 * variables of the file: the library has no other ones that change, memory apart.
 */
#ifndef CHATHIST_CLI_INTERRUPT_H
#define CHATHIST_CLI_INTERRUPT_H

#include "chathist/base/err.h"

/* Begins to catch. Returns a descriptor that becomes readable with the first signal; -1 with *e.
 * One at a time in a process. */
int interrupt_begin(struct err *e);
/* The signal that came, 0 while none has. */
int interrupt_signal(void);
/* Puts the former handlers back and closes the descriptor. */
void interrupt_end(void);

#endif
