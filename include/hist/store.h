/*
 * store - appending to a history, so that success means "on disk" (chathist(5)).
 */
#ifndef CHATHIST_HIST_STORE_H
#define CHATHIST_HIST_STORE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "hist/locate.h"
#include "hist/message.h"

/* Can it be stored, as far as its fields are there: an id without white space and control
 * characters, a session id that id_session_valid takes, a time that clock_parse_iso reads, a role
 * that is not empty? 0, or -1 with ERR_USAGE. */
int draft_storable(const struct draft *d, struct err *e);

/* Appends the drafts as consecutive lines, all or none. Fills in what is missing: id (unique in the
 * tail), timestamp; they are there on success and gone again on failure; a timestamp that was given
 * gets the form of clock_add_iso. Role, content and session id must be set, and draft_storable must
 * let each draft: ERR_USAGE. Creates the file (0600) and, for a history of ours, its missing
 * directory (history_enter). A directory that is there but not trusted is stored in and not trusted
 * for it. The steps: check; open O_APPEND; flock, waiting as history_wait says; compare the inode
 * with the path's (else reopen); build the lines; tell the register how a trusted history begins
 * that has no first line yet (history_vouch; if that fails, the next program asks about the
 * directory again); heal a torn last line by a newline of its own; write; on failure cut back to
 * where the first line began; fdatasync; sync the directory of a new file. */
int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e);

/* Makes whole lines with their newlines, every byte as it is to be stored; each must be a valid
 * message. Called under the lock; `at` is where the first of them will lie. None are fine. */
typedef int store_lines_fn(void *arg, off_t at, struct buf *lines, struct err *e);
/* Appends them in the steps of store_append, which leaves nothing to be filled in. For lines that
 * were made elsewhere, and for those that depend on what others have stored meanwhile. */
int store_append_lines(struct history *h, store_lines_fn *make, void *arg, struct err *e);

#endif
