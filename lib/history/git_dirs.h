/*
 * git_dirs - finds the git directories of the repository that a directory lies in, without running
 * git.
 *
 * A repository has a common directory, which all of its worktrees share, and a git directory for
 * each worktree; for the main work tree both are the same. They are found as git finds them
 * (gitrepository-layout(5), git(1) "GIT_DIR"): through $GIT_DIR and $GIT_COMMON_DIR, or through
 * `.git` in the nearest parent directory, which is a directory, or a file that holds
 * "gitdir: PATH". A git directory has an entry HEAD; its file `commondir` names the common
 * directory, which holds `objects` and `refs`. A bare repository is recognised only through
 * $GIT_DIR.
 *
 * Nothing that belongs to another user is used. The directories are opened here, and everything
 * below them is reached through these descriptors.
 */
#ifndef CHATHIST_HISTORY_GIT_DIRS_H
#define CHATHIST_HISTORY_GIT_DIRS_H

#include "chathist/base/error.h"

struct git_dirs {
    int git, common;   /* descriptors; the same number in the main work tree */
    int tree;          /* the directory that holds `.git`; -1 when $GIT_DIR was used */
    char *git_path;    /* absolute, as are those below; for messages */
    char *common_path; /* without links */
    char *tree_path;   /* NULL when $GIT_DIR was used */
};

/* Finds the directories for `cwd`, an absolute path, and opens them. `dir` and `common` are $GIT_DIR
 * and $GIT_COMMON_DIR, NULL if unset. Returns 1; 0 if cwd is in no repository; 0 with *unusable set
 * (the caller frees it) to the end of a sentence if there is a repository but its directories cannot
 * be used: they are missing, damaged, or another user owns them; -1 with *e set if that could not be
 * determined. */
int git_dirs_open(struct git_dirs *g, const char *cwd, const char *dir, const char *common,
                  char **unusable, struct err *e);
void git_dirs_close(struct git_dirs *g);

#endif
