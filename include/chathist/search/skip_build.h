/*
 * skip_build - the chunks of a history's skip index (hist/skip) that are not there yet, made one
 * after the other.
 */
#ifndef CHATHIST_SEARCH_SKIP_BUILD_H
#define CHATHIST_SEARCH_SKIP_BUILD_H

#include <sys/types.h>

#include "chathist/history/locate.h"

/* Makes them, of blocks of that size, SKIP_BLOCK but in tests. Those of an older generation are
 * kept when their lines are what they were. Where it cannot be done, or another program is at it,
 * nothing happens; what was made before a program is killed is of use. */
void skip_build(const struct history *h, off_t block);

#endif
