/*
 * import_yaml - YAML as JSON. Only this file uses libyaml. Aliases are refused.
 */
#ifndef CHATHIST_CONVERT_IMPORT_YAML_H
#define CHATHIST_CONVERT_IMPORT_YAML_H

#include <stddef.h>

#include "chathist/base/buf.h"

/* Appends the first document as JSON. Returns NULL, or the reason of a failure in line *line. */
const char *import_yaml_to_json(struct str yaml, struct buf *out, size_t *line);

#endif
