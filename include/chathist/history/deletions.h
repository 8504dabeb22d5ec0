/*
 * deletions - FILE.deleted, which records the messages that were erased from a history.
 *
 * hist-sync makes the file (chathist(5)), so that other copies of the history erase the messages,
 * too, and do not bring them back. Where it exists, programs that erase messages add to it. It has
 * a line for each message, `{"session_id":"…","id":"…"}`, and lines are only appended. A line with
 * `"waits":true` is of another copy of the history: its message is still there until the user
 * accepts the deletion, which adds a line without `waits`.
 */
#ifndef CHATHIST_HISTORY_DELETIONS_H
#define CHATHIST_HISTORY_DELETIONS_H

#include <stdbool.h>

#include "chathist/base/buf.h"

/* Returns the path of the file for a history. The caller frees it. */
char *deletions_path(const char *history_path);
/* Adds a line with its newline. */
void deletions_add(struct buf *out, struct str session, struct str id, bool waits);
/* Reads a line without its newline, and sets both ids. Returns whether it names a message. */
bool deletion_parse(struct str line, struct buf *session, struct buf *id);
/* Reads the next line of *rest that names a message, and sets both ids and whether it waits. Other
 * lines are skipped. A last line without a newline may still be written, and stays in *rest.
 * Returns false at the end. */
bool deletions_next(struct str *rest, struct buf *session, struct buf *id, bool *waits);

#endif
