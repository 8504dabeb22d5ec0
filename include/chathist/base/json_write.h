/*
 * json_write - JSON added to a buf, piece by piece.
 *
 * What is written is compact: no white space between tokens.
 */
#ifndef CHATHIST_BASE_JSON_WRITE_H
#define CHATHIST_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* A string, quoted: `"`, `\` and control characters are escaped (\b \f \n \r \t, else \u00xx),
 * all other text stays raw; an ill-formed UTF-8 sequence becomes U+FFFD. */
void json_add_string(struct buf *out, struct str text);

/* JSON that was written already, for a terminal: all in its strings that vis_unsafe knows becomes
 * \uXXXX, a CR between its tokens a blank; the rest stays byte for byte. */
void json_add_visible(struct buf *out, struct str json);
/* The same with every hidden character (vis_hidden), for JSON that a user is asked about. */
void json_add_all_visible(struct buf *out, struct str json);

/* `"key":`, with a comma before it unless out is empty or ends with `{`, `[` or `:`. */
void json_add_key(struct buf *out, const char *key);
/* `"key":"text"` and `"key":number`, with the comma as above. */
void json_add_member(struct buf *out, const char *key, struct str text);
void json_add_member_int(struct buf *out, const char *key, int64_t n);

/* A value that json_check accepted, without the white space between its tokens, all else byte for
 * byte. `value` must not lie in out. */
void json_add_compact(struct buf *out, struct str value);
/* The object that such a value is, or that its text is when it is a string, else the string;
 * likewise compact. false: it is neither, and nothing is added. */
bool json_add_unpacked(struct buf *out, struct str value);

#endif
