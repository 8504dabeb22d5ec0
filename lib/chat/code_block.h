/*
 * code_block - the fenced code blocks of an answer in Markdown (CommonMark 0.31, section 4.5).
 *
 * One deviation: a fence may be indented by any number of blanks, because models put code into
 * lists, whose nesting is not followed here.
 */
#ifndef CHATHIST_CHAT_CODE_BLOCK_H
#define CHATHIST_CHAT_CODE_BLOCK_H

#include <stdbool.h>

#include "chathist/base/buf.h"

/* Adds the lines of the first block to out, without its fences and without the indentation of the
 * first fence. A block without end goes to the end of the text. false: there is none. */
bool code_block_first(struct str text, struct buf *out);

#endif
