/*
 * demand - ends a fuzz target when what it promises does not hold.
 */
#ifndef CHATHIST_FUZZ_DEMAND_H
#define CHATHIST_FUZZ_DEMAND_H

#include <stdbool.h>
#include <stdlib.h>

static inline void demand(bool held)
{
    if (!held)
        abort();
}

#endif
