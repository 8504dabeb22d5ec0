/*
 * draw.h: a generator of numbers that are the same everywhere.
 */
#ifndef CHATHIST_TESTS_LIB_DRAW_H
#define CHATHIST_TESTS_LIB_DRAW_H

#include <stdint.h>

/* One of 0 to below - 1. */
static inline uint32_t draw(uint32_t below)
{
    static uint64_t state = 88172645463325252U;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

#endif
