/*
 * diagnostics - the only code that prints errors and ends a program.
 *
 * Messages are `tool: problem 'subject': reason`, with control characters made visible. They erase
 * the line of progress (cli/progress.h) first.
 */
#ifndef CHATHIST_CLI_DIAGNOSTICS_H
#define CHATHIST_CLI_DIAGNOSTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/error.h"

/* The first call of every program: sets the name of the tool, opens descriptors 0 to 2 if they are
 * closed, ignores SIGXFSZ, restores SIGCHLD, and prepares for running out of memory. */
void die_start(const char *tool);

/* Print `tool: text` on stderr. */
void warn_err(const struct err *e);
void warnf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same as a function that others call with a message. */
void warn_message(void *unused, const char *message);
/* Prints a line for --verbose, without the name of the tool. */
void notef(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints a hint like warnf, but only if stderr is a terminal or `wanted` is true. */
void hintf(bool wanted, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes die_err and die_usage call fn before they print, for a tool that also reports errors on
 * standard output. */
typedef void die_fn(void *arg, const struct err *e);
void die_before(die_fn *fn, void *arg);
/* Prints the error and exits with its code. */
void die_err(const struct err *e) __attribute__((noreturn));
/* Prints a usage error with a pointer to --help, and exits with 2. */
void die_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Returns the exit code of an error; chat has its own codes (chat(1)). ERR_NONE is 0. */
int exit_code(enum err_kind kind);
/* Ends the program silently after this time, with the code of a time-out. */
void die_after(unsigned seconds);
/* Ends the program by the signal, as if it had not been caught. */
void die_signal(int signo) __attribute__((noreturn));

#endif
