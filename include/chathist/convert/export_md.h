/*
 * export_md - a conversation as Markdown (CommonMark 0.31 with fenced code).
 *
 * A heading of level 1 for each session, of level 2 for each message. Content stands as it was
 * written, so that its lists, tables and code are seen as such, but for what would break the
 * document's own structure: its headings become two levels lower (`#` gets two more, six at most;
 * the line below a heading that is underlined is escaped), a code fence that is left open is
 * closed, and what would begin an HTML block that nothing ends has its `<` escaped. Arguments of
 * tools and their results are code, in a fence longer than any inside.
 */
#ifndef CHATHIST_CONVERT_EXPORT_MD_H
#define CHATHIST_CONVERT_EXPORT_MD_H

#include "chathist/convert/export.h"

extern const struct export_format export_md;

#endif
