/*
 * json_check - is this text JSON?
 *
 * The grammar is RFC 8259. An unpaired surrogate escape and a repeated key are accepted, as
 * chathist(5) asks. Refused are invalid UTF-8, anything behind the value, raw control characters in
 * strings, and arrays and objects nested more than JSON_DEPTH deep.
 */
#ifndef CHATHIST_BASE_JSON_CHECK_H
#define CHATHIST_BASE_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "chathist/base/buf.h"

#define JSON_DEPTH 512

/* Is `text` exactly one JSON value, with white space round it at the most? On success *value is
 * the value without that white space. On failure *value is unspecified, and `*at` (may be NULL) is
 * the offset of the offending byte, text.n when the text ends too early. */
bool json_check(struct str text, struct str *value, size_t *at);
/* Is it nested more than JSON_DEPTH deep, and right as far as that? For messages that tell why. */
bool json_too_deep(struct str text);

/* The same, and on the way `member` is told each member of a text that is an object, in order: its
 * raw key and its value as json_next gives them. What it was told before a text turns out to be no
 * JSON means nothing. */
typedef void json_member(void *ctx, struct str raw_key, struct str value);
bool json_check_members(struct str text, struct str *value, json_member *member, void *ctx);
/* The same of an object that begins with its `{`, of which the caller has read and found right some
 * members up to `at`, behind a comma: only the other members are told. */
bool json_check_behind(struct str object, size_t at, struct str *value, json_member *member,
                       void *ctx);

#endif
