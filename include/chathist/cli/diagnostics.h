/*
 * die - the only code that prints errors and ends a program.
 *
 * Messages are `tool: problem 'subject': reason`; control characters in them are made visible. Exit
 * codes are those of chat(1) and hist-search(1): one table for hist-*, one for chat.
 */
#ifndef CHATHIST_CLI_DIAGNOSTICS_H
#define CHATHIST_CLI_DIAGNOSTICS_H

#include <stdbool.h>

#include "chathist/base/err.h"

/* Done first: fds 0 to 2 filled, SIGXFSZ ignored and SIGCHLD not, the tool's name set, what to do
 * when memory runs out. The table of exit codes goes by the name: `hist-…` or another. */
void die_start(const char *tool);

/* `tool: text` on stderr. */
void warn_err(const struct err *e);
void warnf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line for --verbose, without the tool's name. */
void notef(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Like warnf for what is no problem: printed only when stderr is a terminal, or `wanted`. */
void hintf(bool wanted, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Has fn called by die_err and die_usage before they print: for a tool whose standard output tells
 * of errors, too. */
typedef void die_fn(void *arg, const struct err *e);
void die_before(die_fn *fn, void *arg);
/* Prints the error and exits with its code. */
void die_err(const struct err *e) __attribute__((noreturn));
/* A usage error: prints it with a pointer to --help, exits 2. */
void die_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The exit code that a kind of error means for this tool; ERR_NONE is 0. */
int exit_code(enum err_kind kind);
/* Ends the program silently, with the code of a time-out, when it is still there in so many
 * seconds. */
void die_after(unsigned seconds);
/* Lets the signal end the program as if it had not been caught; does not return. */
void die_signal(int signo) __attribute__((noreturn));

/* ---- progress ---- */

/*
 * progress - a sign on standard error that something is waited for: it turns, and tells after a
 * while for how long, or how much is done.
 *
 * Only where it is seen and can be erased: standard error is a terminal that can move its cursor,
 * and the program is in its foreground. It comes late, so that nothing flickers, and the messages
 * of cli/die erase it.
 */
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
