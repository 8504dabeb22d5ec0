/*
 * wide - wide strings, which libedit and curses want, from UTF-8 and back; how wide a text is.
 */
#ifndef CHATHIST_CLI_WIDE_H
#define CHATHIST_CLI_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#include "chathist/base/buf.h"

/* Makes the locale's characters those of UTF-8, the user's own locale if it has them: false when
 * the system knows none that does. */
bool wide_locale(void);

/* Zero-initialise. */
struct wide {
    wchar_t *at; /* ends with L'\0'; NULL before the first addition */
    size_t count, cap;
};

void wide_add(struct wide *w, const wchar_t *from, size_t n);
/* NUL has no place in a wide string, and is left out; what is no UTF-8 becomes U+FFFD. */
void wide_add_text(struct wide *w, struct str text);
void wide_release(struct wide *w);
/* Adds n wide characters as UTF-8. */
void wide_encode(struct buf *out, const wchar_t *from, size_t n);
/* Columns that a text takes on a terminal. */
size_t wide_columns(struct str text);
/* How many rows below its first one the end of n wide characters stands, laid out as libedit does
 * behind `before` columns of a prompt. */
size_t wide_rows(const wchar_t *text, size_t n, size_t before, size_t columns);

#endif
