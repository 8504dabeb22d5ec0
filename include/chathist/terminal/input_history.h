/*
 * input_history - earlier prompts, kept in a file for the history of the line editor. The file has
 * mode 0600 and one JSON string a line, the newest last. Several programs may add to it at the same
 * time. A file that is too large is cut when it is loaded. Other lines are ignored.
 */
#ifndef CHATHIST_TERMINAL_INPUT_HISTORY_H
#define CHATHIST_TERMINAL_INPUT_HISTORY_H

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* The maximum size of a text; longer ones are not kept. */
#define INPUT_HISTORY_TEXT_MAX ((size_t)64 << 10)

/* Calls fn for each text, the oldest first. A missing file has no texts. Returns 0, or -1 with *e
 * set. */
int input_history_load(const char *path, void (*fn)(void *arg, struct str text), void *arg,
                       struct err *e);
/* Adds a text, and creates the file and its directories (0700) if they are missing. Returns 0, or
 * -1 with *e set. */
int input_history_add(const char *path, struct str text, struct err *e);

#endif
