/*
 * json - reading JSON where it lies.
 *
 * A value is a struct str: its exact bytes inside the text that was parsed, borrowed from it. No
 * tree is built: json_check validates the text once, the functions below walk it. This is what
 * keeps fields that this version does not know byte for byte, large integers exact, and U+0000
 * inside strings.
 *
 *     base/json_check   is it JSON?                    struct str -> value
 *     base/json         walking and decoding values    value -> member, text, number
 *     base/json_write   writing                        text, number -> struct buf
 *
 * All of them come with this header.
 */
#ifndef CHATHIST_BASE_JSON_H
#define CHATHIST_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/json_check.h"
#include "chathist/base/json_write.h"

/* All functions below want a value that json_check accepted, or a part of one that they gave. */

enum json_type {
    JSON_INVALID, /* absent: an empty struct str */
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};
enum json_type json_type(struct str value);
bool json_is_null(struct str value); /* null or absent */
bool json_is_true(struct str value);

/*
 * Walks an object's members or an array's elements in order:
 *
 *     struct json_iter it = json_iter(value);
 *     while (json_next(&it))
 *         … it.key, it.value …
 *
 * The key is the raw body of the string, escapes and all; in an array it is STR_NONE. A value that
 * is neither object nor array has no elements.
 */
struct json_iter {
    struct str rest;
    struct str key;
    struct str value;
    bool object;
};
struct json_iter json_iter(struct str value);
bool json_next(struct json_iter *it);
/* Is the raw key of a member this name, whatever escapes it uses? */
bool json_key_is(struct str raw_key, const char *name);

/* The last member of that name, STR_NONE when it is absent or the value is not an object. Upper and
 * lower case differ. Each call passes over the whole object. */
struct str json_get(struct str object, const char *key);
/* The same for n names at once, in one pass. */
void json_pick(struct str object, const char *const *keys, struct str *values, size_t n);
/* The i-th element of an array, counted from 0; STR_NONE beyond its end, or when it is no array. */
struct str json_at(struct str array, size_t i);

/* What stands between the quotes of a string, escapes and all; STR_NONE when it is none. */
struct str json_body(struct str string);
/* A string value decoded; an unpaired surrogate escape becomes U+FFFD. json_plain: it has no
 * escape, its bytes stand for themselves. json_text borrows from the value in that case; else it
 * decodes into `scratch` (cleared first) and borrows from there. STR_NONE when it is no string. */
bool json_plain(struct str string);
struct str json_text(struct str string, struct buf *scratch);
/* Adds the decoded string to out. false, and nothing added, when it is not a string. The same of
 * what stands between the quotes. A text that comes in pieces is decoded by base/json_pieces. */
bool json_decode(struct str string, struct buf *out);
void json_decode_body(struct str body, struct buf *out);

/* Is the member `type` of an object this text? */
bool json_has_type(struct str object, const char *type);
/* The value of the four hexadecimal digits of a \uXXXX at p, -1 when they are not there; and is it
 * half of a pair? */
int32_t json_hex4(const char *p, const char *end);
bool json_is_surrogate(int32_t unit);
/* The code point of a pair of surrogates; -1: it is none. */
int32_t json_pair(int32_t first, int32_t second);

/* A number that is an integer in the range of int64_t, however written (`5`, `5.0`, `50e-1`): true
 * and *out, exact to the last digit. */
bool json_int(struct str number, int64_t *out);

#endif
