/*
 * pager - long output through the user's pager, as git's: $PAGER, else less.
 *
 * Nothing here decides what is long; out_page (cli/term) does, and is what programs call. While a
 * pager runs, standard output, and standard error where that is the terminal, too, lead into it.
 * There is one at most: the process has one terminal.
 */
#ifndef CHATHIST_CLI_PAGER_H
#define CHATHIST_CLI_PAGER_H

#include <stdbool.h>

/* For the option tables of programs that page. */
#define PAGER_OPTION(key)                                                                          \
    {                                                                                              \
        key, "no-pager", OPT_FLAG, NULL, "print long output on the terminal, without a pager"      \
    }

/* Starts it: false when none is wanted (PAGER is `cat` or empty, or not set on a terminal that less
 * cannot use), or none can be started, which is said when the user has named it. LESS=FRX is in its
 * environment unless LESS is set.
 *
 * From here on a write fails with EPIPE when the reader has left, instead of ending the program by
 * SIGPIPE. SIGINT, SIGQUIT, SIGHUP and SIGTERM end the program, as ever, but not before the pager:
 * two programs would read the same terminal. The end of the program by exit(3) waits for it,
 * too. */
bool pager_start(void);
/* Gives the standard streams back and waits until the reader leaves; keys that send SIGINT and
 * SIGQUIT are the pager's meanwhile. -1: it could not show anything, which is said. Nothing happens
 * when none runs. */
int pager_end(void);

#endif
