/*
 * utf8 - decodes, repairs and folds UTF-8, knows kinds and widths of characters, and makes text
 * safe for a terminal.
 *
 * Well-formed UTF-8 is defined by RFC 3629 and table 3-7 of the Unicode Standard. An ill-formed
 * sequence is a maximal subpart as in the WHATWG Encoding Standard: the longest beginning of a
 * well-formed sequence, or else one byte. Repairing replaces each by one U+FFFD.
 */
#ifndef CHATHIST_BASE_UTF8_H
#define CHATHIST_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"
#include "chathist/base/error.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Decodes the code point at the start of s (s.n > 0) and returns its length. For an ill-formed
 * sequence it returns the length of the sequence and sets *cp to -1. If s ends inside a sequence
 * that could still be completed, it returns 0 and sets *cp to -1. */
size_t utf8_decode(struct str s, int32_t *cp);
/* Encodes cp, a scalar value, into out[4]. Returns the number of bytes. */
size_t utf8_encode(int32_t cp, char out[4]);
/* Returns the length of the ASCII text at the start of s. */
size_t utf8_ascii(struct str s);
/* Returns the length of the valid prefix of s, without a code point that the end of s cuts off. */
size_t utf8_valid(struct str s);
#define UTF8_BOM STR("\xef\xbb\xbf") /* a byte order mark */
struct str utf8_without_bom(struct str text);
/* The same as utf8_valid, but stops at the first ASCII character. */
size_t utf8_valid_beyond_ascii(struct str s);

/*
 * Small texts that people make with an editor: keys, the configuration, templates, prices, prompts.
 * A byte order mark is not part of such a text. UTF-16 and binary data are refused everywhere.
 */

/* Returns why bytes are no text, for the end of a message, or NULL. Bytes that are not UTF-8 are
 * not looked for. */
const char *text_fault(struct str bytes);
/* Removes a byte order mark at the beginning, and each CR before a newline or at the end. Returns
 * 0, or -1 (ERR_USAGE) with a message that names the file if it is no text or not UTF-8. */
int text_clean(struct buf *text, const char *file, struct err *e);
/* Returns a text of one line, such as a variable of the environment, without a byte order mark and
 * without white space at its ends. */
struct str text_value(const char *value);
/* Returns why a value of the configuration, the environment or a template cannot be meant, or
 * NULL: it has a control character other than a tab, or a comment after it. */
const char *text_value_fault(struct str value);
/* Adds s to out and replaces each ill-formed sequence by U+FFFD. */
void utf8_add_repaired(struct buf *out, struct str s);
/* Returns true if the offset is inside a character: the byte there continues one. False for 0 and
 * for the end. */
bool utf8_inside(struct str s, size_t at);
/* Returns the first `count` code points of s, or all. An ill-formed sequence counts as one. */
struct str utf8_first(struct str s, size_t count);
size_t utf8_count(struct str s);

/* Adds s, folded code point by code point (utf8_fold). Ill-formed bytes are copied. */
void utf8_add_folded(struct buf *out, struct str s);
/* Adds s, which must be valid UTF-8, in normalization form C, in which a letter and its accent are
 * one character where there is one, or in form D, in which they are two (Unicode Annex 15). */
void utf8_add_composed(struct buf *out, struct str s);
void utf8_add_decomposed(struct buf *out, struct str s);
/* Adds s in form D without its marks: `resume` for `résumé`. */
void utf8_add_unmarked(struct buf *out, struct str s);
/* Returns true for a mark of the character before it, such as an accent. */
bool utf8_is_mark(int32_t cp);
/* Returns true for a word character, as \w of UTS #18: a letter, a mark, a digit, a connector such
 * as `_`, or a joiner. */
bool utf8_is_word(int32_t cp);
/* Returns the columns on a terminal: 0 for combining marks and controls, 2 for wide characters,
 * otherwise 1. */
int utf8_width(int32_t cp);
/* Returns true for characters that change the width of their neighbours on some terminals: joiners,
 * variation selectors and, after a character of two columns (`wide`), colours of the skin. */
bool utf8_joins(int32_t cp, bool wide);
/* Returns as many whole code points of s as fit into `columns`. */
struct str utf8_fit(struct str s, size_t columns);

/* ---- case folding ---- */

/*
 * Unicode simple case folding: one code point to one, the same in every locale.
 *
 * The table has the mappings of status C and S in CaseFolding.txt of Unicode 17, as in ripgrep. It
 * leaves out those of status F (to several code points) and T (Turkic dotted and dotless i). It is
 * our own because libutf8proc offers only full folding and lower case, which are other mappings.
 * `mk/fold-table` writes its rows.
 */

/* Returns the folding of a code point, or the code point itself if it has none. */
int32_t utf8_fold(int32_t cp);

/* Sets `out` to all code points with the folding of cp, that folding first. Returns their number,
 * at most UTF8_FOLD_SAME. */
#define UTF8_FOLD_SAME ((size_t)8)
size_t utf8_fold_same(int32_t cp, int32_t out[UTF8_FOLD_SAME]);

/* ---- text made visible ---- */

/*
 * Text safe to show on a terminal: control and escape sequences become visible and have no effect.
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
