/*
 * wide - wide strings, as libedit and curses take them, from and to UTF-8, and the width of text.
 */
#ifndef CHATHIST_CLI_WIDE_H
#define CHATHIST_CLI_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

#include "chathist/base/buf.h"

/* Sets the locale's characters to UTF-8, with the user's own locale if possible. Returns false if
 * the system has no locale with UTF-8. */
bool wide_locale(void);

/* Zero-initialise. */
struct wide {
    wchar_t *at; /* ends with L'\0'; NULL before the first addition */
    size_t count, cap;
};

void wide_add(struct wide *w, const wchar_t *from, size_t n);
/* Adds UTF-8 without NUL; invalid bytes become U+FFFD. */
void wide_add_text(struct wide *w, struct str text);
void wide_release(struct wide *w);
/* Adds n wide characters to a buffer as UTF-8. */
void wide_encode(struct buf *out, const wchar_t *from, size_t n);
/* Returns the columns that a text takes on a terminal. */
size_t wide_columns(struct str text);
/* Adds as much of a visible text as fits into `columns`, with `…` at its end if it was cut. */
void wide_add_fitted(struct buf *out, struct str text, size_t columns);
/* Adds the end of a visible text in exactly `columns`: with `…` before it if it was cut, else with
 * blanks after it. */
void wide_add_end(struct buf *out, struct str text, size_t columns);
/* A place on a terminal, counted from the start of a text. */
struct wide_place {
    size_t row, column;
};
/* Moves a place to the end of a character, as libedit prints it on a terminal of this width. */
void wide_advance(struct wide_place *at, wchar_t c, size_t columns);
/* Returns how many rows the end of n wide characters is below their first row, as libedit prints
 * them after a prompt of `before` columns. */
size_t wide_rows(const wchar_t *text, size_t n, size_t before, size_t columns);

#endif
