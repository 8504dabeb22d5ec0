/*
 * id - the ids of messages and sessions (chathist(5)). Random parts come from libuuid.
 */
#ifndef CHATHIST_BASE_ID_H
#define CHATHIST_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* Adds `{epoch_ms}-{8 hex digits of a random UUID}`. */
void id_add_message(struct buf *out, int64_t epoch_ms);
/* Adds `sess_{epoch_ms}_{6 hex digits of a random UUID}`. */
void id_add_session(struct buf *out, int64_t epoch_ms);
/* Adds 64 hex digits of two random UUIDs: a text that nobody can guess. */
void id_add_token(struct buf *out);

/* The hexadecimal digits at the end of such an id. */
#define ID_SESSION_DIGITS 6
/* Is it an id in the form of id_add_session? */
bool id_session_generated(struct str id);

/* Is it a session id as any client may make it, [A-Za-z0-9][A-Za-z0-9._:-]{0,127}? The words
 * `current` and `last` are reserved and refused. */
bool id_session_valid(struct str id);

#endif
