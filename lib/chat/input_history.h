/*
 * recall - what was typed before, kept in a file for the history of the line editor.
 *
 * JSON strings, one a line, the newest last, in a file of mode 0600. Any number of programs add to
 * it; it is cut when it is loaded and has grown too large. Lines that are no JSON string are passed
 * over.
 */
#ifndef CHATHIST_CHAT_INPUT_HISTORY_H
#define CHATHIST_CHAT_INPUT_HISTORY_H

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* Longer texts are not kept. */
#define INPUT_HISTORY_TEXT_MAX ((size_t)64 << 10)

/* Hands the texts over, the oldest first. A file that is missing holds none. 0, -1. */
int input_history_load(const char *path, void (*fn)(void *arg, struct str text), void *arg,
                       struct err *e);
/* Adds a text; makes the file, and the directories above it (0700), when they are missing. 0,
 * -1. */
int input_history_add(const char *path, struct str text, struct err *e);

#endif
