/*
 * id - the ids of messages and sessions (chathist(5)), whose random parts are libuuid's, and the
 * token, whose random numbers come from the system.
 */
#ifndef CHATHIST_BASE_ID_H
#define CHATHIST_BASE_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* Adds `{epoch_ms}-{8 random hex digits}`. */
void id_add_message(struct buf *out, int64_t epoch_ms);
/* Adds `sess_{epoch_ms}_{6 random hex digits}`. */
void id_add_session(struct buf *out, int64_t epoch_ms);
/* Adds 64 random hex digits, which cannot be guessed. Returns 0, or -1 with *err set. */
int id_add_token(struct buf *out, struct err *e);

/* The number of hexadecimal digits at the end of a generated session id. */
#define ID_SESSION_DIGITS 6
/* Returns true if the id has the form of id_add_session. */
bool id_session_generated(struct str id);
/* Returns true if the id has that form, and `text` begins its digits. */
bool id_session_digits_begin(struct str id, struct str text);

/* Returns true if the id has the form of a UUID. */
bool id_is_uuid(struct str id);

/* Returns true if the id is valid as a session id, which any client may choose:
 * [A-Za-z0-9][A-Za-z0-9._:-]{0,127}. The words `current` and `last` are reserved and refused. */
bool id_session_valid(struct str id);

#endif
