/*
 * regex - Perl-compatible regular expressions in UTF-8, by PCRE2 (pcre2pattern(3)), the same in
 * every locale.
 *
 * `^` and `$` match at every line, `.` does not match a newline; \w, \d, \b and the like follow
 * Unicode. A match is limited to PCRE2's default number of steps and to 256 MiB of memory. No other
 * module uses PCRE2.
 */
#ifndef CHATHIST_BASE_REGEX_H
#define CHATHIST_BASE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

struct regex;

/* Compiles a pattern; bytes that are not UTF-8 become U+FFFD. With `words`, no word character
 * (utf8_is_word) may be directly before or after a match. Returns NULL with *e set (ERR_USAGE) to
 * PCRE2's reason and the offset in bytes. */
struct regex *regex_new(struct str pattern, bool caseless, bool words, struct err *e);
/* Adds a text as a pattern that matches it. */
void regex_add_quoted(struct buf *out, struct str text);
/* The same for a pattern and text of bytes that need not be UTF-8: classes go by ASCII, and no
 * option is set. */
struct regex *regex_new_bytes(struct str pattern, struct err *e);
/* Returns the same expression for another thread, to be freed before `r`. It does not count for
 * regex_find that `r` is in use meanwhile. */
struct regex *regex_share(const struct regex *r);
void regex_free(struct regex *r);
/* The first match that begins at `from` (the start of a code point) or later: 1 and where it is in
 * text, 0; -1: ERR_FAILURE, a limit was reached. text must be UTF-8. Empty matches count only with
 * `empty_too`. Not for two threads at once. */
int regex_find(struct regex *r, struct str text, size_t from, bool empty_too, size_t *at,
               size_t *len, struct err *e);

#endif
