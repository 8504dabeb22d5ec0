/*
 * own_line - recognises the beginning of a line that our programs wrote (chathist(5)) by comparing
 * fixed text, without a JSON parse. Most lines of a history begin like this.
 */
#ifndef CHATHIST_HISTORY_OWN_LINE_H
#define CHATHIST_HISTORY_OWN_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/history/message.h"

/* Checks that a line begins with the id, the session id, the time and the role, all without
 * escapes. Returns the offset of the next member, with these values in `field` as JSON, or 0. */
size_t own_line_head(struct str line, struct str field[FIELD_CONTENT]);
/* Returns true if the next member is a content string. *rest is the rest of the line after its
 * opening quote. */
bool own_line_content(struct str line, struct str *rest);
/* Returns true if the whole line is a message with this content; *content is then the text between
 * the quotes. False means that the line must be parsed to know. */
bool own_line_check(struct str line, struct str *content);

#endif
