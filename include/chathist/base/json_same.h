/*
 * json_same - when are two JSON values the same?
 *
 * As JSON Schema says: numbers by their value (`1` and `1.0`), strings by what they stand for,
 * objects whatever the order of their members, arrays with it. Of a repeated name the last member
 * counts. All values must be what json_check accepted.
 */
#ifndef CHATHIST_BASE_JSON_SAME_H
#define CHATHIST_BASE_JSON_SAME_H

#include <stdbool.h>

#include "chathist/base/buf.h"

/* The most that the text of one value may hold. */
#define JSON_SAME_MAX (8 * BUF_LINE)

/* Adds text that is the same for values that are the same, and for no others. */
void json_add_same(struct buf *out, struct str value);
bool json_same(struct str a, struct str b);
/* As json_get, by the raw key of another member. */
struct str json_get_same(struct str object, struct str raw_key);

#endif
