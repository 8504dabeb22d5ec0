/*
 * save - a conversation, or its last answer, written to a file as Markdown.
 */
#ifndef CHATHIST_CHAT_SAVE_H
#define CHATHIST_CHAT_SAVE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chat/dialogue.h"

/* The conversation with a heading for each message, or the text of the last answer alone. 1, 0 when
 * there is nothing yet, -1. */
int save_format(const struct dialogue *d, bool answer, struct buf *out, struct err *e);
/* Writes a file that was not there (mode 0600), or, with `over`, puts one in its place, which stays
 * when that fails. 1, 0 when it is there and is not to be overwritten, -1 also when what is there
 * is no file. */
int save_write(const char *path, struct str text, bool over, struct err *e);

#endif
