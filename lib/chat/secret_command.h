/*
 * secret_command - gets a secret from a command of the user configuration, such as `pass show
 * KEY`, and keeps it in memory that is overwritten.
 */
#ifndef CHAT_SECRET_COMMAND_H
#define CHAT_SECRET_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* The most bytes of a secret, and of what a command prints. */
#define SECRET_MAX ((size_t)1 << 16)

/* Runs a command with /bin/sh in the directory `dir` (NULL: that of this process) and returns its
 * first line without blanks at the ends. Only the value of a header may have blanks in it.
 * `setting` is the key of the configuration, for messages. The caller overwrites the secret and
 * frees it. Returns NULL with *e set: ERR_USAGE if the command fails or prints no secret,
 * ERR_SIGNAL after a signal, which ends the command. The caller must not catch signals. */
char *secret_command_run(const char *command, const char *dir, const char *setting, bool header,
                         struct err *e);

/* Returns whether this can be sent in a header: it is not empty and has no control characters, and
 * without `blanks` no white space. */
bool secret_valid(struct str secret, bool blanks);
/* Overwrites a secret and frees it; NULL is allowed. */
void secret_free(char *secret);
/* A buffer of SECRET_MAX bytes. It has its full size at once, because growing would leave a copy of
 * the secret in freed memory. */
void secret_buf_init(struct buf *b);
/* Overwrites the buffer and frees it. */
void secret_buf_release(struct buf *b);

#endif
