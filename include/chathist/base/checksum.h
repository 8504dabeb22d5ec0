/*
 * checksum - reads and writes little-endian numbers in binary files, and computes checksums. Both
 * are the same on every machine.
 */
#ifndef CHATHIST_BASE_CHECKSUM_H
#define CHATHIST_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* The address need not be aligned. */
uint64_t le_get(const char *p);
void le_put(char *p, uint64_t n);
/* Reads n numbers. */
void le_get_all(uint64_t *to, const char *p, size_t n);

/* Returns a checksum. Two texts that differ only in eight adjacent bytes never have the same one.
 * It does not protect against deliberate changes. For several texts, `before` is the checksum of
 * the previous ones, and 0 for the first. */
uint64_t checksum(struct str bytes, uint64_t before);
/* Returns another checksum of the same kind, three times as fast if the text is long: it computes
 * four sums side by side, for one alone waits for each of its multiplications. */
uint64_t checksum_long(struct str bytes, uint64_t before);
/* Returns the checksum of n numbers. */
uint64_t checksum_words(const uint64_t *words, size_t n, uint64_t before);

#endif
