/*
 * fold - Unicode simple case folding: one code point to one, the same in every locale.
 *
 * The table has the mappings of status C and S in CaseFolding.txt of Unicode 17, as in ripgrep. It
 * leaves out those of status F (to several code points) and T (Turkic dotted and dotless i). It is
 * our own because libutf8proc offers only full folding and lower case, which are other mappings.
 * `mk/fold-table` writes its rows.
 */
#ifndef CHATHIST_BASE_FOLD_H
#define CHATHIST_BASE_FOLD_H

#include <stddef.h>
#include <stdint.h>

/* Returns the folding of a code point, or the code point itself if it has none. */
int32_t fold(int32_t cp);

/* Sets `out` to all code points with the folding of cp, that folding first. Returns their number,
 * at most FOLD_SAME. */
#define FOLD_SAME ((size_t)8)
size_t fold_same(int32_t cp, int32_t out[FOLD_SAME]);

#endif
