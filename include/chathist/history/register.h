/*
 * register - the list of directories in which this user has histories:
 * `${state_home}/chathist/histories`, for programs that look at all of them.
 *
 * It holds JSON lines `{"path":"/abs/.git/aicoder"}`, appended under a lock, one for each directory.
 * Whether a history is trusted does not depend on it. Lines of older versions also hold the inode of
 * the directory and the beginning of its history.
 */
#ifndef CHATHIST_HISTORY_REGISTER_H
#define CHATHIST_HISTORY_REGISTER_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/err.h"
#include "chathist/history/append.h"

/* Adds a directory unless it is listed. Makes the register, and the directories above it (0700), if
 * they are missing. `wait` is for its lock. 0, -1. */
int register_add(const char *register_path, const char *dir, struct append_wait *wait,
                 struct err *e);

/* The directories that are listed and exist, each once, in the order in which they were added. A
 * missing register lists none. 0, -1. */
struct register_dirs {
    char **at;
    size_t count, cap;
};
int register_list(const char *register_path, struct register_dirs *dirs, struct err *e);
void register_dirs_release(struct register_dirs *dirs);

/* Did an older version list this directory, with this inode? 1, 0, -1. */
int register_lists_inode(const char *register_path, const char *dir, uint64_t inode, struct err *e);

#endif
