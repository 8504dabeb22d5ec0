/*
 * formats - the formats that a history is exported in. Each is a module port/export_NAME.
 */
#ifndef CHATHIST_CONVERT_FORMATS_H
#define CHATHIST_CONVERT_FORMATS_H

#include "chathist/base/buf.h"
#include "chathist/convert/export.h"

/* All of them, the default first; NULL ends. */
extern const struct export_format *const export_formats[];

/* By name; by the suffix of a file name (of several formats with one suffix the first in the
 * table); NULL: there is none. */
const struct export_format *export_format_named(struct str name);
const struct export_format *export_format_of(const char *path);
/* Adds the names, as `md, json or txt`. */
void export_format_names(struct buf *out);

#endif
