/*
 * base64 - bytes as text (RFC 4648 section 4, with padding, on one line).
 */
#ifndef CHATHIST_BASE_BASE64_H
#define CHATHIST_BASE_BASE64_H

#include "chathist/base/buf.h"

/* Adds the bytes in base64: 4 characters for each 3 bytes begun. */
void base64_add(struct buf *out, struct str bytes);

#endif
