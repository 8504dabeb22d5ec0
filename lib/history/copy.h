/*
 * copy - the second name of a repository's history, a hard link in the user's data directory
 * (`${data_home}/aicoder/repositories/`), which keeps the history if the repository is deleted or
 * cloned again.
 *
 * The name of the link is the path of the repository with `%` for `/`, and the ending `.jsonl`; `~2`
 * and so on stand before the ending if an earlier history of that path has the name. While a
 * history is rewritten there is also a link to the new file, with the ending `.new`; it takes the
 * place of the other one after the new file is in place.
 */
#ifndef CHATHIST_HISTORY_COPY_H
#define CHATHIST_HISTORY_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "chathist/base/err.h"

/* The arguments: `copies` is the directory of the links, made if it is missing (0700); NULL: no
 * links are kept, and the functions do nothing. `repository` is the absolute path. */

/* Links the history `path` in `dir` under a new name. `st` is its fstat; nothing is done if it has
 * another link already. Where no link is possible, such as on another file system, nothing is
 * said: the history is stored all the same. */
void copy_keep(const char *copies, const char *repository, int dir, const char *path,
               const struct stat *st);
/* Returns the path of a kept history of this repository that is another file than the one whose
 * inode is `now` (0: there is none): the repository was cloned again, or restored from a backup.
 * NULL if there is none. The caller frees it. */
char *copy_of_earlier(const char *copies, const char *repository, ino_t now);

/* Is a link to this file kept, beside the history `path` in `dir`? False for a history that lies
 * among the links itself: its other name is that of the repository. */
bool copy_exists(const char *copies, const struct stat *st, int dir, const char *path);

/* A rewrite of a linked history, in three steps: begin links the new file `name` in `dir`, end puts
 * this link into the place of the old one, drop removes it. begin: 1; 0 if `old` has no link here; -1
 * with *e. */
struct copy_renewal {
    int fd; /* the directory of the links */
    char *name, *fresh;
};
int copy_renew_begin(struct copy_renewal *r, const char *copies, const struct stat *old, int dir,
                     const char *name, struct err *e);
int copy_renew_end(struct copy_renewal *r, struct err *e);
void copy_renew_drop(struct copy_renewal *r);

#endif
