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

#include <stdint.h>

/* The folding of a code point; one without is returned. */
int32_t fold(int32_t cp);

#endif
