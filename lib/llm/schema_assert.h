/*
 * schema_assert - the keywords of JSON Schema's validation vocabulary: those that need no other
 * schema.
 */
#ifndef CHATHIST_LLM_SCHEMA_ASSERT_H
#define CHATHIST_LLM_SCHEMA_ASSERT_H

#include "llm/schema_keyword.h"
#include "llm/schema_run.h"

/* Does the value hold to the keyword, which applies to values of its type? What is wrong is noted.
 * A keyword of another vocabulary is held to. */
bool schema_assert(enum schema_keyword_id id, const struct schema_at *at);

#endif
