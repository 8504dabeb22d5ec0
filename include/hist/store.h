/*
 * store - appending to a history, so that success means "on disk" (chathist(5)).
 */
#ifndef CHATHIST_HIST_STORE_H
#define CHATHIST_HIST_STORE_H

#include <stddef.h>

#include "base/err.h"
#include "hist/locate.h"
#include "hist/message.h"

/* Appends the drafts as consecutive lines, all or none. Fills in what is missing: id (unique in
 * the tail), timestamp; they are there on success and gone again on failure. Role, content and
 * session id must be set and are checked: ERR_USAGE. Creates the file (0600) and, for a history
 * of ours, its missing directory (history_enter). A directory that is there but not trusted is
 * stored in and not trusted for it. The steps: check; open O_APPEND; flock, waiting up to
 * APPEND_LOCK_MS; compare the inode with the path's (else reopen); build the lines; heal a torn
 * last line by a newline of its own; write; on failure cut back to where the first line began;
 * fdatasync; sync the directory of a new file. */
int store_append(struct history *h, struct draft *drafts, size_t count, struct err *e);

#endif
