/*
 * work_link - the symbolic link `.aicoder` in a main work tree, which leads people, grep and jq to
 * the repository's history. The programs never follow it.
 */
#ifndef CHATHIST_HISTORY_WORK_LINK_H
#define CHATHIST_HISTORY_WORK_LINK_H

#include "chathist/history/git_dirs.h"

/* Makes the link, relative, to `dir`, the absolute path of the directory of the history, unless
 * something has that name. First `/.aicoder` is added to git's info/exclude, once, so that no
 * commit holds the link; if that fails, no link is made. Does nothing in a linked worktree. Failures
 * are not reported: everything works without the link. */
void work_link_make(const struct git_dirs *g, const char *dir);

#endif
