/*
 * json - reads JSON in place.
 *
 * A value is a struct str: its exact bytes inside the text that was parsed, borrowed from it.
 * json_check validates a text once, and the other functions walk it; no tree is built. So fields
 * that this version does not know keep their bytes, large integers stay exact, and strings may hold
 * U+0000.
 *
 * The functions at the end add JSON to a buf, piece by piece. base/cjson builds whole documents.
 */
#ifndef CHATHIST_BASE_JSON_H
#define CHATHIST_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* ---- checking ----
 *
 * The grammar is RFC 8259. An unpaired surrogate escape and a repeated key are accepted, as
 * chathist(5) requires. Invalid UTF-8, text after the value, raw control characters in strings, and
 * nesting deeper than JSON_DEPTH are refused. */

#define JSON_DEPTH 512

/* Returns true if `text` is exactly one JSON value, with optional white space around it. *value is
 * then the value without that white space. Otherwise *value is unspecified, and *at (`at` may be
 * NULL) is the offset of the offending byte, or text.n if the text ends too early. */
bool json_check(struct str text, struct str *value, size_t *at);
/* Returns true if the text is valid up to a point where it is nested deeper than JSON_DEPTH. This
 * is for error messages. */
bool json_too_deep(struct str text);

/* Checks the text and, if it is an object, calls `member` for each member in order, with its raw
 * key and its value as json_next gives them. If the text turns out to be invalid, ignore the
 * earlier calls. */
typedef void json_member(void *ctx, struct str raw_key, struct str value);
bool json_check_members(struct str text, struct str *value, json_member *member, void *ctx);
/* The same for an object whose first members the caller has already checked. `at` is the offset
 * after the comma that follows them; `member` is called for the remaining members only. */
bool json_check_from(struct str object, size_t at, struct str *value, json_member *member,
                     void *ctx);

/* ---- walking ----
 *
 * The functions below require a value that json_check accepted, or a part of it that they
 * returned. */

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
 *         use(it.key, it.value);
 *
 * The key is the raw body of the string, with its escapes; in an array it is STR_NONE. Any other
 * value has no elements.
 */
struct json_iter {
    struct str rest;
    struct str key;
    struct str value;
    bool object;
};
struct json_iter json_iter(struct str value);
bool json_next(struct json_iter *it);
/* Walks the strings, numbers and words inside a value of any depth, in order, without the keys of
 * objects. *rest is the value at first. Returns true and the next one, or false at the end. */
bool json_next_leaf(struct str *rest, struct str *leaf);
/* Returns true if the raw key of a member is this name, whatever escapes it uses. */
bool json_key_is(struct str raw_key, const char *name);

/* Returns the last member of that name, or STR_NONE if it is absent or the value is not an object.
 * Upper and lower case differ. Each call scans the whole object. */
struct str json_get(struct str object, const char *key);
/* Gets n members in one scan. */
void json_pick(struct str object, const char *const *keys, struct str *values, size_t n);
/* Returns the element of an array at index i, from 0, or STR_NONE if it does not exist or
 * the value is not an array. */
struct str json_at(struct str array, size_t i);

/* Returns whether two values are the same: objects with the same members in any order, strings
 * with any escapes. Numbers are the same if they are written alike. Objects that
 * have a name twice, or one with U+0000, may be taken for different or the same. */
bool json_equal(struct str a, struct str b);

/* ---- strings ---- */

/* Returns the text between the quotes of a string, with its escapes, or STR_NONE for any other
 * value. */
struct str json_body(struct str string);
/* Returns true if the value is a string without escapes. */
bool json_plain(struct str string);
/* Returns the decoded text of a string; an unpaired surrogate escape becomes U+FFFD. The result
 * borrows from the value if it is plain, otherwise from `scratch`, and clears that first. Returns
 * STR_NONE if the value is not a string. */
struct str json_text(struct str string, struct buf *scratch);
/* Adds the decoded string to out. Returns false, and adds nothing, if the value is not a string.
 * json_decode_body does the same for the text between the quotes. */
bool json_decode(struct str string, struct buf *out);
void json_decode_body(struct str body, struct buf *out);

/* Returns true if the value is a string with this text. */
bool json_is_text(struct str value, const char *text);
/* Returns true if the member `type` of an object is this text. */
bool json_has_type(struct str object, const char *type);
/* Returns the value of the four hexadecimal digits of a \uXXXX at p, or -1 if they are missing. */
int32_t json_hex4(const char *p, const char *end);
/* Returns true if the value is half of a surrogate pair. */
bool json_is_surrogate(int32_t unit);

/* A text that arrives in pieces, each a JSON string. Some servers split the text between UTF-16
 * units, which can be between the two escapes of a surrogate pair (JSON.stringify writes a lone
 * surrogate as an escape since ECMAScript 2019). The halves are joined. Initialise with zeros. */
struct json_pieces {
    int32_t half; /* the first half of a pair that ended the last piece, or 0 */
};
/* Adds a decoded piece, except for the first half of a pair at its end: that is held until the
 * next piece. A value that is not a string adds nothing. */
void json_pieces_add(struct json_pieces *p, struct str string, struct buf *out);
/* Ends the text: adds U+FFFD for a half that is still held. */
void json_pieces_end(struct json_pieces *p, struct buf *out);

/* ---- numbers ---- */

/* If the number is an integer in the range of int64_t, in any notation (`5`, `5.0`, `50e-1`), sets
 * *out exactly and returns true. */
bool json_int(struct str number, int64_t *out);

/* ---- writing: compact, without white space between tokens ---- */

/* Adds a quoted string. `"`, `\` and control characters are escaped (\b \f
 *  \r \t, else \u00xx); all other text is unchanged. An ill-formed UTF-8 sequence becomes U+FFFD.
 */
void json_add_string(struct buf *out, struct str text);

/* Adds existing JSON in a form that is safe on a terminal: each character in its strings for which
 * vis_unsafe is true becomes \uXXXX, and a CR between its tokens becomes a blank. Other bytes stay
 * unchanged. */
void json_add_visible(struct buf *out, struct str json);
/* Does the same for every hidden character (vis_hidden), for JSON that a user has to approve. */
void json_add_all_visible(struct buf *out, struct str json);

/* Adds `"key":`, with a comma before it unless out is empty or ends with `{`, `[` or `:`. */
void json_add_key(struct buf *out, const char *key);
/* Add `"key":"text"` and `"key":number`, with a comma as above. */
void json_add_member(struct buf *out, const char *key, struct str text);
void json_add_member_int(struct buf *out, const char *key, int64_t n);

/* Adds a value that json_check accepted, without the white space between its tokens and otherwise
 * byte for byte. `value` must not be part of out. */
void json_add_compact(struct buf *out, struct str value);
/* Adds a value that json_check accepted. Of the escapes in its strings only those stay that
 * json_add_string needs; U+0000 and half of a surrogate pair become U+FFFD. */
void json_add_plain(struct buf *out, struct str value);
/* Adds an object in the same compact form. If the value is a string, adds the object that its text
 * is, or the string if the text is not an object. Returns false, and adds nothing, for any other
 * value. */
bool json_add_object(struct buf *out, struct str value);

#endif
