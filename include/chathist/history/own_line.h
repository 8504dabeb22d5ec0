/*
 * own_line - the beginning of a line as our programs write it (chathist(5)): known by comparing a
 * few words, and not parsed. Most lines of a history begin so.
 */
#ifndef CHATHIST_HISTORY_OWN_LINE_H
#define CHATHIST_HISTORY_OWN_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/history/message.h"

/* Does a line begin so, with an id, a session's id, a time and a role that stand for themselves?
 * Notes these, as JSON, and gives where the next member begins, else 0. */
size_t own_line_head(struct str line, struct str field[FIELD_CONTENT]);
/* Is that a content that is a string? *rest is what stands behind the quote that opens it, with the
 * rest of the line. */
bool own_line_content(struct str line, struct str *rest);
/* And is the line a message of which that is the content? *content is what stands between its
 * quotes. false: perhaps not. */
bool own_line_check(struct str line, struct str *content);

#endif
