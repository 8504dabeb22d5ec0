/*
 * vis - makes text safe to show on a terminal: control and escape sequences become visible and have
 * no effect.
 *
 * The visible forms are those of less(1):
 *
 *     ^X        C0 controls and DEL (^?)
 *     <U+XXXX>  C1 controls; bidi marks, embeddings, overrides and isolates (U+061C, U+200E,
 *               U+200F, U+202A to 202E, U+2066 to 2069); line and paragraph separators (U+2028,
 *               U+2029); the byte order mark U+FEFF; interlinear annotation (U+FFF9 to FFFB); tag
 *               characters and the variation selectors of ideographs (U+E0000 to E01EF), which can
 *               carry hidden text; other characters without a width, such as U+200B
 *     <XX>      each byte that is not part of well-formed UTF-8
 *
 * Newline and tab are not changed, nor is a CR before a newline. The zero-width joiners (U+200C,
 * U+200D) and the last two variation selectors (U+FE0E, U+FE0F) are not changed either, because
 * scripts and emoji need them. Sources: Unicode TR 36 and TR 9; the "Terminal DiLLMa" reports of
 * escape sequences in model output.
 */
#ifndef CHATHIST_BASE_VIS_H
#define CHATHIST_BASE_VIS_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/utf8.h"

/* Returns true if this code point must be shown in its visible form instead of being sent to a
 * terminal. False for newline and tab, true for CR and for values that are not scalar values. */
bool vis_unsafe(int32_t cp);

/* Like vis_unsafe, but for text that a user reads before something is run. Also true for every
 * character without a width, and for spaces that look like a blank. */
bool vis_hidden(int32_t cp);

/* The state for text that arrives in pieces of any size. Initialise with zeros. */
struct vis {
    char held[4]; /* an incomplete code point, or a CR that may precede a newline */
    size_t held_len;
};
void vis_feed(struct vis *v, struct str piece, struct buf *out);
/* Ends the text. v can then be used for another one. */
void vis_end(struct vis *v, struct buf *out);

/* Adds a whole text. */
void vis_add(struct buf *out, struct str text);
/* Adds a text as one line: each run of white space becomes one blank, and is removed at the ends.
 * The rest is added as by vis_add if `safe`, otherwise byte for byte. White space is that of ASCII,
 * and U+0085, U+2028 and U+2029. */
void vis_add_line(struct buf *out, struct str text, bool safe);

#endif
