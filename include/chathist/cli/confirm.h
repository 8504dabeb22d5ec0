/*
 * confirm - questions on the controlling terminal, wherever standard input and output go.
 */
#ifndef CHATHIST_CLI_CONFIRM_H
#define CHATHIST_CLI_CONFIRM_H

#include "chathist/base/buf.h"

/* The maximum length of an answer; more is ignored. */
#define CONFIRM_MAX_BYTES 4096

/* Opens the terminal and drops the characters that were typed before. Returns a descriptor that the
 * caller closes, or -1 without a terminal. */
int confirm_open(void);
/* Prints text; an error is ignored, because no answer will come either. */
void confirm_say(int tty, struct str text);
/* Reads a line. Returns 1, 0 if the terminal was closed, or -1 if cancel_fd (-1: none) became
 * readable. */
int confirm_line(int tty, int cancel_fd, struct buf *line);
/* Prints a question and reads a line that is not shown while it is typed. Also returns 0 if the terminal cannot
 * hide it. The caller catches the signals that would end the program and passes their descriptor,
 * so that the terminal does not stay hidden. */
int confirm_secret(int tty, int cancel_fd, const char *question, struct buf *line);
/* Returns the first letter of a line in lower case, or 0. */
char confirm_letter(const struct buf *line);
/* Asks a question. Returns 1 if the answer begins with y, 0 for any other answer, or -1 if there is
 * no terminal. */
int confirm_yes(const char *question);

#endif
