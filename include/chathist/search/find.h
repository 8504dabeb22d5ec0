/*
 * find - places where one of several probes (base/simd) passes, in texts of any size.
 */
#ifndef CHATHIST_SEARCH_FIND_H
#define CHATHIST_SEARCH_FIND_H

#include "chathist/base/simd.h"

struct find {
    /* private */
    struct simd_probes probes;
    size_t reach; /* the largest distance */
    simd_block *block;
};

/* Without probes yet, of which nothing passes. */
void find_init(struct find *f, enum simd with);
/* false when there are SIMD_PROBES already. */
bool find_add_pair(struct find *f, struct simd_pair pair);
bool find_add_triple(struct find *f, struct simd_triple triple);

/* Is told a place that passes; gives the place from which to go on, behind it, or NULL to end. */
typedef const char *find_seen(void *ctx, const char *place);
/* Calls seen for each place from `from` on and before `end` that passes, in their order. A byte at
 * `end` or behind it counts as 0. */
void find_each(const struct find *f, const char *from, const char *end, find_seen *seen, void *ctx);

#endif
