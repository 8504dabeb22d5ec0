/*
 * die - the only code that prints errors and ends a program.
 *
 * Messages are `tool: problem 'subject': reason`; control characters in them are made visible. Exit
 * codes are those of chat(1) and hist-search(1): one table for hist-*, one for chat.
 */
#ifndef CHATHIST_CLI_DIE_H
#define CHATHIST_CLI_DIE_H

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

#endif
