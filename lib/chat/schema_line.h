/*
 * schema_line - a JSON Schema for an object in a line, for `chat --schema`:
 *
 *     name, age int, tags [str], bio: a sentence about the person
 *
 * Fields are separated by commas, or by newlines if the text has one. A field has a name of letters,
 * digits, `_` and `-`; a type, which is `str` if it has none; and after a colon a description. The
 * types are str, int, float, bool, and each of them in brackets for a list. The object has all of
 * the fields and no other one.
 */
#ifndef CHAT_SCHEMA_LINE_H
#define CHAT_SCHEMA_LINE_H

#include <stdbool.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

/* Returns whether the value of --schema, which names no file, is such a line: a name alone is not
 * one. */
bool schema_line_is(struct str text);
/* Adds the schema as JSON. Returns 0, or -1 with *e set (ERR_USAGE). */
int schema_line_write(struct str text, struct buf *out, struct err *e);

#endif
