/*
 * vis - text made safe to show on a terminal: control and escape sequences are shown, never obeyed.
 *
 * Shown as less(1) does:
 *     ^X        C0 controls and DEL (^?)
 *     <U+XXXX>  C1 controls; bidi marks, embeddings, overrides and isolates (U+061C, U+200E,
 *               U+200F, U+202A to 202E, U+2066 to 2069); line and paragraph separators (U+2028,
 *               U+2029); the byte order mark U+FEFF; interlinear annotation (U+FFF9 to FFFB); tag
 *               characters and the variation selectors of ideographs (U+E0000 to E01EF), which can
 *               carry hidden text; other characters without a width, such as U+200B
 *     <XX>      each byte that is not part of well-formed UTF-8
 *
 * Newline and tab pass, and a CR before a newline. The zero-width joiners (U+200C, U+200D) and the
 * last two variation selectors (U+FE0E, U+FE0F) pass: scripts and emoji need them.
 * Sources: Unicode TR 36 and TR 9; the "Terminal DiLLMa" reports of escape sequences in model
 * output.
 */
#ifndef CHATHIST_BASE_VIS_H
#define CHATHIST_BASE_VIS_H

#include <stdbool.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/utf8.h"

/* Must this code point be shown instead of sent? Newline and tab: no; CR: yes; what is no scalar
 * value: yes. */
bool vis_unsafe(int32_t cp);

/* Like vis_unsafe, but for text that is judged before something is run: also true for every character
 * without a width, and for spaces that look like a blank. */
bool vis_hidden(int32_t cp);

/* A stream of text in pieces of any size. Zero-initialise. */
struct vis {
    char held[4]; /* a code point whose end has not come yet, or a CR that waits for its newline */
    size_t held_len;
};
void vis_feed(struct vis *v, struct str piece, struct buf *out);
/* End of the text. v may be fed another one afterwards. */
void vis_end(struct vis *v, struct buf *out);

/* A whole text at once. */
void vis_add(struct buf *out, struct str text);
/* A text on one line: each run of white space becomes one blank, and none at the ends; the rest as
 * by vis_add when `safe`, else byte for byte. White space is that of ASCII, U+0085, U+2028 and
 * U+2029. */
void vis_add_line(struct buf *out, struct str text, bool safe);

#endif
