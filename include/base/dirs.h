/*
 * dirs - making directories.
 */
#ifndef CHATHIST_BASE_DIRS_H
#define CHATHIST_BASE_DIRS_H

#include "base/err.h"

/* Makes the directory `path` and its missing parents; each one that this creates has mode 0700
 * whatever the umask, and its parent is synced. One that exists, as a directory or a link to one,
 * is left alone. 1: path was created; 0: it was there; -1. */
int dirs_make(const char *path, struct err *e);

#endif
