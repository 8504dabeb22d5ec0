/*
 * store - appends to a history (chathist(5)). If a function succeeds, the lines are on the disk,
 * unless h->sync is false.
 */
#ifndef CHATHIST_HISTORY_STORE_H
#define CHATHIST_HISTORY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "chathist/base/error.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"

/* Checks the fields that are set: an id has no white space or control characters, id_session_valid
 * accepts the session id, time_parse_iso reads the time, and the role is not empty. Absent fields
 * are not checked. Returns 0, or -1 with *e set (ERR_USAGE). */
int draft_storable(const struct draft *d, struct err *e);
/* Returns whether a draft with the same four fields would pass draft_storable. */
bool message_storable(const struct message *m);
/* Returns whether a message can have this id. */
bool store_id_valid(struct str id);

/* Returns 0 if the history does not exist, is empty, or has a line that is a message. So does a
 * file whose first line begins as those that these programs write: a program that was killed may
 * have left no more, and hist-check repairs it; and one that has the user's mark. Any other file is
 * not a history, and nothing is written to it or beside it: returns -1 with *e set (ERR_USAGE).
 * Reads up to the first message. */
int store_check(struct history *h, struct err *e);

/* Prepares the place for a writer: makes the directory (0700) if it is missing, and the history, or
 * takes them over, marks the history as one in which the account stores something (history_mark),
 * lists the directory in the register, and makes the work link. Every function below does this
 * first. Returns 0, or -1 with *e set. */
int store_enter(struct history *h, struct err *e);
/* Remembers that the user has named a session, so that programs may continue it by themselves.
 * Returns 0, or -1 with *e set. Use session_trust. */
int store_name(struct history *h, struct str id, struct err *e);

/* Appends the drafts as consecutive lines, all or none. Role, content and session id must be set,
 * and draft_storable must accept each draft. Missing ids and timestamps are filled in; on failure
 * they are cleared again. A new id differs from those in the last part of the file. A timestamp
 * that was set is rewritten in the form of time_add_iso. Creates the file (0600) and its directory
 * if they are missing. Returns 0, or -1 with *e set (ERR_USAGE if a draft is refused).
 *
 * The steps: check the drafts; prepare the place (store_enter); open with O_APPEND; lock, waiting
 * as history_wait says; compare the inode with the path's, else open again; build the lines; end a
 * torn last line by a newline; write; on failure truncate to where the first line began; fdatasync;
 * sync the directory of a new file; link a repository's history under its second name
 * (history_make_second_name). */
int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e);
/* The same, but if the history has no line of the session when it is locked, nothing is stored, with
 * ERR_ABSENT. */
int store_append_to(struct history *h, struct str session, struct draft *drafts, size_t count,
                    struct err *e);
/* The two halves of store_append. The first one locks the history and writes the lines. The second
 * one syncs them, gives up the lock and returns the result, so that the caller can begin something
 * between them that then goes on by itself, such as to connect to a server. The drafts stay valid,
 * and the history is not used, until then. If `prompt` is not empty, it is the id of the message
 * that the lines answer: nothing is stored, with ERR_ABSENT, if it was deleted. store_append_begin
 * never returns NULL; store_append_end frees what it returned. */
struct store_write;
struct store_write *store_append_begin(struct history *h, struct draft *drafts, size_t count,
                                       struct str prompt);
int store_append_end(struct store_write *w, struct err *e);
/* A callback that makes the lines to append. It adds complete lines with their newlines to `lines`,
 * each a valid message, or no line at all. It is called under the lock; `at` is the offset at which
 * the first line will be. Returns 0, or -1 with *e set. */
typedef int store_lines_fn(void *arg, off_t at, struct buf *lines, struct err *e);
/* Appends the lines that `make` adds, in the steps of store_append, but fills in nothing. For lines
 * that were made elsewhere, and for lines that depend on those that other programs have just
 * stored. Returns 0, or -1 with *e set. */
int store_append_lines(struct history *h, store_lines_fn *make, void *arg, struct err *e);

/* Stores the answers of turns that were killed (history/partial), as each of the functions above
 * does first. For a program that will read a session in order to continue it. Returns 0, or -1 with
 * *e set. */
int store_recover(struct history *h, struct err *e);

#endif
