/*
 * links - two links to the history of a repository.
 *
 * The second name is a hard link in the user's data directory
 * (`${data_home}/aicoder/repositories/`). It keeps the history if the repository is deleted or
 * cloned again. The name of the link is the path of the repository with `%` for each slash and the
 * ending `.jsonl`; `~2` and so on stand before the ending if an earlier history of that path has
 * the name. The characters `%`, `=` and `~` of a path are written as `=25`, `=3D` and `=7E`. A long
 * path is shortened to a checksum and its end.
 *
 * A rewrite removes the second name before the new file is renamed over the history, and makes it
 * again afterwards. If the program is killed in between, the next append makes it.
 *
 * The work link is the symbolic link `.aicoder` in the main work tree, for people, grep and jq. The
 * programs never follow it.
 */
#ifndef CHATHIST_HISTORY_LINKS_H
#define CHATHIST_HISTORY_LINKS_H

#include <sys/stat.h>

#include "chathist/base/error.h"

/* In these functions `copies` is the directory of the second names, or NULL if it is unknown;
 * `repository` is the absolute path of the repository; `path` in `dir` is the history. */

/* Links the history under a new second name. Makes the directory (0700) if it is missing. `st` is
 * the fstat of the history; nothing is done if it has another link already. Where no link is
 * possible, such as on another file system, the history is stored all the same. */
void second_name_make(const char *copies, const char *repository, int dir, const char *path,
                      const struct stat *st);
/* Returns the path of a kept history of this repository that is another file than the one with the
 * inode `now` (0: no history exists): the repository was cloned again, or restored from a backup.
 * Else returns NULL. The caller frees it. */
char *second_name_of_earlier(const char *copies, const char *repository, ino_t now);
/* Returns the second name of the file that `st` describes, or NULL. The caller frees it. A history
 * that lies in `copies` itself has none: its other name is the one in the repository. */
char *second_name_find(const char *copies, const struct stat *st, int dir, const char *path);
/* Removes a second name. Returns 0, or -1 with *e set. */
int second_name_remove(const char *copies, const char *name, struct err *e);
/* Makes it again. If that fails, the next append makes it. */
void second_name_restore(const char *copies, const char *name, int dir, const char *path);

/* Makes the work link in the open directory `tree`, relative, to the directory `dir`, unless
 * something has its name; a work link that leads nowhere, because git's directory was moved, is
 * replaced. First `/.aicoder` is added to git's info/exclude, once, so that no commit holds the
 * link; if that fails, also because others can write that file or it has another name, no link is
 * made. `common` is git's common directory. Failures are not
 * reported: everything works without the link. */
void work_link_make(int common, int tree, const char *tree_path, const char *dir);

#endif
