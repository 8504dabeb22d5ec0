/*
 * listing - prints sessions: a record for a pipe or a file, columns for a terminal, or a summary in
 * JSON.
 */
#ifndef CHATHIST_CLI_LISTING_H
#define CHATHIST_CLI_LISTING_H

#include <stdbool.h>

#include "chathist/cli/output.h"
#include "chathist/history/session.h"

/* Prints `id TAB last-used TAB count TAB preview`, or with `json` the text of session_add_json. */
void list_session(struct out *out, const struct session *s, bool json);
/* Adds a session's id so that it reads back from a line, and from an argument: unchanged, or as a
 * JSON string if it is empty, `-`, `current` or `last`, begins with `"`, has white space at an end,
 * or holds a tab, a newline or a character that a terminal must not get. */
void list_add_id(struct buf *line, struct str id);
/* Prints the id of a new session on a line, with `json` as `{"session_id":…}`. */
void list_id(struct out *out, struct str id, bool json);

#endif
