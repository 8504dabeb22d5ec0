/*
 * schema - a JSON Schema for the answer (chat --schema): what services accept of it, and whether an
 * answer matches it.
 *
 * Of JSON Schema 2020-12 these keywords are checked, which model providers accept:
 *
 *     any value   type, enum, const, anyOf, $ref to `#`, `#/$defs/NAME` or `#/definitions/NAME`
 *     numbers     minimum, maximum, exclusiveMinimum, exclusiveMaximum
 *     objects     properties, required, additionalProperties
 *     arrays      items, minItems, maxItems
 *
 * Annotations such as title, description and format change nothing. Every other keyword is only
 * sent to the server; schema_unchecked names them, so that the caller can warn the user.
 *
 * Numbers are compared in double precision, as JavaScript does. If an object of an answer has a
 * name twice, each value must be valid. A check is bounded in depth and in steps.
 *
 * Each service accepts a part of JSON Schema in a field of the request and refuses the rest. The
 * providers know the field. If it cannot carry the schema, the system prompt does.
 */
#ifndef CHATHIST_LLM_SCHEMA_H
#define CHATHIST_LLM_SCHEMA_H

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

struct schema;

/* Parses and copies JSON text. Returns a new schema, or NULL with *e set (ERR_USAGE) if the text is
 * not a valid schema, has a name twice in an object, has a reference to a place that does not
 * exist, or refers to itself without end. The message begins with a JSON pointer to the mistake,
 * unless it is at the root: `/properties/a/type: names no type`. The caller frees the schema with
 * schema_free. */
struct schema *schema_new(struct str text, struct err *e);
void schema_free(struct schema *s); /* NULL is fine */

/* The JSON text of the schema, without white space around it; STR_NONE if s is NULL. Borrowed from
 * s. */
struct str schema_text(const struct schema *s);
/* Returns the services that accept every keyword of the schema, as bits of enum schema_dialect
 * (llm/provider.h); 0 if s is NULL. */
unsigned schema_fits(const struct schema *s);
/* The keywords in the schema that are not checked here: `'allOf', 'not'`. Empty if all are
 * checked. Borrowed from s. */
const char *schema_unchecked(const struct schema *s);
/* Checks a whole answer. Returns 0 if it is a single JSON value that is valid, or -1 with
 * *e set (ERR_FAILURE). The message has a JSON pointer to the first mistake: `/items/3: is not a
 * number`. White space around the value is allowed, a code fence is not. */
int schema_check(struct schema *s, struct str answer, struct err *e);

#endif
