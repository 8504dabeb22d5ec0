/*
 * path - names of files: joining and taking apart.
 */
#ifndef CHATHIST_BASE_PATH_H
#define CHATHIST_BASE_PATH_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

/* `dir/name`; an absolute name stays as it is, an empty dir adds nothing. The caller frees it. */
char *path_join(const char *dir, const char *name);
/* `path` and, right after it, `suffix`. The caller frees it. */
char *path_with_suffix(const char *path, const char *suffix);
/* The directory part: `/a/b` and `/a/b/` -> `/a`, `a` -> `.`, `/` -> `/`. The caller frees it. */
char *path_parent(const char *path);
/* The part after the last slash, borrowed from path. */
const char *path_base(const char *path);

/* The absolute name of what `path` names, without `.`, `..` or links in it. The caller frees it.
 * NULL with *e, also when it does not exist. */
char *path_real(const char *path, struct err *e);
/* Do both name one file, or will they, when it is made? */
bool path_same(const char *a, const char *b);

#endif
