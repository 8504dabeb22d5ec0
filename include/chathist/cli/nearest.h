/*
 * nearest - the name that a mistyped word could mean, for "did you mean".
 *
 * The caller offers every possible name; the most similar one is kept.
 */
#ifndef CHATHIST_CLI_NEAREST_H
#define CHATHIST_CLI_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *typed; /* set by the caller; borrowed */
    const char *name;  /* the most similar name offered, borrowed; NULL if all differ too much */
    size_t far;        /* private */
};

/* Offers one name. About a third of its letters may differ, or be swapped with their neighbour. A
 * name that contains the typed word, or is contained in it, counts only if no other is similar. */
void nearest_offer(struct nearest *n, const char *name);

#endif
