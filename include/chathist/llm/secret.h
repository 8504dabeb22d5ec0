/*
 * secret - keys and other secrets of requests, which a server may repeat.
 */
#ifndef CHATHIST_LLM_SECRET_H
#define CHATHIST_LLM_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"

/* A server may repeat the key that it was sent. secret_of returns the key without blanks around it
 * if it has at least SECRET_MIN bytes, otherwise STR_NONE. Such a key is masked in errors and
 * removed from the environment of tools. `key` may be NULL. */
#define SECRET_MIN 8
struct str secret_of(const char *key);
/* Like secret_of, but returns STR_NONE if the secret may occur in ordinary text, as placeholders
 * such as `not-needed` do, which servers without keys are given. A response is stored as it came, so
 * such a key is not masked there. The other keys consist of printable ASCII characters without
 * blanks and have a letter and a digit among them, or at least SECRET_LONG characters. */
#define SECRET_LONG 20
struct str secret_distinct(const char *key);
/* Replaces each secret in the bytes of b from `from` on with `***`, but does not change the first
 * `fixed` bytes. STR_NONE replaces nothing. */
void secret_mask(struct buf *b, struct str secret, size_t from, size_t fixed);

#endif
