/*
 * markdown_table - a table of GitHub Flavored Markdown, printed with columns.
 */
#ifndef CHATHIST_TERMINAL_MARKDOWN_TABLE_H
#define CHATHIST_TERMINAL_MARKDOWN_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"
#include "chathist/terminal/markdown.h"

/* Is the second line the delimiter row of a table whose header is the first one? */
bool markdown_table_begins(struct str header, struct str delimiter);

/* Chooses the widths of the columns for lines of a table, so that it fits into `columns`. Returns
 * an array for the caller to free, with *count columns; or NULL without room for it. */
size_t *markdown_table_widths(struct str lines, size_t columns, size_t *count);
/* Makes columns wider for a further line, as far as they fit into `columns`. */
void markdown_table_widen(size_t *widths, size_t count, struct str line, size_t columns);
/* Prints lines of a table in columns of these widths. `delimiter` is its delimiter row; if the
 * lines begin with the header, `headed` is set. */
void markdown_table_print(struct str lines, struct str delimiter, bool headed, const size_t *widths,
                          size_t count, markdown_fn *fn, void *arg);

#endif
