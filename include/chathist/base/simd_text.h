/*
 * simd_text - the bytes of JSON strings and of lines looked at many at a time.
 */
#ifndef CHATHIST_BASE_SIMD_TEXT_H
#define CHATHIST_BASE_SIMD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/simd.h"

/* From p on inside a JSON string, not within a valid code point, the first byte that is
 * neither plain nor of an escape of two characters: the closing quote, the backslash of \uXXXX or
 * of what is no escape, a control character; `end` when there is none. Or, before that, the first
 * byte of a code point beyond ASCII, which the caller is to look at: what is before it is UTF-8. */
const char *simd_special(const char *p, const char *end);
/* The same by a variant that simd_can use; what has none of its own is the portable one. One passes
 * over what is UTF-8, another stops at it. */
const char *simd_special_with(enum simd with, const char *p, const char *end);
/* Do n bytes of a JSON string stand for themselves: ASCII, no quote, backslash or control
 * character? */
bool simd_all_plain(const char *p, size_t n);
/* The offset behind the last newline of n bytes, 0 when there is none. */
size_t simd_behind_newline(const char *p, size_t n);

#endif
