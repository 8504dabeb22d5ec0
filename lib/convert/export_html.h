/* What the page of everything (chathist/convert/export_page.h) consists of. */
#ifndef CHATHIST_LIB_CONVERT_EXPORT_HTML_H
#define CHATHIST_LIB_CONVERT_EXPORT_HTML_H

#include "chathist/convert/export.h"

/* The page of a folder, which has no messages, and the file that has those of some sessions, whose
 * name is in the `file` of the former. */
extern const struct export_format export_html_index, export_html_part;

/* The folder of these files, beside the page. */
#define EXPORT_HTML_PARTS "parts"

/* Appends the line with which the page knows to which repository the sessions after it belong. */
void export_html_add_repository(struct buf *out, struct str name);

#endif
