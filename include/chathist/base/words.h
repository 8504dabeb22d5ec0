/*
 * words - a command as a user writes it, taken apart into words without a shell.
 *
 * Words are separated by blanks, tabs and newlines. As in the shell (POSIX, Shell Command Language
 * 2.2), what stands in '…' is taken as it is; in "…" a backslash takes away the meaning of `"`,
 * `\`, `$`, a backquote and a newline, and stands for itself before anything else; elsewhere it
 * does so for any character, and one before a newline goes with it. '' is an empty word.
 *
 * Nothing is expanded: `$`, `~`, `*`, `;`, `|`, `>` and the rest stand for themselves.
 */
#ifndef CHATHIST_BASE_WORDS_H
#define CHATHIST_BASE_WORDS_H

#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

struct words {
    char **at; /* ends with NULL, as execv(3) wants it; owned */
    size_t count;
    size_t cap;
};

/* Takes the text apart. -1 (ERR_USAGE): a quote is not closed, a backslash ends it, it holds a NUL
 * byte, or there is no word. words_release is due whatever comes of it. */
int words_split(struct words *w, struct str text, struct err *e);
void words_release(struct words *w);

#endif
