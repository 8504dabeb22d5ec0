/*
 * simd_text - checks the bytes of JSON strings and lines, many at a time.
 */
#ifndef CHATHIST_BASE_SIMD_TEXT_H
#define CHATHIST_BASE_SIMD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/simd.h"

/* Passes over text inside a JSON string, from p, where a code point begins. Returns the first byte
 * that is neither plain nor part of an escape of two characters: the closing quote, the backslash
 * of \uXXXX or of an invalid escape, a control character; or `end`. It may stop earlier at the
 * first byte of a code point beyond ASCII, which the caller then checks. The text before the result
 * is valid UTF-8. */
const char *simd_special(const char *p, const char *end);
/* Does the same by a variant that simd_can accepts; some variants are the portable one. Variants
 * may differ in whether they stop at code points beyond ASCII. */
const char *simd_special_with(enum simd with, const char *p, const char *end);
/* Returns whether n bytes of a JSON string stand for themselves: ASCII without quotes, backslashes
 * and control characters. */
bool simd_all_plain(const char *p, size_t n);
/* Returns the offset after the last newline of n bytes, or 0 without one. */
size_t simd_after_newline(const char *p, size_t n);

#endif
