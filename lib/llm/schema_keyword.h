/*
 * schema_keyword - the keywords of JSON Schema 2020-12 (core, applicator, unevaluated, validation):
 * what value each may have, to which instances it applies, where in it further schemas lie.
 *
 * Others are annotations and count for nothing, `format` and the `content…` ones among them. No
 * schema is followed here: base/schema_index does that.
 */
#ifndef CHATHIST_LLM_SCHEMA_KEYWORD_H
#define CHATHIST_LLM_SCHEMA_KEYWORD_H

#include <stdbool.h>

#include "chathist/base/err.h"
#include "chathist/base/json.h"

enum schema_keyword_id {
    KW_ID,
    KW_REF,
    KW_ANCHOR,
    KW_DYNAMIC_REF,
    KW_DYNAMIC_ANCHOR,
    KW_DEFS,
    KW_TYPE,
    KW_ENUM,
    KW_CONST,
    KW_MULTIPLE_OF,
    KW_MAXIMUM,
    KW_EXCLUSIVE_MAXIMUM,
    KW_MINIMUM,
    KW_EXCLUSIVE_MINIMUM,
    KW_MAX_LENGTH,
    KW_MIN_LENGTH,
    KW_PATTERN,
    KW_MAX_ITEMS,
    KW_MIN_ITEMS,
    KW_UNIQUE_ITEMS,
    KW_MAX_CONTAINS,
    KW_MIN_CONTAINS,
    KW_MAX_PROPERTIES,
    KW_MIN_PROPERTIES,
    KW_REQUIRED,
    KW_DEPENDENT_REQUIRED,
    KW_PROPERTIES,
    KW_PATTERN_PROPERTIES,
    KW_ADDITIONAL_PROPERTIES,
    KW_PROPERTY_NAMES,
    KW_DEPENDENT_SCHEMAS,
    KW_PREFIX_ITEMS,
    KW_ITEMS,
    KW_CONTAINS,
    KW_ALL_OF,
    KW_ANY_OF,
    KW_ONE_OF,
    KW_NOT,
    KW_IF,
    KW_THEN,
    KW_ELSE,
    KW_UNEVALUATED_PROPERTIES,
    KW_UNEVALUATED_ITEMS,
    KW_COUNT
};

/* What the value is. */
enum schema_form {
    FORM_ANY,
    FORM_BOOL,
    FORM_TEXT,
    FORM_NAME, /* an anchor's */
    FORM_REGEX,
    FORM_NUMBER,
    FORM_DIVISOR,
    FORM_COUNT, /* an integer from 0 on */
    FORM_TYPES,
    FORM_ARRAY,
    FORM_NAMES,    /* an array of strings */
    FORM_NAMES_BY, /* an object of such arrays */
    FORM_SCHEMA,
    FORM_SCHEMAS,     /* an array of schemas, not empty */
    FORM_SCHEMAS_BY,  /* an object of schemas */
    FORM_SCHEMAS_FOR, /* an object of schemas, the names being expressions */
};

struct schema_keyword {
    const char *name;
    enum schema_form form;
    unsigned applies; /* to values of these types: bits 1 << enum json_type */
    bool in_place;    /* the schemas in it are for the instance itself, not for parts of it */
};

/* By the raw key of a member; KW_COUNT: it is none. */
enum schema_keyword_id schema_keyword_find(struct str raw_key);
const struct schema_keyword *schema_keyword_at(enum schema_keyword_id id);
/* Is it a value that the keyword may have? The schemas and expressions in it are not looked at. -1:
 * ERR_USAGE, `is not an object`. */
int schema_keyword_check(enum schema_keyword_id id, struct str value, struct err *e);

/* The types that a JSON Schema names: bits of a set. */
enum schema_type {
    SCHEMA_NULL = 1,
    SCHEMA_BOOLEAN = 2,
    SCHEMA_INTEGER = 4,
    SCHEMA_NUMBER = 8,
    SCHEMA_STRING = 16,
    SCHEMA_ARRAY = 32,
    SCHEMA_OBJECT = 64,
};
/* The set that a valid value of `type` means, and the one that a value belongs to: 1 is both an
 * integer and a number. */
unsigned schema_types_of(struct str value);
unsigned schema_types_have(struct str value);
/* Adds the names of a set: `a string or null`. */
void schema_add_types(struct buf *out, unsigned types);

#endif
