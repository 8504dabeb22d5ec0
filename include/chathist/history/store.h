/*
 * store - appending to a history, so that success means "on disk" (chathist(5)).
 */
#ifndef CHATHIST_HISTORY_STORE_H
#define CHATHIST_HISTORY_STORE_H

#include <stddef.h>
#include <sys/types.h>

#include "chathist/base/err.h"
#include "chathist/history/location.h"
#include "chathist/history/message.h"

/* Can it be stored, as far as its fields are there: an id without white space and control
 * characters, a session id that id_session_valid takes, a time that clock_parse_iso reads, a role
 * that is not empty? 0, or -1 with ERR_USAGE. */
int draft_storable(const struct draft *d, struct err *e);

/* Appends the drafts as consecutive lines, all or none. Fills in the missing ids (unique in the
 * tail) and timestamps: they are set on success and cleared again on failure; a timestamp that was
 * given gets the form of clock_add_iso. Role, content and session id must be set, and
 * draft_storable must accept each draft: ERR_USAGE. Creates the file (0600) and its missing
 * directory. A history that is not trusted is set aside, unless history_accept was called before.
 * The steps: check the drafts; prepare the place (history_enter); open with O_APPEND; lock, waiting
 * as history_wait says; compare the inode with the path's, else open again; build the lines; end a
 * torn last line by a newline; write; on failure truncate to where the first line began; fdatasync;
 * sync the directory of a new file; link a repository's history under its second name
 * (history_keep_copy). */
int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e);
/* Like store_append, but the lines are all stored, or none of them, also if the program is killed
 * meanwhile: the next program that stores something completes them from FILE.group (chathist(5)).
 * This costs a second file and its sync. */
int store_append_group(struct history *h, struct draft *drafts, size_t count, struct err *e);

/* Adds whole lines with their newlines, in their final form; each must be a valid message. It is
 * called under the lock; `at` is the offset of the first line. It may add no line. */
typedef int store_lines_fn(void *arg, off_t at, struct buf *lines, struct err *e);
/* Appends them in the steps of store_append, which leaves nothing to be filled in. For lines that
 * were made elsewhere, and for those that depend on what others have stored meanwhile. */
int store_append_lines(struct history *h, store_lines_fn *make, void *arg, struct err *e);

/* Stores the answers of turns that were killed (history/partial) and the missing lines of a group
 * whose writer was killed, which each of the functions above does first. For a program that is
 * about to read a session in order to continue it. */
int store_recover(struct history *h, struct err *e);

#endif
