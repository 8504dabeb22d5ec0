/*
 * ask - questions on the controlling terminal, whatever standard input and output are.
 */
#ifndef CHATHIST_CLI_CONFIRM_H
#define CHATHIST_CLI_CONFIRM_H

#include "chathist/base/buf.h"

/* The longest answer that is looked at. */
#define CONFIRM_MAX_BYTES 4096

/* The terminal, to be closed; what was typed before is thrown away. -1: there is none. */
int confirm_open(void);
/* What cannot be written is lost: nobody who cannot be told can answer. */
void confirm_say(int tty, struct str text);
/* The next line that is typed: 1, 0 when there is none to come, -1 when cancel_fd (-1: none) became
 * readable. */
int confirm_line(int tty, int cancel_fd, struct buf *line);
/* The first letter of it, small; 0 for none. */
char confirm_letter(const struct buf *line);
/* Asks: 1 for an answer that begins with y, 0 for any other, -1 when there is no terminal. */
int confirm_yes(const char *question);

#endif
