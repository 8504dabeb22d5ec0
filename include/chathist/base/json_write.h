/*
 * json_write - adds JSON to a buf, piece by piece.
 *
 * The output is compact, without white space between tokens.
 */
#ifndef CHATHIST_BASE_JSON_WRITE_H
#define CHATHIST_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

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
/* Adds an object in the same compact form. If the value is a string, adds the object that its text
 * is, or the string if the text is not an object. Returns false, and adds nothing, for any other
 * value. */
bool json_add_unpacked(struct buf *out, struct str value);

#endif
