/*
 * sha256 - the hash SHA-256 (FIPS 180-4) and the keyed hash HMAC-SHA256 (RFC 2104), as the digits
 * of hexadecimal numbers in small letters.
 *
 * For a few hundred bytes, such as the mark of a history. libcrypto has the same and is faster for
 * images, but a program that links it starts half a millisecond later.
 */
#ifndef CHATHIST_BASE_SHA256_H
#define CHATHIST_BASE_SHA256_H

#include "chathist/base/buf.h"

/* The number of digits. */
#define SHA256_HEX ((size_t)64)

/* Adds the hash of a text. */
void sha256_add(struct buf *out, struct str text);
/* Adds the hash of a text with a key of any length. Whoever does not know the key cannot make it.
 */
void hmac_sha256_add(struct buf *out, struct str key, struct str text);

#endif
