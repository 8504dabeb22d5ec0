/*
 * utf8 - decoding, repairing and folding UTF-8; kinds and widths of characters.
 *
 * Well-formed is what RFC 3629 and table 3-7 of the Unicode Standard say. An ill-formed sequence is
 * a maximal subpart as in the WHATWG Encoding Standard: the longest beginning of a well-formed
 * sequence, else one byte. Each becomes one U+FFFD when text is repaired.
 */
#ifndef CHATHIST_BASE_UTF8_H
#define CHATHIST_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Decodes the code point at the start of s (s.n > 0) and returns the number of its bytes. An
 * ill-formed sequence: its length, and *cp is -1. A sequence that is cut off by the end of s but
 * could still be completed: 0, and *cp is -1. */
size_t utf8_decode(struct str s, int32_t *cp);
/* Encodes cp (a scalar value) into out[4], returns the number of bytes. */
size_t utf8_encode(int32_t cp, char out[4]);
/* Length of the valid prefix of s; a code point that is cut off does not belong to it. */
size_t utf8_valid(struct str s);
/* The same, but ending before the first ASCII character. */
size_t utf8_valid_beyond_ascii(struct str s);
/* Adds s to out with each ill-formed sequence as U+FFFD. */
void utf8_add_repaired(struct buf *out, struct str s);
/* Is a place inside a character: does the byte there continue one? None is at 0 and at the end. */
bool utf8_inside(struct str s, size_t at);
/* The first `count` code points of s, or all; an ill-formed sequence counts as one. */
struct str utf8_first(struct str s, size_t count);
size_t utf8_count(struct str s);

/* Adds s folded code point by code point (base/fold); ill-formed bytes are copied. */
void utf8_add_folded(struct buf *out, struct str s);
/* Is it a format character (category Cf), or a space (Zs) other than the blank? */
bool utf8_is_format_or_space(int32_t cp);
/* Is it a character of words, as \w of UTS #18: a letter, a mark, a digit, a connector such as `_`,
 * a joiner? */
bool utf8_is_word(int32_t cp);
/* Columns on a terminal: 0 for combining marks and controls, 2 for wide, else 1. */
int utf8_width(int32_t cp);
/* As much of s as fits into `columns`, whole code points. */
struct str utf8_fit(struct str s, size_t columns);

#endif
