/*
 * attach - a file that goes with a prompt: text becomes part of it, an image goes beside it.
 */
#ifndef CHATHIST_CHAT_ATTACH_H
#define CHATHIST_CHAT_ATTACH_H

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/llm/context.h"

/* `-f -`: standard input, which must have something. */
#define ATTACH_STDIN "/dev/stdin"

/* Adds a text file to the prompt, behind a blank line and fenced with its name, or an image to the
 * list; which of them it is, its first bytes tell. -1 (ERR_USAGE, names the file): unreadable, over
 * a bound (PROMPT_MAX, IMAGE_MAX, IMAGES_MAX), or another binary file; prompt and list are then as
 * they were. */
int attach_file(struct buf *prompt, struct image_list *images, const char *file, struct err *e);

#endif
