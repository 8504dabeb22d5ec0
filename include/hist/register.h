/*
 * register - the histories in repositories that this user has made or accepted:
 * `${state_home}/chathist/histories`.
 *
 * JSON lines `{"path":"/abs/.aicoder","inode":123}`, appended under a lock. A directory is known
 * when both agree: one that was unpacked or cloned over the old place has another inode. The path
 * is the one that realpath(3) gives.
 */
#ifndef CHATHIST_HIST_REGISTER_H
#define CHATHIST_HIST_REGISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* 1 known, 0 not, -1. A missing register knows nothing. */
int register_knows(const char *register_path, const char *dir, uint64_t inode, struct err *e);
/* Makes the register, and the directories above it (0700), when they are missing. 0, -1. */
int register_enter(const char *register_path, const char *dir, uint64_t inode, struct err *e);

#endif
