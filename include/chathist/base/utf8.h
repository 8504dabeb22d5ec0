/*
 * utf8 - decodes, repairs and folds UTF-8, and knows kinds and widths of characters.
 *
 * Well-formed UTF-8 is defined by RFC 3629 and table 3-7 of the Unicode Standard. An ill-formed
 * sequence is a maximal subpart as in the WHATWG Encoding Standard: the longest beginning of a
 * well-formed sequence, or else one byte. Repairing replaces each by one U+FFFD.
 */
#ifndef CHATHIST_BASE_UTF8_H
#define CHATHIST_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Decodes the code point at the start of s (s.n > 0) and returns its length. For an ill-formed
 * sequence it returns the length of the sequence and sets *cp to -1. If s ends inside a sequence
 * that could still be completed, it returns 0 and sets *cp to -1. */
size_t utf8_decode(struct str s, int32_t *cp);
/* Encodes cp, a scalar value, into out[4]. Returns the number of bytes. */
size_t utf8_encode(int32_t cp, char out[4]);
/* Returns the length of the valid prefix of s, without a code point that the end of s cuts off. */
size_t utf8_valid(struct str s);
/* The same, but stops at the first ASCII character. */
size_t utf8_valid_beyond_ascii(struct str s);
/* Adds s to out and replaces each ill-formed sequence by U+FFFD. */
void utf8_add_repaired(struct buf *out, struct str s);
/* Returns true if the offset is inside a character: the byte there continues one. False for 0 and
 * for the end. */
bool utf8_inside(struct str s, size_t at);
/* Returns the first `count` code points of s, or all. An ill-formed sequence counts as one. */
struct str utf8_first(struct str s, size_t count);
size_t utf8_count(struct str s);

/* Adds s, folded code point by code point (base/fold). Ill-formed bytes are copied. */
void utf8_add_folded(struct buf *out, struct str s);
/* Returns true for a format character (category Cf), and for a space (Zs) other than the blank. */
bool utf8_is_format_or_space(int32_t cp);
/* Returns true for a word character, as \w of UTS #18: a letter, a mark, a digit, a connector such
 * as `_`, or a joiner. */
bool utf8_is_word(int32_t cp);
/* Returns the columns on a terminal: 0 for combining marks and controls, 2 for wide characters,
 * otherwise 1. */
int utf8_width(int32_t cp);
/* Returns as many whole code points of s as fit into `columns`. */
struct str utf8_fit(struct str s, size_t columns);

#endif
