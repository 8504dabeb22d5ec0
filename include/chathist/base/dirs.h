/*
 * dirs - makes directories, and searches them upwards.
 */
#ifndef CHATHIST_BASE_DIRS_H
#define CHATHIST_BASE_DIRS_H

#include "chathist/base/err.h"

/* Makes the directory `path` and its missing parents. Each new directory has mode 0700 whatever the
 * umask, and its parent is synced. An existing directory, or a link to one, is not changed. Returns
 * 1 if path was created, 0 if it existed, -1 with *e set. */
int dirs_make(const char *path, struct err *e);

/* Calls `look` for the directory `from`, an absolute path, and for each of its parents, with an
 * open descriptor, until a call returns something else than 0, which is then returned. The search
 * ends at the boundary of the file system. Directories that belong to another user, or that cannot
 * be opened, are skipped. Returns 0 at the end, or -1 with *e set if a directory could not be
 * examined. */
int dirs_upwards(const char *from, int (*look)(void *arg, int fd, const char *path), void *arg,
                 struct err *e);

#endif
