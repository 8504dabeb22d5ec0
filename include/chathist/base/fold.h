/*
 * fold - Unicode simple case folding: one code point to one, the same in every locale.
 *
 * The mappings of status C and S in CaseFolding.txt of Unicode 17, as ripgrep has them; those of
 * status F (to several code points) and T (Turkic: dotted and dotless i stay apart) are left out. A
 * table of our own, for libutf8proc's folding is the full one, and its lower case is another
 * mapping. `mk/fold-table` writes its rows.
 */
#ifndef CHATHIST_BASE_FOLD_H
#define CHATHIST_BASE_FOLD_H

#include <stddef.h>
#include <stdint.h>

/* The folding of a code point; one without is returned. */
int32_t fold(int32_t cp);

/* The other way: every code point whose folding is that of cp, itself among them, that folding
 * first. Returns how many there are, FOLD_SAME at most. */
#define FOLD_SAME ((size_t)8)
size_t fold_same(int32_t cp, int32_t out[FOLD_SAME]);

#endif
