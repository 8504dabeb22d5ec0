/*
 * schema_option - the value of `chat --schema`: the name of a file with a JSON Schema, or a line with
 * the fields of an object:
 *
 *     name, age int, tags [str], bio: a sentence about the person
 *
 * Fields are separated by commas, or by newlines if the text has one. A field has a name of letters,
 * digits, `_` and `-`; a type (else it is `str`); and after a colon a description. The
 * types are str, int, float, bool, and each of them in brackets for a list. The object has all of
 * the fields and no other one. A file of that name comes first, and a name alone is a file.
 */
#ifndef CHAT_SCHEMA_OPTION_H
#define CHAT_SCHEMA_OPTION_H

#include "chathist/base/error.h"
#include "chathist/llm/schema.h"

/* Returns the schema, an object as servers demand, or NULL with *e set (ERR_USAGE). The caller frees
 * it with schema_free. */
struct schema *schema_option_read(const char *value, struct err *e);

#endif
