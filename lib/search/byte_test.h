/*
 * byte_test - a test that a byte of several texts passes, and how rare such bytes are in histories.
 */
#ifndef CHATHIST_SEARCH_BYTE_TEST_H
#define CHATHIST_SEARCH_BYTE_TEST_H

#include <stdint.h>

#include "chathist/base/buf.h"

/* A byte passes when (byte & mask) is `byte`. */
struct byte_test {
    unsigned char mask, byte;
    uint64_t frequency; /* so many of 100,000 bytes pass */
};

/* All pass. */
#define BYTE_TEST_ANY                                                                              \
    {                                                                                              \
        .frequency = 100000                                                                        \
    }

/* All of these pass, one at least, and no more than need be. */
struct byte_test byte_test_of(struct str bytes);

#endif
