/*
 * aside - text beside what a program prints, on standard error, as it comes: dim on a terminal and
 * made safe there, exact bytes to a pipe or a file.
 *
 * One that cannot be written is lost: it was no part of the output.
 */
#ifndef CHATHIST_CHAT_ASIDE_H
#define CHATHIST_CHAT_ASIDE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/vis.h"
#include "chathist/cli/opt.h"

struct aside {
    bool terminal; /* stderr is one */
    bool color;
    bool open; /* text came, and its end has not */
    bool ends_line;
    struct vis vis; /* text split between two calls */
};

void aside_start(struct aside *a, enum color_when color);
/* A piece of text, not empty. */
void aside_text(struct aside *a, struct str text);
/* The end of the text, which gains a newline if it has none. Nothing happens when none came. */
void aside_end(struct aside *a);
/* A line about what goes on, when standard error is a terminal, or `wanted`: made visible, dim, and
 * cut to the terminal's width, or else to 200 columns. */
void aside_line(struct aside *a, bool wanted, struct str text);

#endif
