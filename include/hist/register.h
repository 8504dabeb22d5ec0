/*
 * register - the histories in repositories that this user has made or accepted:
 * `${state_home}/chathist/histories`.
 *
 * JSON lines `{"path":"/abs/.aicoder","inode":123,"begins":"{\"id\":…"}`, appended under a lock.
 * The path is the one that realpath(3) gives; a directory that was unpacked or cloned over the old
 * place has another inode. `begins` is how the history file in it begins, its first REGISTER_BEGINS
 * bytes or less, each ill-formed sequence of UTF-8 as U+FFFD: a checkout may replace the files of a
 * directory that stays the same, and nobody else can guess the random part of the first line's id.
 * Of several entries for a path and inode the last counts. One without `begins` says "".
 *
 * While a history is rewritten, `becomes` says how it is about to begin; then either is right. When
 * that is done, the older entries for the directory go: they may hold the ids of what was erased.
 */
#ifndef CHATHIST_HIST_REGISTER_H
#define CHATHIST_HIST_REGISTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "hist/append.h"

#define REGISTER_BEGINS 64

/* Is the directory known, and with a history that begins like this (of `beginning` the first
 * REGISTER_BEGINS bytes count)? An empty one, or none, begins like any; one shorter than
 * REGISTER_BEGINS may be the start of what was entered, as a write that was cut off leaves it.
 * 1, 0, -1. A missing register, or one whose place is not known (NULL), knows nothing. */
int register_knows(const char *register_path, const char *dir, uint64_t inode, struct str beginning,
                   struct err *e);
/* Enters it unless the last entry says the same; with an empty beginning, unless there is an entry
 * at all. Makes the register, and the directories above it (0700), when they are missing. `wait` is
 * for its lock; NULL: the usual one. 0, -1. */
int register_enter(const char *register_path, const char *dir, uint64_t inode, struct str beginning,
                   struct append_wait *wait, struct err *e);

/* The directories that are in it, each once, in the order in which they were entered first. One
 * that is gone, or in whose place there is another by now, is left out. 0, -1; a missing register
 * has none. */
struct register_dirs {
    char **at;
    size_t count, cap;
};
int register_list(const char *register_path, struct register_dirs *dirs, struct err *e);
void register_dirs_release(struct register_dirs *dirs);

/* Enters it as one that begins like `now` and is about to begin like `next`. 0, -1. */
int register_enter_both(const char *register_path, const char *dir, uint64_t inode, struct str now,
                        struct str next, struct append_wait *wait, struct err *e);
/* Enters it in the place of all its entries, in a new file that is renamed over the register. 0,
 * -1: what was entered before still counts. */
int register_enter_only(const char *register_path, const char *dir, uint64_t inode,
                        struct str beginning, struct append_wait *wait, struct err *e);

#endif
