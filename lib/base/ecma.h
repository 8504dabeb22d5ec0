/*
 * ecma - regular expressions of ECMA-262 (2024, section 22.2, with the flag u) as the Perl
 * expressions that mean the same; text only.
 *
 * What base/regex sets by options is not done here: \uXXXX, \u{…}, the meaning of `$` and of
 * references to unset groups, `[]` and `[^]`. What is wrong in either language is left as it is,
 * for it to be found when the result is compiled.
 */
#ifndef CHATHIST_BASE_ECMA_H
#define CHATHIST_BASE_ECMA_H

#include "chathist/base/buf.h"

/* Adds the expression: `.`, \s and \S by ECMA's line ends and spaces, no POSIX classes, long names
 * of general categories (\p{Letter}) as short ones. */
void ecma_add_perl(struct buf *out, struct str pattern);

#endif
