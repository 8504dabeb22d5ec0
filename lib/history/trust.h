/*
 * trust - which directories hold histories of this user.
 *
 * A directory that the user's programs made, or that the user accepted, is marked: its file `owner`
 * holds the user's token, a random text in `${state_home}/chathist/token`. An unpacked archive
 * cannot know the token (chathist(5), "Trust").
 *
 * The register `${state_home}/chathist/histories` lists the marked directories, so that programs
 * can look at all of them. It holds JSON lines `{"path":"/abs/.git/aicoder"}`, appended under a
 * lock. Being listed does not make a directory trusted.
 */
#ifndef CHATHIST_HISTORY_TRUST_H
#define CHATHIST_HISTORY_TRUST_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/error.h"
#include "chathist/history/append.h"

/* The name of the mark. */
#define TRUST_OWNER "owner"

/* Does the directory hold the user's token? Returns 1; 0, also if the user has no token yet or
 * token_path is NULL; -1 with *e set if the token cannot be read. */
int trust_marked(int dir, const char *token_path, struct err *e);
/* Marks a directory, and makes the token if it is missing. If the directory has no mark yet,
 * `clear` is called first, under the lock of the token: of several programs that start at once, one
 * clears the directory and marks it, and the others find the mark. `owner_path` is for messages,
 * `wait` for the lock. Returns 0, or -1 with *e set. */
int trust_mark(int dir, const char *owner_path, const char *token_path, struct append_wait *wait,
               int (*clear)(void *arg, struct err *e), void *arg, struct err *e);

/* Lists a directory, unless it is listed. Makes the register, and the directories above it (0700),
 * if they are missing. Returns 0, or -1 with *e set. */
int register_add(const char *register_path, const char *dir, struct append_wait *wait,
                 struct err *e);
/* Calls `found` for each listed directory, in the order in which they were added; not all of them
 * need exist. A missing register lists none. Returns 0, or -1 with *e set. */
int register_each(const char *register_path, void (*found)(void *arg, const char *dir), void *arg,
                  struct err *e);

#endif
