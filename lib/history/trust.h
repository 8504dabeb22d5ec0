/*
 * trust - tells a directory that this user's programs made, or that the user accepted, from one that
 * somebody else brought (chathist(5), "Trust").
 *
 * The mark is the file `owner` in the directory: it holds the user's token, a random text in
 * `${state_home}/chathist/token`, which an unpacked archive cannot know.
 */
#ifndef CHATHIST_HISTORY_TRUST_H
#define CHATHIST_HISTORY_TRUST_H

#include "chathist/base/err.h"

/* The name of the mark. */
#define TRUST_OWNER "owner"

/* Does the directory `dir` hold the user's token? Returns 1; 0, also if the user has no token yet or
 * token_path is NULL; -1 if the token cannot be read. */
int trust_has(int dir, const char *token_path, struct err *e);
/* Writes the mark, and makes the token if there is none. `owner_path` is for messages. 0, -1. */
int trust_put(int dir, const char *owner_path, const char *token_path, struct err *e);

#endif
