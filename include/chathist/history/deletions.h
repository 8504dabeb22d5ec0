/*
 * deletions - FILE.deleted, which records the messages that were erased from a history.
 *
 * hist-sync makes the file (chathist(5)), so that other copies of the history erase the messages,
 * too, and do not bring them back. Where it exists, programs that erase messages add to it. It is
 * also made when messages are erased that hist-import brought, which does not bring them again. It
 * has a line for each message, `{"session_id":"…","id":"…"}`, with the member `origin` if the
 * message had one, and lines are only appended. A line with `"moved":true` is of a message that
 * went to another history of the user (history/move.h), and may come back. A line with `"waits":true` is of another copy of the history: its message is still there until the user
 * accepts the deletion, which adds a line without `waits`.
 */
#ifndef CHATHIST_HISTORY_DELETIONS_H
#define CHATHIST_HISTORY_DELETIONS_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"

/* Returns the path of the file for a history. The caller frees it. */
char *deletions_path(const char *history_path);
/* Adds a line with its newline. */
void deletions_add(struct buf *out, struct str session, struct str id, bool waits);
/* The same for a message that is erased; `moved`: another history of the user has it now. Returns
 * whether it was imported. */
bool deletions_add_message(struct buf *out, const struct message *m, bool moved);
/* Adds the text of the file of a history, nothing if it has none. Returns 0, or -1 with *e set. */
int deletions_read(const struct history *h, struct buf *text, struct err *e);
/* Reads a line without its newline, and sets both ids. Returns whether it names a message. */
bool deletion_parse(struct str line, struct buf *session, struct buf *id);
/* Reads the next line of *rest that names a message, and sets both ids. Other lines are skipped. A
 * last line without a newline may still be written, and stays in *rest. Returns false at the end.
 */
bool deletions_next(struct str *rest, struct buf *session, struct buf *id, struct str *line);

#endif
