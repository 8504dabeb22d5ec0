/*
 * path - the names of files and directories.
 */
#ifndef CHATHIST_BASE_PATH_H
#define CHATHIST_BASE_PATH_H

#include <glob.h>
#include <stdbool.h>

#include "chathist/base/error.h"

/* Returns `dir/name`, or `name` if that is absolute or dir is empty. The caller frees it. */
char *path_join(const char *dir, const char *name);
/* Returns `path` with `suffix` right after it. The caller frees it. */
char *path_with_suffix(const char *path, const char *suffix);
/* Returns the directory part: `/a/b` and `/a/b/` -> `/a`, `a` -> `.`, `/` -> `/`. The caller frees
 * it. */
char *path_parent(const char *path);
/* Returns the part after the last slash, borrowed from path. */
const char *path_base(const char *path);
/* Returns the path of a program in the directory of another one that was started as `self`; or only
 * its name if `self` has no slash, because it was found in PATH then. The caller frees it. */
char *path_beside(const char *self, const char *name);

/* Finds the files in a directory that match a pattern; the name of the directory is no pattern.
 * Returns whether it found any. *files was zero-initialised; the caller frees it by globfree(3). */
bool path_glob(const char *dir, const char *pattern, glob_t *files);

/* Returns the absolute path of the file, without `.`, `..` or links. The caller frees it. Returns
 * NULL with *e set on failure, also if the file does not exist. */
char *path_real(const char *path, struct err *e);
/* Returns whether both paths name one file, or would if it were created. */
bool path_same(const char *a, const char *b);

#endif
