/*
 * le - numbers as they are stored in binary files, little-endian whatever the machine, and a
 * checksum over bytes.
 */
#ifndef CHATHIST_BASE_LE_H
#define CHATHIST_BASE_LE_H

#include <stddef.h>
#include <stdint.h>

#include "chathist/base/buf.h"

/* At any address. */
uint64_t le_get(const char *p);
void le_put(char *p, uint64_t n);
/* n of them. */
void le_get_all(uint64_t *to, const char *p, size_t n);

/* The same on every machine. Two texts of which only eight bytes in a row differ never have the
 * same one; it is no protection against somebody who wants them to. Several texts are summed up
 * by giving the sum of those before, 0 for the first one. */
uint64_t le_sum(struct str bytes, uint64_t before);
/* The same over numbers. */
uint64_t le_sum_words(const uint64_t *words, size_t n, uint64_t before);
/* The same of n of them that are not there at once. */
uint64_t le_words_begin(size_t n, uint64_t before);
uint64_t le_words_add(uint64_t sum, uint64_t word);
uint64_t le_words_end(uint64_t sum);

#endif
