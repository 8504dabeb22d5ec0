/*
 * sha256 - the SHA-256 hash (FIPS 180-4) of bytes, by libmd.
 *
 * It identifies an attachment whose data is not kept. Checksums of our own files are in
 * base/checksum.
 */
#ifndef CHATHIST_BASE_SHA256_H
#define CHATHIST_BASE_SHA256_H

#include "chathist/base/buf.h"

/* The size of the text with its NUL. */
#define SHA256_TEXT 65

/* Writes the hash as 64 hexadecimal digits, as sha256sum(1) prints it, and a NUL. */
void sha256_text(struct str bytes, char text[static SHA256_TEXT]);

#endif
