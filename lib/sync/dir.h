/*
 * sync/dir - the layout of a directory that machines share (sync/dir.c), for sync/machines.
 */
#ifndef SYNC_DIR_H
#define SYNC_DIR_H

#include <stdbool.h>

#include "chathist/base/error.h"
#include "chathist/sync/merge.h"

#define DIR_INDEX "index"
/* The most bytes of an index. That of a history of a million lines has 50 KiB. */
#define DIR_INDEX_MOST ((size_t)64 << 20)

/* Returns whether a directory of this name can be that of a machine. */
bool dir_is_machine(const char *name);
/* Opens the directory `name` in `parent`, whose path is for messages, never through a link: the
 * folder may come from another machine. Returns -1 without *e set if there is no such directory,
 * and with *e set (errno stays) if it cannot be opened. */
int dir_open_below(int parent, const char *name, const char *path, struct err *e);

/* Notes an error that does not end the run: the first one becomes *fault, the others are warnings.
 * Releases *why. */
void dir_add_fault(struct err *fault, const struct merge_options *o, struct err *why);

#endif
