/*
 * schema_apply - a schema applied to a value: its keywords, and the schemas within it, to the value
 * and its parts.
 */
#ifndef CHATHIST_LLM_SCHEMA_APPLY_H
#define CHATHIST_LLM_SCHEMA_APPLY_H

#include "llm/schema_run.h"

/* Is the value valid against a schema that the index knows? What is wrong is noted. `marks` (may be
 * NULL) gets what was looked at, if it is valid. */
bool schema_apply(struct schema_run *run, struct str schema, const struct schema_place *place,
                  struct str value, struct schema_marks *marks);

#endif
