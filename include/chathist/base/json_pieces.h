/*
 * json_pieces - a text that comes in pieces, each a string of JSON. There are servers that cut it
 * by UTF-16 units, which can be between the two escapes of a pair of surrogates (JSON.stringify
 * writes a lone one as an escape since ECMAScript 2019): they are joined.
 */
#ifndef CHATHIST_BASE_JSON_PIECES_H
#define CHATHIST_BASE_JSON_PIECES_H

#include <stdint.h>

#include "chathist/base/buf.h"

/* Zero-initialise. */
struct json_pieces {
    int32_t half; /* the first one of a pair that ended the last piece; 0: none did */
};

/* Adds a piece decoded, but for the first half of a pair at its end, which is held. What is no
 * string adds nothing. */
void json_pieces_add(struct json_pieces *p, struct str string, struct buf *out);
/* No more pieces come: adds U+FFFD for what is held. */
void json_pieces_end(struct json_pieces *p, struct buf *out);

#endif
