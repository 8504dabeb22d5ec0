/*
 * schema - is a JSON value what a JSON Schema (2020-12) says?
 *
 *     base/schema_keyword   the keywords and their values
 *     base/schema_index     where the schemas lie in the text     text -> nodes
 *     base/schema_link      what references mean                   nodes -> nodes
 *     base/schema_apply     schemas in schemas                     nodes, value -> yes or no
 *     base/schema_assert    types, bounds, patterns
 *     base/schema_run       bounds, what was found wrong
 *
 * All of the core, applicator, unevaluated and validation vocabularies; `format` and all that is
 * not known are annotations (format-annotation), `$schema` is not followed: every schema is read as
 * one of 2020-12, and what an older draft had instead is refused where it says that it is one.
 *
 * Of json-schema-org/JSON-Schema-Test-Suite (44401e0, tests/draft2020-12, without optional/) all
 * hold but those that need another document: the meta-schema, `http://localhost:1234/…`, a
 * vocabulary of its own. Such a reference is an error, nothing is fetched.
 *
 * Numbers are compared exactly (base/decimal); `pattern` is ECMA-262's (base/ecma). Of a name that
 * an object has twice each value must hold. A check is bounded in depth and in steps.
 */
#ifndef CHATHIST_LLM_SCHEMA_H
#define CHATHIST_LLM_SCHEMA_H

#include "chathist/base/buf.h"
#include "chathist/base/err.h"

struct schema;

/* From JSON text, which is copied. NULL: it is no valid schema (ERR_USAGE); the message begins with
 * a JSON pointer into it, unless the whole is meant: `/properties/a/type: names no type`. */
struct schema *schema_new(struct str text, struct err *e);
void schema_free(struct schema *s);
/* The schema as it was given, one JSON value; borrowed. */
struct str schema_text(const struct schema *s);
/* Is a value that json_check accepted valid? -1: it is not, or cannot be told within the bounds
 * (ERR_FAILURE); the message begins with a JSON pointer into it: `/items/3: is not a number`. */
int schema_check(const struct schema *s, struct str value, struct err *e);

#endif
