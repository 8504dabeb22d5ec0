/*
 * markdown_out - prints Markdown on standard output, a terminal: laid out by markdown_layout, in the
 * colours of cli/palette.
 */
#ifndef CHATHIST_TERMINAL_MARKDOWN_OUT_H
#define CHATHIST_TERMINAL_MARKDOWN_OUT_H

#include "chathist/cli/output.h"
#include "chathist/terminal/markdown_layout.h"

/* Returns the style of code of that kind (MARKDOWN_KINDS), or STYLE_NONE. */
enum style markdown_kind_style(unsigned styles);
/* Sets up a layout that prints to `out`. The caller calls markdown_layout_release. */
void markdown_out_init(struct markdown_layout *l, struct out *out);
/* Prints a whole text, and a newline after it unless it ends with one. */
void markdown_print(struct out *out, struct str text);

#endif
