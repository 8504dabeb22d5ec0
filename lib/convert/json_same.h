/*
 * json_same - recognises JSON values that mean the same although their texts differ.
 *
 * Numbers are the same by value (`1` and `1.0`), strings by the text that they stand for, arrays
 * element by element, and objects whatever the order of their members. If an object has a name
 * twice, the last member counts.
 */
#ifndef CHATHIST_CONVERT_JSON_SAME_H
#define CHATHIST_CONVERT_JSON_SAME_H

#include "chathist/base/buf.h"

/* The longest text that one value may need. */
#define JSON_SAME_MAX (8 * BUF_LINE)

/* Adds a text to out that is equal for values that are the same, and for no others. `value` must be
 * one that json_check accepted, and lie in a text that a NUL byte or another character follows. */
void json_add_same(struct buf *out, struct str value);

#endif
